"""Published surveys are frozen by the database itself.

Raw SQL, the admin and a mistake in Python all meet these triggers: a row of
`survey_publishedsurvey` never changes, and neither does a survey that was
published, nor any row that it was compiled from.
"""

from django.db import migrations

from accounts.migration_operations import RunStatements

TABLES = {
    # Table -> the survey that a row belongs to, by its columns.
    "survey_page": "{row}.survey_id",
    "survey_optionset": "{row}.survey_id",
    "survey_item": "{row}.survey_id",
    "survey_surveymeasures": "{row}.survey_id",
    "survey_block": "(SELECT survey_id FROM survey_page WHERE id = {row}.page_id)",
    "survey_option": (
        "(SELECT survey_id FROM survey_optionset WHERE id = {row}.option_set_id)"
    ),
}
ROWS = {"INSERT": ("NEW",), "UPDATE": ("OLD", "NEW"), "DELETE": ("OLD",)}
FROZEN_ROW = "a published survey is frozen: raise its version and import it anew"
FROZEN_DEFINITION = "a published definition never changes"


def postgresql():
    yield f"""
        CREATE FUNCTION survey_refuse_frozen() RETURNS trigger AS $$
        BEGIN
            RAISE EXCEPTION '{FROZEN_DEFINITION}' USING ERRCODE = 'check_violation';
        END $$ LANGUAGE plpgsql
    """
    # FOR SHARE: whoever touches a row waits for a publishing that is under way, and
    # then sees it; without, the row would slip in behind the compiler. The lock is
    # asked for whatever `published_at` says: a condition on it would be judged before
    # the wait.
    yield f"""
        CREATE FUNCTION survey_refuse_published(survey bigint) RETURNS void AS $$
        DECLARE
            published timestamptz;
        BEGIN
            SELECT published_at INTO published FROM survey_survey
            WHERE id = survey FOR SHARE;
            IF published IS NOT NULL THEN
                RAISE EXCEPTION '{FROZEN_ROW}' USING ERRCODE = 'check_violation';
            END IF;
        END $$ LANGUAGE plpgsql
    """
    yield f"""
        CREATE FUNCTION survey_refuse_published_survey() RETURNS trigger AS $$
        BEGIN
            RAISE EXCEPTION '{FROZEN_ROW}' USING ERRCODE = 'check_violation';
        END $$ LANGUAGE plpgsql
    """
    yield """
        CREATE TRIGGER frozen_definition
        BEFORE UPDATE OR DELETE ON survey_publishedsurvey
        FOR EACH ROW EXECUTE FUNCTION survey_refuse_frozen()
    """
    yield """
        CREATE TRIGGER frozen_survey BEFORE UPDATE OR DELETE ON survey_survey
        FOR EACH ROW WHEN (OLD.published_at IS NOT NULL)
        EXECUTE FUNCTION survey_refuse_published_survey()
    """
    for table, survey in TABLES.items():
        new = f"PERFORM survey_refuse_published({survey.format(row='NEW')});"
        old = f"PERFORM survey_refuse_published({survey.format(row='OLD')});"
        yield f"""
            CREATE FUNCTION {table}_refuse_frozen() RETURNS trigger AS $$
            BEGIN
                IF TG_OP <> 'INSERT' THEN {old} END IF;
                IF TG_OP = 'DELETE' THEN RETURN OLD; END IF;
                {new}
                RETURN NEW;
            END $$ LANGUAGE plpgsql
        """
        yield f"""
            CREATE TRIGGER frozen_{table}
            BEFORE INSERT OR UPDATE OR DELETE ON {table}
            FOR EACH ROW EXECUTE FUNCTION {table}_refuse_frozen()
        """


def sqlite():
    for event in ("UPDATE", "DELETE"):
        yield f"""
            CREATE TRIGGER frozen_definition_{event.lower()}
            BEFORE {event} ON survey_publishedsurvey
            BEGIN SELECT RAISE(ABORT, '{FROZEN_DEFINITION}'); END
        """
        yield f"""
            CREATE TRIGGER frozen_survey_{event.lower()}
            BEFORE {event} ON survey_survey WHEN OLD.published_at IS NOT NULL
            BEGIN SELECT RAISE(ABORT, '{FROZEN_ROW}'); END
        """
    for table, survey in TABLES.items():
        for event, rows in ROWS.items():
            surveys = ", ".join(survey.format(row=row) for row in rows)
            yield f"""
                CREATE TRIGGER frozen_{table}_{event.lower()}
                BEFORE {event} ON {table}
                WHEN EXISTS (
                    SELECT 1 FROM survey_survey
                    WHERE id IN ({surveys}) AND published_at IS NOT NULL
                )
                BEGIN SELECT RAISE(ABORT, '{FROZEN_ROW}'); END
            """


class Migration(migrations.Migration):
    replaces = [
        ("survey", "0003_frozen_surveys"),
        ("survey", "0060_freeze_measures"),
    ]

    dependencies = [("survey", "0002_responses_by_administration")]

    operations = [RunStatements(postgresql=[*postgresql()], sqlite=[*sqlite()])]
