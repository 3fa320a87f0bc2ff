"""Create the tables."""

import accounts.models
import django.db.models.deletion
import django.db.models.functions.comparison
import django.db.models.functions.text
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

from accounts.migration_operations import CreateModels


class Migration(migrations.Migration):
    initial = True

    replaces = [
        ("accounts", name)
        for name in """
            0001_initial 0002_membership_and_audit 0004_lower_case_emails
            0005_logging_in 0006_audit_by_person_and_action
            0008_school_directory 0012_school_contacts
            0014_list_schools_of_a_district 0015_merges 0016_place_settings
            0017_closed_places 0018_language_of_users
            0019_minimum_group_of_places 0020_login_attempts_in_progress
            0021_when_rosters_added_schools 0022_coding_threshold
        """.split()
    ]

    dependencies = [("auth", "0012_alter_user_first_name_max_length")]

    operations = [
        CreateModels([
            migrations.CreateModel('District', [
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('code', models.CharField(max_length=64, unique=True)),
                ('name', models.CharField(max_length=200)),
                ('closed_at', models.DateTimeField(blank=True, null=True)),
            ], options={'ordering': ('name',)}),
            migrations.CreateModel('User', [
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('password', models.CharField(max_length=128, verbose_name='password')),
                ('last_login', models.DateTimeField(blank=True, null=True, verbose_name='last login')),
                ('is_superuser', models.BooleanField(default=False, help_text='Designates that this user has all permissions without explicitly assigning them.', verbose_name='superuser status')),
                ('first_name', models.CharField(blank=True, max_length=150, verbose_name='first name')),
                ('last_name', models.CharField(blank=True, max_length=150, verbose_name='last name')),
                ('is_staff', models.BooleanField(default=False, help_text='Designates whether the user can log into this admin site.', verbose_name='staff status')),
                ('is_active', models.BooleanField(default=True, help_text='Designates whether this user should be treated as active. Unselect this instead of deleting accounts.', verbose_name='active')),
                ('date_joined', models.DateTimeField(default=django.utils.timezone.now, verbose_name='date joined')),
                ('email', models.EmailField(max_length=254, unique=True)),
                ('groups', models.ManyToManyField(blank=True, help_text='The groups this user belongs to. A user will get all permissions granted to each of their groups.', related_name='user_set', related_query_name='user', to='auth.group', verbose_name='groups')),
                ('user_permissions', models.ManyToManyField(blank=True, help_text='Specific permissions for this user.', related_name='user_set', related_query_name='user', to='auth.permission', verbose_name='user permissions')),
                ('session_series', models.PositiveIntegerField(db_default=0, default=0)),
                ('language', models.CharField(blank=True, db_default='', default='', max_length=10)),
            ], options={'constraints': [models.UniqueConstraint(django.db.models.functions.text.Lower('email'), name='one_user_per_email_in_any_case'), models.CheckConstraint(condition=models.Q(('email', django.db.models.functions.text.Lower('email'))), name='a_user_logs_in_by_a_lower_case_email')]}, managers=[('objects', accounts.models.UserManager())]),
            migrations.CreateModel('School', [
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('code', models.CharField(max_length=64)),
                ('name', models.CharField(max_length=200)),
                ('district', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='schools', to='accounts.district')),
                ('closed_at', models.DateTimeField(blank=True, null=True)),
                ('added_at', models.DateTimeField(blank=True, editable=False, null=True)),
            ], options={
                'ordering': ('name',),
                'constraints': [models.UniqueConstraint(fields=('district', 'code'), name='one_school_per_code_in_a_district')],
            }),
            migrations.CreateModel('AuditEntry', [
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('at', models.DateTimeField(default=django.utils.timezone.now)),
                ('user_id', models.BigIntegerField(null=True)),
                ('by', models.CharField(max_length=254)),
                ('address', models.CharField(blank=True, max_length=45)),
                ('action', models.CharField(max_length=64)),
                ('kind', models.CharField(blank=True, max_length=64)),
                ('subject_id', models.BigIntegerField(null=True)),
                ('subject', models.CharField(blank=True, max_length=254)),
                ('district_id', models.BigIntegerField(null=True)),
                ('school_id', models.BigIntegerField(null=True)),
                ('before', models.JSONField(default=dict)),
                ('after', models.JSONField(default=dict)),
            ], options={
                'verbose_name_plural': 'audit entries',
                'ordering': ('-at', '-id'),
                'indexes': [models.Index(fields=['-at', '-id'], name='audit_newest'), models.Index(fields=['district_id', '-at'], name='audit_of_a_district'), models.Index(fields=['school_id', '-at'], name='audit_of_a_school'), models.Index(fields=['kind', 'subject_id', '-at'], name='audit_of_a_thing'), models.Index(fields=['by', '-at'], name='audit_by_a_person'), models.Index(fields=['action', '-at'], name='audit_of_an_action')],
            }),
            migrations.CreateModel('Membership', [
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('role', models.CharField(choices=[('state', 'state administrator'), ('district', 'district administrator'), ('coordinator', 'school coordinator'), ('analyst', 'analyst')], max_length=16)),
                ('began_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('ended_at', models.DateTimeField(blank=True, null=True)),
                ('district', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='memberships', to='accounts.district')),
                ('school', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='memberships', to='accounts.school')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='memberships', to=settings.AUTH_USER_MODEL)),
            ], options={
                'ordering': ('user', 'role'),
                'constraints': [models.CheckConstraint(condition=models.Q(models.Q(('district', None), ('role', 'state'), ('school', None)), models.Q(('district__isnull', False), ('role', 'district'), ('school', None)), models.Q(('district', None), ('role', 'coordinator'), ('school__isnull', False)), models.Q(('district', None), ('role', 'analyst')), models.Q(('role', 'analyst'), ('school', None)), _connector='OR'), name='a_role_has_the_place_it_is_about'), models.UniqueConstraint(models.F('user'), models.F('role'), django.db.models.functions.comparison.Coalesce('district', 0), django.db.models.functions.comparison.Coalesce('school', 0), condition=models.Q(('ended_at', None)), name='one_current_membership_of_a_kind_in_a_place')],
            }),
            migrations.CreateModel('FailedTries', [
                ('key', models.CharField(max_length=64, primary_key=True, serialize=False)),
                ('failures', models.PositiveIntegerField(default=0)),
                ('last_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('in_progress', models.BooleanField(db_default=False, default=False)),
            ], options={
                'verbose_name_plural': 'failed tries',
                'indexes': [models.Index(fields=['last_at'], name='failed_tries_oldest')],
            }),
            migrations.CreateModel('Invitation', [
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.PositiveIntegerField(default=1)),
                ('sent_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('user', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='invitation', to=settings.AUTH_USER_MODEL)),
            ]),
            migrations.CreateModel('Letter', [
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(max_length=64)),
                ('to', models.EmailField(max_length=254)),
                ('facts', models.JSONField(default=dict)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('due_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('attempts', models.PositiveSmallIntegerField(default=0)),
            ], options={'indexes': [models.Index(fields=['due_at'], name='letters_due')]}),
            migrations.CreateModel('SchoolWord', [
                ('word', models.CharField(max_length=64, primary_key=True, serialize=False)),
                ('reverse', models.CharField(max_length=64)),
                ('schools', models.PositiveIntegerField()),
            ]),
            migrations.CreateModel('SchoolListing', [
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
                ('contact_name', models.CharField(blank=True, db_default='', default='', max_length=100)),
                ('contact_phone', models.CharField(blank=True, db_default='', default='', max_length=40)),
                ('contact_email', models.EmailField(blank=True, db_default='', default='', max_length=254)),
                ('closed', models.BooleanField(db_default=False, default=False, editable=False)),
            ], options={
                'constraints': [models.CheckConstraint(condition=models.Q(models.Q(('latitude__isnull', True), ('longitude__isnull', True)), models.Q(('latitude__isnull', False), ('latitude__range', (-90, 90)), ('longitude__isnull', False), ('longitude__range', (-180, 180))), _connector='OR'), name='a_listed_school_is_on_the_earth')],
                'indexes': [models.Index(fields=['district', 'search'], name='schools_of_a_district')],
            }),
            migrations.CreateModel('DistrictAlias', [
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('code', models.CharField(max_length=64)),
                ('name', models.CharField(max_length=200)),
                ('district', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='aliases', to='accounts.district')),
            ], options={'verbose_name_plural': 'district aliases'}),
            migrations.CreateModel('SchoolAlias', [
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('code', models.CharField(max_length=64)),
                ('name', models.CharField(max_length=200)),
                ('school', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='aliases', to='accounts.school')),
            ], options={'verbose_name_plural': 'school aliases'}),
            migrations.CreateModel('Logo', [
                ('name', models.CharField(max_length=64, primary_key=True, serialize=False)),
                ('content', models.BinaryField()),
            ]),
            migrations.CreateModel('PlaceSettings', [
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(blank=True, max_length=60)),
                ('contact_name', models.CharField(blank=True, max_length=100)),
                ('contact_phone', models.CharField(blank=True, max_length=40)),
                ('contact_email', models.EmailField(blank=True, max_length=254)),
                ('student_percent', models.PositiveSmallIntegerField(blank=True, null=True)),
                ('teacher_percent', models.PositiveSmallIntegerField(blank=True, null=True)),
                ('parent_percent', models.PositiveSmallIntegerField(blank=True, null=True)),
                ('district', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='settings', to='accounts.district')),
                ('school', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='settings', to='accounts.school')),
                ('logo', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='accounts.logo')),
                ('minimum_group', models.PositiveSmallIntegerField(blank=True, null=True)),
                ('coding_threshold', models.PositiveSmallIntegerField(blank=True, null=True)),
            ], options={
                'verbose_name_plural': 'place settings',
                'constraints': [models.CheckConstraint(condition=models.Q(('district', None), ('school', None), _connector='OR'), name='settings_belong_to_one_place'), models.UniqueConstraint(django.db.models.functions.comparison.Coalesce('district', 0), django.db.models.functions.comparison.Coalesce('school', 0), name='one_row_of_settings_per_place'), models.CheckConstraint(condition=models.Q(models.Q(('student_percent', None), ('student_percent__range', (1, 100)), _connector='OR'), models.Q(('teacher_percent', None), ('teacher_percent__range', (1, 100)), _connector='OR'), models.Q(('parent_percent', None), ('parent_percent__range', (1, 100)), _connector='OR')), name='a_threshold_is_1_to_100_percent'), models.CheckConstraint(condition=models.Q(('minimum_group', None), ('minimum_group__range', (1, 100)), _connector='OR'), name='a_minimum_group_of_a_place_is_1_to_100'), models.CheckConstraint(condition=models.Q(('coding_threshold', None), models.Q(('coding_threshold__range', (1, 20)), ('district', None), ('school', None)), _connector='OR'), name='a_coding_threshold_is_1_to_20_percent_of_the_state')],
            }),
        ]),
    ]
