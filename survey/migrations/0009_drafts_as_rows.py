"""Store drafts of surveys as the rows of their workbooks, with their changes."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

from accounts.migration_operations import RunStatements

NAMES = ('compiled_change', 'last_change')
COLUMNS = [
    f'ALTER TABLE survey_survey ADD COLUMN {name} integer NOT NULL DEFAULT 0'
    f' CHECK ({name} >= 0)'
    for name in NAMES
]


class Migration(migrations.Migration):

    dependencies = [
        ('survey', '0008_cards_of_many_schools'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        # Not by copying the table, as Django does on SQLite: its triggers, which freeze
        # published surveys, would be lost.
        migrations.SeparateDatabaseAndState(
            database_operations=[RunStatements(postgresql=COLUMNS, sqlite=COLUMNS)],
            state_operations=[
                migrations.AddField(
                    model_name='survey',
                    name=name,
                    field=models.PositiveIntegerField(default=0),
                )
                for name in NAMES
            ],
        ),
        migrations.CreateModel(
            name='DraftSheet',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=255)),
                ('columns', models.JSONField(default=list)),
                ('survey', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='draft_sheets', to='survey.survey')),
            ],
        ),
        migrations.CreateModel(
            name='DraftRow',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('key', models.CharField(max_length=16)),
                ('position', models.BigIntegerField()),
                ('cells', models.JSONField(default=dict)),
                ('sheet', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='rows', to='survey.draftsheet')),
            ],
            options={
                'ordering': ('position',),
            },
        ),
        migrations.CreateModel(
            name='DraftChange',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.PositiveIntegerField()),
                ('action', models.CharField(max_length=32)),
                ('about', models.JSONField(default=dict)),
                ('operations', models.JSONField(default=list)),
                ('at', models.DateTimeField(auto_now_add=True)),
                ('is_undone', models.BooleanField(default=False)),
                ('is_redoable', models.BooleanField(default=False)),
                ('by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('survey', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='changes', to='survey.survey')),
                ('undoes', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='survey.draftchange')),
            ],
            options={
                'ordering': ('-number',),
                'constraints': [models.UniqueConstraint(fields=('survey', 'number'), name='one_change_per_number_of_a_draft')],
            },
        ),
        migrations.AddConstraint(
            model_name='draftsheet',
            constraint=models.UniqueConstraint(fields=('survey', 'name'), name='one_sheet_per_name_in_a_survey'),
        ),
        migrations.AddConstraint(
            model_name='draftrow',
            constraint=models.UniqueConstraint(fields=('sheet', 'key'), name='one_row_per_key_in_a_sheet'),
        ),
    ]
