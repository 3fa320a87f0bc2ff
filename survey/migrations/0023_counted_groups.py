
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0007_audit_by_subject'),
        ('survey', '0022_devices_forget'),
    ]

    operations = [
        migrations.CreateModel(
            name='CountedGroup',
            fields=[
                ('respondent', models.OneToOneField(db_constraint=False, on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='counted', serialize=False, to='survey.respondent')),
                ('grade', models.CharField(blank=True, max_length=16)),
                ('language', models.CharField(blank=True, max_length=16)),
                ('attributes', models.JSONField(blank=True, default=dict)),
                ('withdrawn_at', models.DateTimeField(null=True)),
                ('cohort', models.PositiveIntegerField(default=0)),
                ('changed_at', models.DateTimeField()),
                ('administration', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='survey.administration')),
                ('school', models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='accounts.school')),
            ],
        ),
    ]
