"""Let districts add pages of their own to a round of the state."""

import django.core.validators
import django.db.models.deletion
from django.db import migrations, models
from django.db.models import Q

NAMES_NOBODY = Q(
    district__isnull=False,
    coordinators_see_finished=False,
    joins_waves=False,
    requires_consent=False,
    messages_have_names=False,
    messages_have_codes=False,
)


class Migration(migrations.Migration):
    dependencies = [("survey", "0013_steps_passed_over")]

    operations = [
        migrations.AddField(
            "administration",
            "district_pages_limit",
            models.PositiveSmallIntegerField(
                db_default=0,
                default=0,
                validators=[django.core.validators.MaxValueValidator(20)],
            ),
        ),
        migrations.AddField(
            "administration",
            "module_of",
            models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="modules",
                to="survey.administration",
            ),
        ),
        migrations.AddField(
            "administration",
            "stopped_at",
            models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddConstraint(
            "administration",
            models.CheckConstraint(
                condition=Q(district_pages_limit=0) | Q(district=None),
                name="only_the_state_lets_districts_add_pages",
            ),
        ),
        migrations.AddConstraint(
            "administration",
            models.CheckConstraint(
                condition=Q(module_of=None) | NAMES_NOBODY,
                name="a_module_is_of_a_district_and_names_nobody",
            ),
        ),
    ]
