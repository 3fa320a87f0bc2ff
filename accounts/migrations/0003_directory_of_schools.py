"""The database keeps the listings of schools, whoever writes a school.

Rosters, the admin, imports and shells write schools in bulk and one by one; a
trigger misses none of them. The normalised text is written by the database too
and is the same as `accounts.school_directory.search_text` makes of a query. The
queries that use the indexes are there as well.
"""

from django.db import migrations

from accounts.migration_operations import RunStatements
from accounts.search_letters import LETTERS, LIGATURES, REMOVED, SPACES

POSTGRESQL_INDEXES = (
    "CREATE EXTENSION IF NOT EXISTS pg_trgm",
    "CREATE EXTENSION IF NOT EXISTS cube",
    # In byte order an index serves both LIKE 'x%' and ORDER BY.
    'ALTER TABLE accounts_schoollisting ALTER COLUMN search TYPE text COLLATE "C"',
    'ALTER TABLE accounts_schoolword ALTER COLUMN word TYPE varchar(64) COLLATE "C"',
    'ALTER TABLE accounts_schoolword ALTER COLUMN reverse TYPE varchar(64) COLLATE "C"',
    "CREATE INDEX schools_by_name ON accounts_schoollisting (search)",
    # Whole words: a search for one word read the lists of all its trigrams, 5 to 9 ms
    # with 100,000 schools, and 0.1 ms by words.
    """
    CREATE INDEX schools_by_word ON accounts_schoollisting
    USING gin (array_to_tsvector(string_to_array(btrim(search), ' ')))
    """,
    # The nearest ones. On the unit sphere the straight distance grows with the
    # distance on the ground, at the poles and the date line too.
    """
    CREATE INDEX schools_by_place ON accounts_schoollisting USING gist ((cube(ARRAY[
        cos(radians(latitude)) * cos(radians(longitude)),
        cos(radians(latitude)) * sin(radians(longitude)),
        sin(radians(latitude))
    ]))) WHERE latitude IS NOT NULL
    """,
    "CREATE INDEX words_by_end ON accounts_schoolword (reverse)",
)
SQLITE_INDEXES = (
    "CREATE INDEX schools_by_name ON accounts_schoollisting (search)",
    "CREATE INDEX schools_by_place ON accounts_schoollisting (latitude, longitude)",
    "CREATE INDEX words_by_end ON accounts_schoolword (reverse)",
)


def text_of(row):
    return f"{row}.name || ' ' || {row}.city || ' ' || {row}.state || ' ' || {row}.postal_code"


def quoted(text):
    return "'" + text.replace("'", "''") + "'"


def as_characters(text):
    # Control characters have no place in a statement's text.
    return f"char({', '.join(str(ord(letter)) for letter in text)})"


def postgresql():
    old = "".join((*LETTERS, *SPACES, *REMOVED))
    new = "".join((*LETTERS.values(), " " * len(SPACES)))
    text = f"translate($1, {quoted(old)}, {quoted(new)})"
    for ligature, letters in LIGATURES.items():
        text = f"replace({text}, '{ligature}', '{letters}')"
    yield f"""
        CREATE FUNCTION accounts_search_text(text) RETURNS text
        LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN
            ' ' || btrim(regexp_replace(lower({text}), ' +', ' ', 'g'))
    """
    yield f"""
        CREATE FUNCTION accounts_write_search_text() RETURNS trigger AS $$
        BEGIN
            NEW.search := public.accounts_search_text({text_of("NEW")});
            RETURN NEW;
        END $$ LANGUAGE plpgsql
    """
    yield """
        CREATE TRIGGER search_text
        BEFORE INSERT OR UPDATE ON accounts_schoollisting
        FOR EACH ROW EXECUTE FUNCTION accounts_write_search_text()
    """
    yield """
        CREATE FUNCTION accounts_keep_school_listing() RETURNS trigger AS $$
        BEGIN
            IF TG_OP = 'DELETE' THEN
                DELETE FROM public.accounts_schoollisting WHERE school_id = OLD.id;
                RETURN OLD;
            ELSIF TG_OP = 'INSERT' THEN
                INSERT INTO public.accounts_schoollisting (school_id, district_id, name)
                VALUES (NEW.id, NEW.district_id, NEW.name);
            ELSE
                UPDATE public.accounts_schoollisting
                SET district_id = NEW.district_id, name = NEW.name
                WHERE school_id = NEW.id;
            END IF;
            RETURN NULL;
        END $$ LANGUAGE plpgsql
    """
    yield """
        CREATE TRIGGER listing_deleted BEFORE DELETE ON accounts_school
        FOR EACH ROW EXECUTE FUNCTION accounts_keep_school_listing()
    """
    yield """
        CREATE TRIGGER listing_inserted AFTER INSERT ON accounts_school
        FOR EACH ROW EXECUTE FUNCTION accounts_keep_school_listing()
    """
    yield """
        CREATE TRIGGER listing_updated AFTER UPDATE OF name, district_id ON accounts_school
        FOR EACH ROW WHEN (
            OLD.name <> NEW.name OR OLD.district_id <> NEW.district_id
        ) EXECUTE FUNCTION accounts_keep_school_listing()
    """


def sqlite():
    text = text_of("NEW")
    pairs = {
        **LIGATURES,
        **LETTERS,
        **dict.fromkeys(SPACES, " "),
        **dict.fromkeys(REMOVED, ""),
    }
    # SQLite's parser has a stack of a hundred entries, and a call takes three.
    steps = []
    entries = list(pairs.items())
    for start in range(0, len(entries), 20):
        expression = "search"
        for old, new in entries[start : start + 20]:
            expression = f"replace({expression}, {as_characters(old)}, {quoted(new)})"
        steps.append(expression)
    spaces = "lower(search)"
    for _ in range(8):
        spaces = f"replace({spaces}, '  ', ' ')"
    steps.append(f"' ' || trim({spaces})")
    here = "WHERE school_id = NEW.school_id"
    updates = [f"UPDATE accounts_schoollisting SET search = {text} {here};"] + [
        f"UPDATE accounts_schoollisting SET search = {step} {here};" for step in steps
    ]
    for event in ("INSERT", "UPDATE OF name, city, state, postal_code"):
        yield f"""
            CREATE TRIGGER search_text_{event[:6].lower()}
            AFTER {event} ON accounts_schoollisting
            BEGIN {" ".join(updates)} END
        """
    yield """
        CREATE TRIGGER listing_inserted AFTER INSERT ON accounts_school
        BEGIN
            INSERT INTO accounts_schoollisting (school_id, district_id, name)
            VALUES (NEW.id, NEW.district_id, NEW.name);
        END
    """
    yield """
        CREATE TRIGGER listing_updated AFTER UPDATE OF name, district_id ON accounts_school
        BEGIN
            UPDATE accounts_schoollisting
            SET district_id = NEW.district_id, name = NEW.name
            WHERE school_id = NEW.id;
        END
    """
    yield """
        CREATE TRIGGER listing_deleted BEFORE DELETE ON accounts_school
        BEGIN
            DELETE FROM accounts_schoollisting WHERE school_id = OLD.id;
        END
    """


class Migration(migrations.Migration):
    replaces = [
        ("accounts", "0009_keep_school_listings"),
        ("accounts", "0010_list_schools"),
        ("accounts", "0011_find_schools"),
        ("accounts", "0013_find_words_sooner"),
    ]

    dependencies = [("accounts", "0002_audit_log")]

    operations = [
        RunStatements(
            postgresql=[*postgresql(), *POSTGRESQL_INDEXES],
            sqlite=[*sqlite(), *SQLITE_INDEXES],
        )
    ]
