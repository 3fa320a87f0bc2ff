from django.db import migrations, models


class Migration(migrations.Migration):

    oldest_release = "1.0.0"

    dependencies = [
        ('reports', '0007_scores_by_group'),
    ]

    operations = [
        migrations.AddField(
            model_name='export',
            name='documents_name',
            field=models.CharField(blank=True, db_default='', default='', max_length=100),
        ),
        migrations.AlterField(
            model_name='export',
            name='format',
            field=models.CharField(choices=[('wide', 'CSV, one row for each respondent'), ('long', 'CSV, one row for each answer'), ('xlsx', 'Excel, one row for each respondent'), ('sav', 'SPSS (.sav), one row for each respondent'), ('zsav', 'SPSS, compressed (.zsav), one row for each respondent'), ('dta', 'Stata (.dta), one row for each respondent'), ('parquet', 'Parquet, one row for each respondent')], max_length=16),
        ),
    ]
