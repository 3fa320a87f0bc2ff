import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    oldest_release = "1.0.0"

    dependencies = [
        ('reports', '0005_chosen_benchmark'),
        ('survey', '0015_survey_day'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name='chosenbenchmark',
            name='by_span',
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.AddField(
            model_name='scoring',
            name='effects',
            field=models.JSONField(null=True),
        ),
        migrations.AddField(
            model_name='scorerow',
            name='span',
            field=models.CharField(blank=True, db_default='', default='', max_length=16),
        ),
        migrations.AddField(
            model_name='calibration',
            name='span_scales',
            field=models.JSONField(db_default={}, default=dict),
        ),
        migrations.CreateModel(
            name='ImportedBenchmark',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('measures', models.JSONField()),
                ('at', models.DateTimeField(auto_now_add=True)),
                ('because', models.CharField(max_length=500)),
                ('withdrawn_at', models.DateTimeField(null=True)),
                ('administration', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='survey.administration')),
                ('by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'abstract': False,
            },
        ),
        migrations.AddField(
            model_name='calibration',
            name='imported',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='reports.importedbenchmark'),
        ),
    ]
