from django.db import migrations, models
from django.db.models import Q

import reports.models.panels


class Migration(migrations.Migration):

    oldest_release = "1.0.0"

    dependencies = [
        ('reports', '0008_documents_of_exports'),
    ]

    operations = [
        migrations.AlterField(
            model_name='panelproject',
            name='key',
            field=models.BinaryField(default=reports.models.panels.new_panel_key, max_length=32, null=True),
        ),
        migrations.AddField(
            model_name='panelproject',
            name='purpose',
            field=models.CharField(blank=True, db_default='', default='', max_length=1000),
        ),
        migrations.AddField(
            model_name='panelproject',
            name='people',
            field=models.CharField(blank=True, db_default='', default='', max_length=1000),
        ),
        migrations.AddField(
            model_name='panelproject',
            name='approval_number',
            field=models.CharField(blank=True, db_default='', default='', max_length=100),
        ),
        migrations.AddField(
            model_name='panelproject',
            name='ends_on',
            field=models.DateField(null=True),
        ),
        migrations.AddField(
            model_name='panelproject',
            name='ended_at',
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name='export',
            name='further_formats',
            field=models.JSONField(db_default=[], default=list),
        ),
        migrations.AddField(
            model_name='export',
            name='recipient',
            field=models.CharField(blank=True, db_default='', default='', max_length=2000),
        ),
        migrations.AddField(
            model_name='export',
            name='sealed_password',
            field=models.CharField(blank=True, db_default='', default='', max_length=500),
        ),
        migrations.RemoveConstraint(
            model_name='export',
            name='only_a_panel_has_a_project',
        ),
        migrations.AddConstraint(
            model_name='panelproject',
            constraint=models.CheckConstraint(condition=Q(('ended_at', None), ('key__isnull', False)) | Q(('ended_at__isnull', False), ('key', None)), name='a_project_has_a_key_until_it_ends'),
        ),
        migrations.AddConstraint(
            model_name='panelproject',
            constraint=models.CheckConstraint(condition=Q(('ended_at', None), ('ends_on', None)) | (Q(('ends_on__isnull', False)) & ~Q(('purpose', '')) & ~Q(('people', ''))), name='an_approved_project_has_a_purpose_and_people'),
        ),
        migrations.AddConstraint(
            model_name='export',
            constraint=models.CheckConstraint(condition=Q(('is_panel', True)) | Q(('project', None)) | Q(('format', 'keys')), name='only_a_panel_or_a_key_table_has_a_project'),
        ),
        migrations.AddConstraint(
            model_name='export',
            constraint=models.CheckConstraint(condition=~Q(('format', 'keys')) | Q(('identities', True), ('project__isnull', False)), name='a_key_table_is_of_a_project_and_tells_ids'),
        ),
        migrations.AddConstraint(
            model_name='export',
            constraint=models.CheckConstraint(condition=~Q(('format', 'return')) | Q(('district__isnull', False), ('identities', True)), name='data_are_returned_to_one_district_with_names'),
        ),
    ]
