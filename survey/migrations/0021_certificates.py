"""Store certificates of destruction, and digests of what an erasure deletes."""

import uuid

import django.db.models.deletion
from django.db import migrations, models

from accounts.migration_operations import RunStatements

# As survey_erase_answers(bigint, bigint), which the release before calls; with the
# digest of what was deleted, which the worker's role may not read. Nobody saves in
# between: the caller has locked the respondent's row.
ERASE_ANSWERS = """
CREATE FUNCTION public.survey_erase_answers(
    of_administration bigint, person bigint, digest_key bytea,
    OUT deleted bigint, OUT digest bytea
)
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET timezone = 'UTC'
SET datestyle = 'ISO'
AS $$
BEGIN
    SELECT sha256(digest_key || sha256(digest_key || coalesce(string_agg(
        sha256(convert_to(jsonb_build_array(
            x.administration_id, x.respondent_id, x.item_id, x.state, x.value,
            x.revision, x.saved_at
        )::text, 'UTF8')),
        ''::bytea ORDER BY x.item_id
    ), ''::bytea))) INTO digest
    FROM public.survey_response x
    WHERE x.administration_id = of_administration AND x.respondent_id = person;
    deleted := public.survey_erase_answers(of_administration, person);
END $$
"""


class Migration(migrations.Migration):
    oldest_release = "1.0.0"

    dependencies = [
        ("accounts", "0007_public_help"),
        ("survey", "0020_destroy_answers"),
    ]

    operations = [
        migrations.AddField(
            model_name="erasure",
            name="digest_key",
            field=models.BinaryField(max_length=32, null=True),
        ),
        migrations.AddField(
            model_name="erasure",
            name="files",
            field=models.PositiveIntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name="erasedrecord",
            name="digests",
            field=models.JSONField(null=True),
        ),
        migrations.AddField(
            model_name="erasedrecord",
            name="id_digests",
            field=models.JSONField(null=True),
        ),
        migrations.CreateModel(
            name="DestructionCertificate",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True,
                        primary_key=True,
                        serialize=False,
                        verbose_name="ID",
                    ),
                ),
                ("number", models.UUIDField(default=uuid.uuid4, unique=True)),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("people", "People"),
                            ("identities", "Identities"),
                            ("answers", "Answers"),
                        ],
                        max_length=10,
                    ),
                ),
                ("issued_at", models.DateTimeField()),
                ("document", models.BinaryField()),
                ("pdf", models.BinaryField()),
                ("public_key", models.BinaryField(max_length=32)),
                ("backups_end", models.DateTimeField(null=True)),
                ("journaled_at", models.DateTimeField(null=True)),
                (
                    "district",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="accounts.district",
                    ),
                ),
                (
                    "erasure",
                    models.OneToOneField(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="certificate",
                        to="survey.erasure",
                    ),
                ),
            ],
            options={
                "ordering": ("-issued_at", "-pk"),
            },
        ),
        RunStatements(
            postgresql=[
                ERASE_ANSWERS,
                # Who may call it stands in the grants of the primary.
                "REVOKE ALL ON FUNCTION"
                " public.survey_erase_answers(bigint, bigint, bytea) FROM PUBLIC",
            ]
        ),
    ]
