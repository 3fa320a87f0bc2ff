import django.db.models.deletion
import django.db.models.functions.text
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

import reports.models.panels


class Migration(migrations.Migration):

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ('reports', '0006_opted_out'),
    ]

    operations = [
        migrations.CreateModel(
            name='PanelProject',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=100)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('key', models.BinaryField(default=reports.models.panels.new_panel_key, max_length=32)),
                ('by', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'constraints': [models.UniqueConstraint(models.F('by'), django.db.models.functions.text.Lower('name'), name='one_panel_project_per_name_of_a_user')],
            },
        ),
        migrations.AddField(
            model_name='export',
            name='is_panel',
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.AddField(
            model_name='export',
            name='joined_people',
            field=models.BigIntegerField(null=True),
        ),
        migrations.AddField(
            model_name='export',
            name='project',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='exports', to='reports.panelproject'),
        ),
        migrations.AddConstraint(
            model_name='export',
            constraint=models.CheckConstraint(condition=models.Q(('is_panel', False), ('identities', False), _connector='OR'), name='a_panel_has_no_names'),
        ),
        migrations.AddConstraint(
            model_name='export',
            constraint=models.CheckConstraint(condition=models.Q(('is_panel', True), ('project', None), _connector='OR'), name='only_a_panel_has_a_project'),
        ),
    ]
