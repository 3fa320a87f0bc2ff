import django.db.models.deletion
import django.db.models.functions.comparison
import django.db.models.functions.text
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0015_merges'),
        ('survey', '0051_opted_out_people_are_withdrawn'),
    ]

    operations = [
        migrations.CreateModel(
            name='DayOff',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(blank=True, max_length=100)),
                ('first', models.DateField(blank=True, null=True)),
                ('last', models.DateField(blank=True, null=True)),
                ('weekday', models.PositiveSmallIntegerField(blank=True, null=True)),
                ('district', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='days_off', to='accounts.district')),
            ],
            options={
                'verbose_name_plural': 'days off',
                'constraints': [
                    models.CheckConstraint(condition=models.Q(models.Q(('first__isnull', False), ('last__gte', models.F('first')), ('last__isnull', False), ('weekday', None)), models.Q(('district', None), ('first', None), ('last', None), ('weekday__isnull', False), ('weekday__range', (0, 6))), _connector='OR'), name='a_day_off_is_a_range_of_dates_or_a_weekday'),
                    models.UniqueConstraint(condition=models.Q(('weekday__isnull', False)), fields=('weekday',), name='one_day_off_per_weekday'),
                    models.UniqueConstraint(django.db.models.functions.text.Lower('name'), django.db.models.functions.comparison.Coalesce('district', 0), models.F('first'), condition=models.Q(('weekday', None)), name='one_holiday_per_name_day_and_owner'),
                ],
            },
        ),
    ]
