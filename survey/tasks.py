"""Celery tasks; each fetches by id and calls one function.

Importing this module registers all jobs of the app (see `survey.work.jobs`).
"""

from __future__ import annotations

from celery import shared_task
from django.db import InterfaceError, OperationalError

from survey.fieldwork.emails import samples, sending  # noqa: F401 - samples for its job
from survey.fieldwork.login_cards import card_sets  # noqa: F401 - for its job
from survey.fieldwork.message_platforms import rebuild as message_platforms
from survey.fieldwork.open_codes import batches as open_code_batches  # noqa: F401 - for its job
from survey.fieldwork.open_codes import (
    code_files,  # noqa: F401 - for its job
    empty_starts,
    seats,
)
from survey.instrument.definitions import uploads as survey_uploads  # noqa: F401 - for its job
from survey.models import CardSet, OpenCodeFile, PersonFile
from survey.people.certificates import issuing as certificates
from survey.people.erasing import erase
from survey.people.erasing import files as files_of_erased_people
from survey.people.merging import joins, merges  # noqa: F401 - for their jobs
from survey.people.retention import (
    counting,  # noqa: F401 - for its job
    orders,
    replays,  # noqa: F401 - for the journal
)
from survey.people.rosters import retention
from survey.people.rosters import undo as roster_undo  # noqa: F401 - for its job
from survey.people.rosters import uploads as roster_uploads  # noqa: F401 - for its jobs
from survey.people.rosters.feeds import schedule as feed_schedule
from survey.people.schools import lists
from survey.people.schools import uploads as school_uploads  # noqa: F401 - for its jobs
from survey.work import jobs, requested_files
from survey.work.job_turns import run_next


# Otherwise a job would wait half a minute for `wake_forgotten_jobs`, because the
# database was away for a second.
@shared_task(
    autoretry_for=(OperationalError, InterfaceError), retry_backoff=1, max_retries=5
)
def run_job(pk: int) -> None:
    run_next(pk)


@shared_task
def wake_forgotten_jobs() -> None:
    jobs.wake_forgotten()


@shared_task
def forget_old_rosters() -> None:
    retention.cancel_abandoned_uploads()
    retention.delete_old_files()
    retention.forget_decided_lists()
    feed_schedule.delete_old_files()


@shared_task
def start_feed_scans() -> None:
    feed_schedule.start_due()


@shared_task
def return_unused_seats() -> None:
    seats.return_unused_seats()


@shared_task
def delete_empty_starts() -> None:
    empty_starts.delete_empty_starts()


@shared_task
def delete_old_cards() -> None:
    requested_files.delete_expired(CardSet, OpenCodeFile, PersonFile)


@shared_task
def keep_messages() -> None:
    message_platforms.keep_up()


@shared_task
def check_messages() -> None:
    message_platforms.start_check()


@shared_task
def start_emails() -> None:
    sending.start_due()


@shared_task
def refresh_lists() -> None:
    lists.refresh_expired()


@shared_task
def check_erasures() -> None:
    erase.resume_erasures()
    files_of_erased_people.follow_up_all()
    certificates.certify_erasures()
    certificates.keep_journal()


@shared_task
def apply_retention() -> None:
    orders.apply_retention()
