"""Add the threshold below which results show no exact percentage, of the state."""

from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [("accounts", "0021_when_rosters_added_schools")]

    operations = [
        migrations.AddField(
            model_name="placesettings",
            name="coding_threshold",
            field=models.PositiveSmallIntegerField(blank=True, null=True),
        ),
        migrations.AddConstraint(
            model_name="placesettings",
            constraint=models.CheckConstraint(
                condition=Q(coding_threshold=None)
                | Q(coding_threshold__range=(1, 20), district=None, school=None),
                name="a_coding_threshold_is_1_to_20_percent_of_the_state",
            ),
        ),
    ]
