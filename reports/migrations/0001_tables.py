"""Create the tables."""

import django.db.models.deletion
import django.db.models.functions.text
import django.utils.timezone
import reports.models.panels
from django.conf import settings
from django.db import migrations, models

from accounts.migration_operations import CreateModels


class Migration(migrations.Migration):
    initial = True

    replaces = [
        ("reports", name)
        for name in """
            0001_rates 0002_exports 0003_counting_groups 0004_unit_of_counts
            0005_export_codebook_table 0006_opted_out 0007_panels
            0008_threshold_percent 0009_awaiting_consent 0010_people_of_a_panel
            0011_results 0012_scores 0013_hidden_results 0014_publications
            0015_released_sentences 0016_report_archives 0017_essential_errors
            0018_score_format 0019_provenance_of_results 0020_release_reason
            0021_undivided_results 0022_schools_in_undivided_results
            0023_release_results 0024_remove_sentences_from_audit
            0025_roster_groups 0026_threshold_of_coding 0027_repeating_columns
        """.split()
    ]

    dependencies = [("accounts", "0001_tables"), ("survey", "0001_tables")]

    operations = [
        CreateModels([
            migrations.CreateModel('RollUp', [
                ('administration', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='roll_up', serialize=False, to='survey.administration')),
                ('as_of', models.DateTimeField()),
                ('written_at', models.DateTimeField()),
                ('groups_as_of', models.DateTimeField(null=True)),
            ]),
            migrations.CreateModel('Curve', [
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('level', models.CharField(choices=[('all', 'All'), ('district', 'District'), ('school', 'School')], max_length=8)),
                ('place_id', models.BigIntegerField()),
                ('hours', models.TextField()),
                ('administration', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='survey.administration')),
            ], options={'constraints': [models.UniqueConstraint(fields=('administration', 'level', 'place_id'), name='one_curve_per_place_in_an_administration')]}),
            migrations.CreateModel('GradeRate', [
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('grade', models.CharField(blank=True, max_length=16)),
                ('eligible', models.PositiveIntegerField()),
                ('started', models.PositiveIntegerField()),
                ('finished', models.PositiveIntegerField()),
                ('administration', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='survey.administration')),
                ('school', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='accounts.school')),
                ('at_opening', models.PositiveIntegerField(db_default=0, default=0)),
            ], options={'constraints': [models.UniqueConstraint(fields=('administration', 'school', 'grade'), name='one_rate_per_grade_of_a_school')]}),
            migrations.CreateModel('SchoolRate', [
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('eligible', models.PositiveIntegerField(default=0)),
                ('started', models.PositiveIntegerField(default=0)),
                ('finished', models.PositiveIntegerField(default=0)),
                ('finished_today', models.PositiveIntegerField(default=0)),
                ('last_started_at', models.DateTimeField(null=True)),
                ('students', models.PositiveIntegerField(null=True)),
                ('needed', models.PositiveIntegerField(null=True)),
                ('administration', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='rates', to='survey.administration')),
                ('district', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='rates', to='accounts.district')),
                ('school', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='rates', to='accounts.school')),
                ('at_opening', models.PositiveIntegerField(db_default=0, default=0)),
                ('waiting', models.PositiveIntegerField(db_default=0, default=0)),
                ('unit', models.CharField(db_default='', default='', max_length=16)),
                ('opted_out', models.PositiveIntegerField(db_default=0, default=0)),
                ('percent', models.PositiveSmallIntegerField(null=True)),
                ('awaiting_consent', models.PositiveIntegerField(db_default=0, default=0)),
            ], options={
                'indexes': [models.Index(fields=['administration', 'district'], name='rates_of_a_district')],
                'constraints': [models.UniqueConstraint(fields=('administration', 'school'), name='one_rate_per_school_in_an_administration')],
            }),
            migrations.CreateModel('PanelProject', [
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=100)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('key', models.BinaryField(default=reports.models.panels.new_panel_key, max_length=32)),
                ('by', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
            ], options={'constraints': [models.UniqueConstraint(models.F('by'), django.db.models.functions.text.Lower('name'), name='one_panel_project_per_name_of_a_user')]}),
            migrations.CreateModel('Export', [
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('format', models.CharField(choices=[('wide', 'CSV, one row for each respondent'), ('long', 'CSV, one row for each answer'), ('xlsx', 'Excel, one row for each respondent')], max_length=16)),
                ('role', models.CharField(blank=True, choices=[('student', 'Student'), ('teacher', 'Teacher'), ('parent', 'Parent')], max_length=16)),
                ('finished_only', models.BooleanField(default=False)),
                ('language', models.CharField(blank=True, max_length=16)),
                ('labels', models.BooleanField(default=False)),
                ('bom', models.BooleanField(default=False)),
                ('identities', models.BooleanField(default=False)),
                ('reason', models.CharField(blank=True, max_length=500)),
                ('places', models.JSONField(default=dict)),
                ('made_at', models.DateTimeField(null=True)),
                ('expires_at', models.DateTimeField(null=True)),
                ('deleted_at', models.DateTimeField(null=True)),
                ('file_name', models.CharField(blank=True, max_length=100)),
                ('codebook_name', models.CharField(blank=True, max_length=100)),
                ('size', models.BigIntegerField(null=True)),
                ('rows', models.BigIntegerField(null=True)),
                ('respondents', models.BigIntegerField(null=True)),
                ('responses', models.BigIntegerField(null=True)),
                ('sha256', models.CharField(blank=True, max_length=64)),
                ('administrations', models.ManyToManyField(related_name='exports', to='survey.administration')),
                ('by', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='exports', to=settings.AUTH_USER_MODEL)),
                ('district', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='accounts.district')),
                ('job', models.OneToOneField(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='survey.job')),
                ('school', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='accounts.school')),
                ('codebook_table_name', models.CharField(blank=True, db_default='', default='', max_length=100)),
                ('blank_missing', models.JSONField(db_default=[], default=list)),
                ('is_panel', models.BooleanField(db_default=False, default=False)),
                ('joined_people', models.BigIntegerField(null=True)),
                ('project', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='exports', to='reports.panelproject')),
                ('people', models.BigIntegerField(null=True)),
            ], options={
                'ordering': ('-created_at', '-pk'),
                'indexes': [models.Index(fields=['by', '-created_at'], name='exports_of_a_person'), models.Index(condition=models.Q(('file_name', ''), _negated=True), fields=['expires_at'], name='exports_with_a_file')],
                'constraints': [models.CheckConstraint(condition=models.Q(('identities', False), models.Q(('reason', ''), _negated=True), _connector='OR'), name='names_are_exported_for_a_reason'), models.CheckConstraint(condition=models.Q(('file_name', ''), models.Q(('expires_at__isnull', False), ('made_at__isnull', False), models.Q(('sha256', ''), _negated=True), ('deleted_at', None)), _connector='OR'), name='an_exports_file_has_a_checksum_and_an_end'), models.CheckConstraint(condition=models.Q(('is_panel', False), ('identities', False), _connector='OR'), name='a_panel_has_no_names'), models.CheckConstraint(condition=models.Q(('is_panel', True), ('project', None), _connector='OR'), name='only_a_panel_has_a_project')],
            }),
            migrations.CreateModel('ResultsRollUp', [
                ('administration', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='results_roll_up', serialize=False, to='survey.administration')),
                ('as_of', models.DateTimeField()),
                ('written_at', models.DateTimeField()),
                ('layout', models.JSONField()),
                ('hidden_as_of', models.DateTimeField(null=True)),
                ('shared_at', models.DateTimeField(null=True)),
                ('survey_digest', models.CharField(blank=True, db_default='', default='', max_length=64)),
                ('software', models.CharField(blank=True, db_default='', default='', max_length=100)),
                ('undivided', models.JSONField(null=True)),
                ('summed', models.JSONField(null=True)),
                ('kept_schools', models.JSONField(db_default=[], default=list)),
                ('released_at', models.DateTimeField(null=True)),
                ('roster_groups', models.JSONField(db_default=[], default=list)),
                ('coding_threshold', models.PositiveSmallIntegerField(db_default=5, default=5)),
                ('repeating', models.JSONField(db_default=[], default=list)),
                ('minimum_group', models.PositiveSmallIntegerField(null=True)),
            ]),
            migrations.CreateModel('CountedSchool', [
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('school_id', models.BigIntegerField()),
                ('district_id', models.BigIntegerField()),
                ('signature', models.BigIntegerField()),
                ('numbers', models.JSONField(default=dict)),
                ('administration', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='survey.administration')),
                ('counted_at', models.DateTimeField(null=True)),
                ('people', models.BinaryField(db_default=b'', default=b'')),
            ], options={'constraints': [models.UniqueConstraint(fields=('administration', 'school_id'), name='one_counted_state_per_school_in_an_administration')]}),
            migrations.CreateModel('GroupResults', [
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('level', models.CharField(choices=[('state', 'State'), ('district', 'District'), ('school', 'School')], max_length=8)),
                ('place_id', models.BigIntegerField()),
                ('attribute', models.CharField(blank=True, max_length=64)),
                ('value', models.CharField(blank=True, max_length=200)),
                ('people', models.PositiveIntegerField()),
                ('finished', models.PositiveIntegerField()),
                ('counts', models.BinaryField()),
                ('administration', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='survey.administration')),
                ('hidden_items', models.JSONField(db_default=[], default=list)),
                ('is_hidden', models.BooleanField(db_default=False, default=False)),
                ('published_counts', models.BinaryField(null=True)),
                ('published_finished', models.PositiveIntegerField(null=True)),
                ('published_people', models.PositiveIntegerField(null=True)),
            ], options={'constraints': [models.UniqueConstraint(fields=('administration', 'level', 'place_id', 'attribute', 'value'), name='one_result_per_group_of_a_place')]}),
            migrations.CreateModel('Scoring', [
                ('administration', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='scoring', serialize=False, to='survey.administration')),
                ('as_of', models.DateTimeField()),
                ('calculated_at', models.DateTimeField()),
                ('people', models.PositiveIntegerField()),
                ('problems', models.JSONField(default=list)),
                ('format', models.PositiveSmallIntegerField(db_default=1, default=2)),
            ]),
            migrations.CreateModel('Calibration', [
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('measure', models.CharField(max_length=255)),
                ('items', models.JSONField(default=list)),
                ('people', models.PositiveIntegerField()),
                ('reliability', models.FloatField(null=True)),
                ('separation', models.FloatField(null=True)),
                ('scale_mean', models.FloatField(null=True)),
                ('scale_deviation', models.FloatField(null=True)),
                ('scale_unit', models.CharField(blank=True, max_length=8)),
                ('problems', models.JSONField(default=list)),
                ('survey_digest', models.CharField(max_length=64)),
                ('software', models.CharField(max_length=100)),
                ('calculated_at', models.DateTimeField()),
                ('administration', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='calibrations', to='survey.administration')),
                ('anchored_to', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='anchored', to='reports.calibration')),
            ], options={'constraints': [models.UniqueConstraint(fields=('administration', 'measure'), name='one_calibration_per_measure_of_an_administration')]}),
            migrations.CreateModel('ReleasedItem', [
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('measure', models.CharField(max_length=255)),
                ('item', models.CharField(max_length=255)),
                ('at', models.DateTimeField(auto_now_add=True)),
                ('administration', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='survey.administration')),
                ('by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('because', models.CharField(blank=True, db_default='', default='', max_length=500)),
            ], options={'constraints': [models.UniqueConstraint(fields=('administration', 'measure', 'item'), name='an_item_is_released_once_in_an_administration')]}),
            migrations.CreateModel('ScoreRow', [
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('level', models.CharField(choices=[('state', 'State'), ('district', 'District'), ('school', 'School')], max_length=8)),
                ('place_id', models.BigIntegerField()),
                ('attribute', models.CharField(blank=True, max_length=64)),
                ('value', models.CharField(blank=True, max_length=200)),
                ('measures', models.JSONField()),
                ('essentials', models.JSONField(default=dict)),
                ('administration', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='survey.administration')),
                ('essential_errors', models.JSONField(null=True)),
            ], options={'constraints': [models.UniqueConstraint(fields=('administration', 'level', 'place_id', 'attribute', 'value'), name='one_score_row_per_group_of_a_place')]}),
            migrations.CreateModel('Publication', [
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('title', models.CharField(max_length=300)),
                ('basis', models.CharField(max_length=64)),
                ('frame', models.JSONField(default=dict)),
                ('digest', models.CharField(blank=True, max_length=64)),
                ('embargo_until', models.DateTimeField(null=True)),
                ('requested_at', models.DateTimeField(auto_now_add=True)),
                ('published_at', models.DateTimeField(null=True)),
                ('withdrawn_at', models.DateTimeField(null=True)),
                ('withdrawn_because', models.CharField(blank=True, max_length=500)),
                ('administration', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='publications', to='survey.administration')),
                ('job', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='survey.job')),
                ('published_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('withdrawn_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
            ], options={'constraints': [models.UniqueConstraint(condition=models.Q(('withdrawn_at__isnull', True)), fields=('administration',), name='one_publication_of_an_administration_until_withdrawn'), models.CheckConstraint(condition=models.Q(('withdrawn_at__isnull', True), models.Q(('withdrawn_because', ''), _negated=True), _connector='OR'), name='a_withdrawal_has_a_reason'), models.CheckConstraint(condition=models.Q(models.Q(('digest', ''), ('published_at__isnull', True)), models.Q(('published_at__isnull', False), models.Q(('digest', ''), _negated=True)), _connector='OR'), name='what_is_published_has_a_digest')]}),
            migrations.CreateModel('PublishedPlace', [
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('level', models.CharField(choices=[('state', 'State'), ('district', 'District'), ('school', 'School')], max_length=8)),
                ('place_id', models.BigIntegerField()),
                ('district_id', models.BigIntegerField(default=0)),
                ('name', models.CharField(blank=True, max_length=200)),
                ('code', models.CharField(blank=True, max_length=64)),
                ('search', models.CharField(blank=True, max_length=400)),
                ('summary', models.JSONField()),
                ('answers', models.JSONField()),
                ('digest', models.CharField(max_length=64)),
                ('publication', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='places', to='reports.publication')),
            ], options={
                'indexes': [models.Index(fields=['publication', 'district_id', 'name'], name='published_schools_of_district'), models.Index(fields=['place_id', 'level'], name='published_of_a_place')],
                'constraints': [models.UniqueConstraint(fields=('publication', 'level', 'place_id'), name='one_published_row_per_place')],
            }),
            migrations.CreateModel('ReleasedSentence', [
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('item', models.CharField(max_length=255)),
                ('text', models.CharField(max_length=500)),
                ('released_at', models.DateTimeField(auto_now_add=True)),
                ('administration', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='released_sentences', to='survey.administration')),
                ('released_by', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
            ], options={'constraints': [models.UniqueConstraint(fields=('administration', 'item', 'text'), name='one_release_of_a_sentence')]}),
            migrations.CreateModel('ReportArchive', [
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('made_at', models.DateTimeField(null=True)),
                ('expires_at', models.DateTimeField(null=True)),
                ('deleted_at', models.DateTimeField(null=True)),
                ('file_name', models.CharField(blank=True, max_length=100)),
                ('size', models.BigIntegerField(null=True)),
                ('sha256', models.CharField(blank=True, max_length=64)),
                ('language', models.CharField(max_length=16)),
                ('waves', models.JSONField(default=list)),
                ('shows_state', models.BooleanField(default=False)),
                ('schools', models.IntegerField(null=True)),
                ('reports', models.IntegerField(null=True)),
                ('administration', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='survey.administration')),
                ('by', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('district', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='accounts.district')),
                ('job', models.OneToOneField(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='survey.job')),
            ], options={
                'ordering': ('-created_at', '-pk'),
                'indexes': [models.Index(fields=['by', 'administration', '-created_at'], name='archives_of_a_person'), models.Index(condition=models.Q(('file_name', ''), _negated=True), fields=['expires_at'], name='archives_with_a_file')],
                'constraints': [models.CheckConstraint(condition=models.Q(('file_name', ''), models.Q(('expires_at__isnull', False), ('made_at__isnull', False), models.Q(('sha256', ''), _negated=True), ('deleted_at', None)), _connector='OR'), name='an_archive_has_a_checksum_and_an_end')],
            }),
            migrations.CreateModel('FormerPeople', [
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('school_id', models.BigIntegerField()),
                ('people', models.BinaryField()),
                ('counted_at', models.DateTimeField()),
                ('administration', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='survey.administration')),
            ], options={'constraints': [models.UniqueConstraint(fields=('administration', 'school_id', 'counted_at'), name='one_record_of_former_people_per_count_of_a_school')]}),
        ]),
    ]
