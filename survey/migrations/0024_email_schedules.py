

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('survey', '0023_counted_groups'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='SuppressedAddress',
            fields=[
                ('digest', models.CharField(max_length=64, primary_key=True, serialize=False)),
                ('reason', models.CharField(choices=[('opted out', 'Opted Out'), ('bounced', 'Bounced'), ('complained', 'Complained')], max_length=16)),
                ('at', models.DateTimeField()),
            ],
            options={
                'verbose_name_plural': 'suppressed addresses',
            },
        ),
        migrations.CreateModel(
            name='EmailSchedule',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('rate_per_minute', models.PositiveIntegerField(default=600)),
                ('confirmed_at', models.DateTimeField(null=True)),
                ('paused_at', models.DateTimeField(null=True)),
                ('pause_reason', models.CharField(blank=True, max_length=200)),
                ('trouble', models.CharField(blank=True, max_length=200)),
                ('administration', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='email_schedule', to='survey.administration')),
                ('confirmed_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
        ),
        migrations.CreateModel(
            name='EmailStep',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(choices=[('invitation', 'Invitation'), ('reminder', 'Reminder'), ('thanks', 'Thanks')], max_length=16)),
                ('days', models.PositiveSmallIntegerField(default=0)),
                ('position', models.BigIntegerField(default=0)),
                ('rests_until', models.DateTimeField(null=True)),
                ('schedule', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='steps', to='survey.emailschedule')),
            ],
            options={
                'ordering': ('kind', 'days'),
            },
        ),
        migrations.CreateModel(
            name='EmailDelivery',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('state', models.CharField(choices=[('claimed', 'Claimed'), ('sent', 'Sent'), ('bounced', 'Bounced'), ('failed', 'Failed'), ('cancelled', 'Cancelled')], max_length=16)),
                ('reason', models.CharField(blank=True, choices=[('busy', 'refused for now'), ('refused', 'Refused'), ('unconfirmed', 'the mail server did not confirm it'), ('no address', 'not an e-mail address'), ('error', 'could not be written'), ('abandoned', 'the worker stopped while sending it')], max_length=16)),
                ('address_digest', models.CharField(max_length=64)),
                ('attempts', models.PositiveSmallIntegerField(default=1)),
                ('repeated', models.BooleanField(default=False)),
                ('claimed_at', models.DateTimeField()),
                ('recorded_at', models.DateTimeField(null=True)),
                ('retry_at', models.DateTimeField(null=True)),
                ('job_id', models.BigIntegerField()),
                ('job_attempt', models.PositiveSmallIntegerField()),
                ('respondent', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='survey.respondent')),
                ('step', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='deliveries', to='survey.emailstep')),
            ],
        ),
        migrations.CreateModel(
            name='EmailTemplate',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('language', models.CharField(max_length=16)),
                ('subject', models.CharField(max_length=150)),
                ('body', models.TextField(max_length=10000)),
                ('step', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='templates', to='survey.emailstep')),
            ],
            options={
                'ordering': ('language',),
            },
        ),
        migrations.AddConstraint(
            model_name='emailschedule',
            constraint=models.CheckConstraint(condition=models.Q(('rate_per_minute__gte', 1), ('rate_per_minute__lte', 60000)), name='emails_are_sent_at_a_possible_rate'),
        ),
        migrations.AddConstraint(
            model_name='emailstep',
            constraint=models.UniqueConstraint(fields=('schedule', 'kind', 'days'), name='one_email_of_a_kind_after_so_many_days'),
        ),
        migrations.AddConstraint(
            model_name='emailstep',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('days__gte', 1), ('kind', 'reminder')), models.Q(('days', 0), ('kind__in', ('invitation', 'thanks'))), _connector='OR'), name='only_reminders_wait_for_days'),
        ),
        migrations.AddIndex(
            model_name='emaildelivery',
            index=models.Index(fields=['step', 'claimed_at'], name='emails_by_time'),
        ),
        migrations.AddIndex(
            model_name='emaildelivery',
            index=models.Index(condition=models.Q(('state', 'claimed'), ('retry_at__isnull', False), _connector='OR'), fields=['step'], name='emails_in_hand'),
        ),
        migrations.AddConstraint(
            model_name='emaildelivery',
            constraint=models.UniqueConstraint(fields=('step', 'respondent'), name='one_email_per_person_and_step'),
        ),
        migrations.AddConstraint(
            model_name='emaildelivery',
            constraint=models.CheckConstraint(condition=models.Q(('retry_at', None), ('state', 'failed'), _connector='OR'), name='only_failed_emails_are_tried_again'),
        ),
        migrations.AddConstraint(
            model_name='emailtemplate',
            constraint=models.UniqueConstraint(fields=('step', 'language'), name='one_text_per_email_and_language'),
        ),
        migrations.AddConstraint(
            model_name='emailtemplate',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('subject__contains', '\n'), _negated=True), models.Q(('subject__contains', '\r'), _negated=True)), name='a_subject_is_one_line'),
        ),
    ]
