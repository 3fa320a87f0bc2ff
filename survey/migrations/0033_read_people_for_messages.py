"""The respondents' pool reads what a message may say about one person.

Its role may not read identities. This function runs as the owner, and returns a
name only where the administration allows names in messages.
"""

from django.db import migrations

# An address that is not plain ASCII is compared by the workers alone, which know
# how it was normalised; until then nothing is sent.
FUNCTION = """
CREATE FUNCTION public.survey_read_for_message(person bigint)
RETURNS TABLE (
    administration_id bigint,
    district_id bigint,
    language text,
    school text,
    is_finished boolean,
    is_stopped boolean,
    name text,
    opens_at timestamptz,
    closes_at timestamptz,
    has_names boolean,
    has_codes boolean,
    first_language text
)
LANGUAGE sql
STABLE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
    SELECT a.id, s.district_id, r.language, s.name,
        r.completed_at IS NOT NULL,
        r.withdrawn_at IS NOT NULL OR i.email ~ '[^ -~]' OR EXISTS (
            SELECT FROM public.survey_suppressedaddress x
            WHERE x.digest = encode(sha256(convert_to(lower(i.email), 'UTF8')), 'hex')
              AND x.reason IN ('opted out', 'complained')),
        CASE WHEN a.messages_have_names THEN i.given_name ELSE '' END,
        a.opens_at, a.closes_at, a.messages_have_names, a.messages_have_codes,
        p.definition::json -> 'languages' -> 0 ->> 'code'
    FROM public.survey_respondent r
    JOIN public.survey_identity i ON i.respondent_id = r.id
    JOIN public.survey_administration a ON a.id = r.administration_id
    JOIN public.survey_publishedsurvey p ON p.digest = a.published_id
    JOIN public.accounts_school s ON s.id = r.school_id
    WHERE r.id = person AND r.open_code_id IS NULL
$$
"""
# Who may call it, and nobody else, stands in the grants of the primary.
CLOSED = "REVOKE ALL ON FUNCTION public.survey_read_for_message(bigint) FROM PUBLIC"
DROP = "DROP FUNCTION public.survey_read_for_message(bigint)"


def add(apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        # Without parameters, so that no % is taken for one.
        schema_editor.execute(FUNCTION, params=None)
        schema_editor.execute(CLOSED)


def remove(apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(DROP)


class Migration(migrations.Migration):
    dependencies = [("survey", "0032_message_platforms")]

    operations = [migrations.RunPython(add, remove)]
