"""The database reads free text for reviewers, without telling who wrote it.

The console's role reads names, and so may not read responses. It may call this
function, which runs as the owner. A page begins and ends at whole blocks of people, so
that the difference of two pages is never the text of one person whom the role chose.
"""

from django.db import migrations

# On a cluster as well: the questions are read first, by a statement of their own.
FUNCTION = """
CREATE FUNCTION public.survey_read_comments(
    of_administration bigint, of_item bigint, first_block bigint, at_least integer,
    OUT comments text[], OUT schools bigint[], OUT next_block bigint
)
LANGUAGE plpgsql
STABLE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    -- Not the caller's: with a size of their own, a page could begin at any person.
    size CONSTANT bigint := 128;
    first_person CONSTANT bigint := first_block * size;
    last_person bigint;
BEGIN
    IF NOT EXISTS (
        SELECT FROM public.survey_item i WHERE i.id = of_item AND i.kind = 'text'
    ) THEN
        RAISE insufficient_privilege USING MESSAGE = 'Only free text is read here';
    END IF;
    SELECT max(page.respondent_id) INTO last_person FROM (
        SELECT x.respondent_id FROM public.survey_response x
        WHERE x.administration_id = of_administration AND x.item_id = of_item
            AND x.state = 'a' AND x.respondent_id >= first_person
        ORDER BY x.respondent_id LIMIT at_least
    ) page;
    last_person := (last_person / size + 1) * size - 1;
    SELECT array_agg(DISTINCT x.value), array_agg(DISTINCT r.school_id)
    INTO comments, schools
    FROM public.survey_response x
    JOIN public.survey_respondent r ON r.id = x.respondent_id
    WHERE x.administration_id = of_administration AND x.item_id = of_item
        AND x.state = 'a' AND x.respondent_id BETWEEN first_person AND last_person
        AND r.administration_id = of_administration
        AND r.opted_out_at IS NULL AND r.withdrawn_at IS NULL;
    SELECT min(x.respondent_id) / size INTO next_block FROM (
        SELECT y.respondent_id FROM public.survey_response y
        WHERE y.administration_id = of_administration AND y.item_id = of_item
            AND y.state = 'a' AND y.respondent_id > last_person
        ORDER BY y.respondent_id LIMIT 1
    ) x;
END $$
"""
SIGNATURE = "public.survey_read_comments(bigint, bigint, bigint, integer)"


def add(apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(FUNCTION, params=None)
        # Who may call it, and nobody else, stands in the grants of the primary.
        schema_editor.execute(f"REVOKE ALL ON FUNCTION {SIGNATURE} FROM PUBLIC")


def remove(apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(f"DROP FUNCTION {SIGNATURE}")


class Migration(migrations.Migration):
    dependencies = [("survey", "0063_minimum_group_of_ten")]

    operations = [migrations.RunPython(add, remove)]
