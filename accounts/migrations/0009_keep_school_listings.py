"""The database keeps the listings of schools, whoever writes a school.

Rosters, the admin, imports and shells write schools in bulk and one by one; a
trigger misses none of them. The normalised text is written by the database too
and is the same as `accounts.school_directory.search_text` makes of a query.
"""

from django.db import migrations

from accounts.search_letters import LETTERS, LIGATURES, REMOVED, SPACES


def text_of(row):
    return f"{row}.name || ' ' || {row}.city || ' ' || {row}.state || ' ' || {row}.postal_code"


def quoted(text):
    return "'" + text.replace("'", "''") + "'"


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


def postgresql_reverse():
    for trigger in ("updated", "inserted", "deleted"):
        yield f"DROP TRIGGER listing_{trigger} ON accounts_school"
    yield "DROP FUNCTION accounts_keep_school_listing()"
    yield "DROP TRIGGER search_text ON accounts_schoollisting"
    yield "DROP FUNCTION accounts_write_search_text()"
    yield "DROP FUNCTION accounts_search_text(text)"


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


def as_characters(text):
    # Control characters have no place in a statement's text.
    return f"char({', '.join(str(ord(letter)) for letter in text)})"


def sqlite_reverse():
    for name in ("deleted", "updated", "inserted"):
        yield f"DROP TRIGGER listing_{name}"
    yield "DROP TRIGGER search_text_update"
    yield "DROP TRIGGER search_text_insert"


TRIGGERS = {"postgresql": postgresql, "sqlite": sqlite}
REVERSE = {"postgresql": postgresql_reverse, "sqlite": sqlite_reverse}


def add(apps, schema_editor):
    for statement in TRIGGERS[schema_editor.connection.vendor]():
        # None: a percent sign in the statement is one.
        schema_editor.execute(statement, None)


def remove(apps, schema_editor):
    for statement in REVERSE[schema_editor.connection.vendor]():
        schema_editor.execute(statement, None)


class Migration(migrations.Migration):
    dependencies = [("accounts", "0008_school_directory")]

    operations = [migrations.RunPython(add, remove)]
