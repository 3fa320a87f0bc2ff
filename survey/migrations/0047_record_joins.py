import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0015_merges'),
        ('survey', '0046_feed_stage_notes'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='RecordJoin',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('is_chosen', models.BooleanField(default=False)),
                ('state', models.CharField(choices=[('waiting', 'being joined'), ('refused', 'not joined'), ('joined', 'joined')], default='waiting', max_length=16)),
                ('message', models.CharField(blank=True, max_length=500)),
                ('external_id', models.CharField(blank=True, max_length=128)),
                ('requested_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('ended_at', models.DateTimeField(null=True)),
                ('administration', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='survey.administration')),
                ('by', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('district', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='accounts.district')),
                ('kept', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='survey.respondent')),
                ('other', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='survey.respondent')),
            ],
            options={
                'ordering': ('-pk',),
                'constraints': [models.CheckConstraint(condition=models.Q(('kept', models.F('other')), _negated=True), name='a_record_is_not_joined_with_itself'), models.UniqueConstraint(condition=models.Q(('state', 'joined')), fields=('administration', 'district', 'external_id'), name='the_id_of_a_joined_record_leads_to_one_person')],
            },
        ),
    ]
