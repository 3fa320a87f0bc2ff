"""Add the minimum group of places, for the administrations that they open."""

from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [("accounts", "0018_language_of_users")]

    operations = [
        migrations.AddField(
            model_name="placesettings",
            name="minimum_group",
            field=models.PositiveSmallIntegerField(blank=True, null=True),
        ),
        migrations.AddConstraint(
            model_name="placesettings",
            constraint=models.CheckConstraint(
                condition=Q(minimum_group=None) | Q(minimum_group__range=(1, 100)),
                name="a_minimum_group_of_a_place_is_1_to_100",
            ),
        ),
    ]
