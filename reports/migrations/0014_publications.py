
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('reports', '0013_hidden_results'),
        ('survey', '0060_freeze_measures'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='Publication',
            fields=[
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
            ],
        ),
        migrations.CreateModel(
            name='PublishedPlace',
            fields=[
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
            ],
        ),
        migrations.AddConstraint(
            model_name='publication',
            constraint=models.UniqueConstraint(condition=models.Q(('withdrawn_at__isnull', True)), fields=('administration',), name='one_publication_of_an_administration_until_withdrawn'),
        ),
        migrations.AddConstraint(
            model_name='publication',
            constraint=models.CheckConstraint(condition=models.Q(('withdrawn_at__isnull', True), models.Q(('withdrawn_because', ''), _negated=True), _connector='OR'), name='a_withdrawal_has_a_reason'),
        ),
        migrations.AddConstraint(
            model_name='publication',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('digest', ''), ('published_at__isnull', True)), models.Q(('published_at__isnull', False), models.Q(('digest', ''), _negated=True)), _connector='OR'), name='what_is_published_has_a_digest'),
        ),
        migrations.AddIndex(
            model_name='publishedplace',
            index=models.Index(fields=['publication', 'district_id', 'name'], name='published_schools_of_district'),
        ),
        migrations.AddIndex(
            model_name='publishedplace',
            index=models.Index(fields=['place_id', 'level'], name='published_of_a_place'),
        ),
        migrations.AddConstraint(
            model_name='publishedplace',
            constraint=models.UniqueConstraint(fields=('publication', 'level', 'place_id'), name='one_published_row_per_place'),
        ),
    ]
