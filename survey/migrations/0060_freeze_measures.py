from django.db import migrations

FROZEN = "a published survey is frozen: raise its version and import it anew"
ROWS = {"INSERT": ("NEW",), "UPDATE": ("OLD", "NEW"), "DELETE": ("OLD",)}


def sqlite():
    for event, rows in ROWS.items():
        surveys = ", ".join(f"{row}.survey_id" for row in rows)
        yield f"""
            CREATE TRIGGER frozen_survey_surveymeasures_{event.lower()}
            BEFORE {event} ON survey_surveymeasures
            WHEN EXISTS (
                SELECT 1 FROM survey_survey
                WHERE id IN ({surveys}) AND published_at IS NOT NULL
            )
            BEGIN SELECT RAISE(ABORT, '{FROZEN}'); END
        """


def sqlite_reverse():
    for event in ROWS:
        yield f"DROP TRIGGER frozen_survey_surveymeasures_{event.lower()}"


def freeze(apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        # As for the other parts of a survey, in 0003.
        schema_editor.execute(
            """
            CREATE FUNCTION survey_surveymeasures_refuse_frozen() RETURNS trigger AS $$
            BEGIN
                IF TG_OP <> 'INSERT' THEN
                    PERFORM survey_refuse_published(OLD.survey_id);
                END IF;
                IF TG_OP = 'DELETE' THEN RETURN OLD; END IF;
                PERFORM survey_refuse_published(NEW.survey_id);
                RETURN NEW;
            END $$ LANGUAGE plpgsql
            """
        )
        schema_editor.execute(
            """
            CREATE TRIGGER frozen_survey_surveymeasures
            BEFORE INSERT OR UPDATE OR DELETE ON survey_surveymeasures
            FOR EACH ROW EXECUTE FUNCTION survey_surveymeasures_refuse_frozen()
            """
        )
        return
    for statement in sqlite():
        schema_editor.execute(statement)


def thaw(apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(
            "DROP TRIGGER frozen_survey_surveymeasures ON survey_surveymeasures"
        )
        schema_editor.execute("DROP FUNCTION survey_surveymeasures_refuse_frozen()")
        return
    for statement in sqlite_reverse():
        schema_editor.execute(statement)


class Migration(migrations.Migration):
    """Measures are published with their survey, and change no more."""

    dependencies = [("survey", "0059_measures")]

    operations = [migrations.RunPython(freeze, thaw)]
