"""Let the state and districts say how long data are kept; columns without a default."""

from django.db import migrations, models

DAYS = (
    "identities_days",
    "answers_days",
    "identities_least_days",
    "identities_most_days",
    "answers_least_days",
    "answers_most_days",
)


class Migration(migrations.Migration):
    oldest_release = "1.0.0"

    dependencies = [("accounts", "0008_public_pages")]

    operations = [
        *(
            migrations.AddField(
                "PlaceSettings",
                name,
                models.PositiveIntegerField(null=True, blank=True),
            )
            for name in DAYS
        ),
        migrations.AddConstraint(
            "PlaceSettings",
            models.CheckConstraint(
                condition=models.Q(
                    identities_least_days=None,
                    identities_most_days=None,
                    answers_least_days=None,
                    answers_most_days=None,
                )
                | models.Q(district=None, school=None),
                name="only_the_state_limits_retention",
            ),
        ),
        migrations.AddConstraint(
            "PlaceSettings",
            models.CheckConstraint(
                condition=models.Q(identities_days=None, answers_days=None)
                | models.Q(school=None),
                name="retention_is_of_the_state_or_a_district",
            ),
        ),
    ]
