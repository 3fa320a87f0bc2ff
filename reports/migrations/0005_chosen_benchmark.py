import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    oldest_release = "1.0.0"

    dependencies = [
        ('reports', '0004_differences_of_schools'),
        ('survey', '0015_survey_day'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='ChosenBenchmark',
            fields=[
                ('administration', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='chosen_benchmark', serialize=False, to='survey.administration')),
                ('at', models.DateTimeField(auto_now_add=True)),
                ('because', models.CharField(max_length=500)),
                ('by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'abstract': False,
            },
        ),
    ]
