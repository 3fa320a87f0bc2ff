from django.db import migrations

PARTITIONED = """
DROP TABLE survey_response;
CREATE TABLE survey_response (
    administration_id bigint NOT NULL,
    respondent_id bigint NOT NULL,
    item_id bigint NOT NULL,
    state varchar(1) NOT NULL,
    value text,
    revision bigint NOT NULL,
    saved_at timestamptz NOT NULL,
    PRIMARY KEY (administration_id, respondent_id, item_id),
    CONSTRAINT a_value_exactly_where_answered CHECK (
        (state = 'a' AND value IS NOT NULL)
        OR (state IN ('s', 'h') AND value IS NULL)
    )
) PARTITION BY LIST (administration_id);
"""


def partition(apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(PARTITIONED)


class Migration(migrations.Migration):
    """On PostgreSQL each administration's responses are a table of their own."""

    dependencies = [("survey", "0001_initial")]

    operations = [migrations.RunPython(partition, migrations.RunPython.noop)]
