import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('survey', '0047_record_joins'),
    ]

    operations = [
        migrations.CreateModel(
            name='PairChoice',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('keep', models.CharField(choices=[('', 'Neither: leave both records as they are'), ('kept', 'The one of the district that stays'), ('duplicate', 'The one of the duplicate')], max_length=16)),
                ('merge', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='choices', to='survey.placemerge')),
                ('respondent', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='survey.respondent')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('merge', 'respondent'), name='one_choice_for_each_person_of_a_merge')],
            },
        ),
    ]
