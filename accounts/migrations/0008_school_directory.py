import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0007_audit_by_subject'),
    ]

    operations = [
        migrations.CreateModel(
            name='SchoolWord',
            fields=[
                ('word', models.CharField(max_length=64, primary_key=True, serialize=False)),
                ('reverse', models.CharField(max_length=64)),
                ('schools', models.PositiveIntegerField()),
            ],
        ),
        migrations.CreateModel(
            name='SchoolListing',
            fields=[
                ('school', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='listing', serialize=False, to='accounts.school')),
                ('name', models.CharField(max_length=200)),
                ('street', models.CharField(blank=True, db_default='', default='', max_length=200)),
                ('city', models.CharField(blank=True, db_default='', default='', max_length=100)),
                ('state', models.CharField(blank=True, db_default='', default='', max_length=32)),
                ('postal_code', models.CharField(blank=True, db_default='', default='', max_length=16)),
                ('latitude', models.FloatField(blank=True, null=True)),
                ('longitude', models.FloatField(blank=True, null=True)),
                ('search', models.TextField(blank=True, db_default='', default='', editable=False)),
                ('district', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='accounts.district')),
            ],
            options={
                'constraints': [models.CheckConstraint(condition=models.Q(models.Q(('latitude__isnull', True), ('longitude__isnull', True)), models.Q(('latitude__isnull', False), ('latitude__range', (-90, 90)), ('longitude__isnull', False), ('longitude__range', (-180, 180))), _connector='OR'), name='a_listed_school_is_on_the_earth')],
            },
        ),
    ]
