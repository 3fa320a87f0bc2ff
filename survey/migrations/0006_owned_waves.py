import django.db.models.deletion
from django.db import migrations, models
from django.db.models.functions import Coalesce, Lower


class Migration(migrations.Migration):
    """A wave is the state's or a district's, and its name is unique there."""

    dependencies = [
        ("accounts", "0003_audit_is_append_only"),
        ("survey", "0005_classroom"),
    ]

    operations = [
        migrations.AddField(
            model_name="wave",
            name="district",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="waves",
                to="accounts.district",
            ),
        ),
        migrations.AlterField(
            model_name="wave",
            name="name",
            field=models.CharField(max_length=200),
        ),
        migrations.AddConstraint(
            model_name="wave",
            constraint=models.UniqueConstraint(
                Lower("name"),
                Coalesce("district", 0),
                name="one_wave_per_name_and_owner",
            ),
        ),
    ]
