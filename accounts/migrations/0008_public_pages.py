"""Let the state write its pages on privacy and accessibility, and show questions.

The database has the default, too: code of the release before adds settings without
it.
"""

from django.db import migrations, models


class Migration(migrations.Migration):
    oldest_release = "1.0.0"

    dependencies = [("accounts", "0007_public_help")]

    operations = [
        migrations.CreateModel(
            "PublicText",
            [
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True,
                        primary_key=True,
                        serialize=False,
                        verbose_name="ID",
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("privacy", "Privacy"),
                            ("accessibility", "Accessibility"),
                        ],
                        max_length=16,
                    ),
                ),
                ("language", models.CharField(max_length=16)),
                ("text", models.TextField()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("kind", "language"),
                        name="one_public_text_per_language",
                    )
                ],
            },
        ),
        migrations.AddField(
            "PlaceSettings",
            "public_questions",
            models.BooleanField(default=False, db_default=False),
        ),
        migrations.AddConstraint(
            "PlaceSettings",
            models.CheckConstraint(
                condition=models.Q(public_questions=False)
                | models.Q(district=None, school=None),
                name="only_the_state_makes_questions_public",
            ),
        ),
    ]
