"""Restore a backup from before an erasure: the person is there, and then erased."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from provisioning.commands import Refusal, scratch_folder
from provisioning.installation.backups.files import FileRepository
from provisioning.installation.backups.records import archive_log
from provisioning.installation.backups.replaying import (
    JOURNAL,
    collect_journal,
    replay_erasures,
)
from provisioning.installation.backups.repository import Repository
from provisioning.installation.backups.restoring import (
    backup_before,
    restored_database,
    until_time,
)
from provisioning.installation.postgresql import run_sql
from provisioning.measure.benchmarks.stack import private_application

NAME_AND_ANSWER = """
from django.utils import timezone
from accounts.models import Membership, User
from survey.models import Identity, Respondent
from survey.taking.storage import AnswerRow, save_page
dana = User.objects.create_user("dana@example.org", "calm-harbour-42")
Membership.objects.create(user=dana, role="state")
maya, ali = Respondent.objects.order_by("pk")[:2]
for person, family in ((maya, "Zaragoza"), (ali, "Diaz")):
    Identity.objects.update_or_create(
        respondent=person,
        defaults={
            "administration": person.administration,
            "district": person.school.district,
            "external_id": family,
            "family_name": family,
        },
    )
    Respondent.objects.filter(pk=person.pk).update(started_at=timezone.now())
    item = person.administration.published.survey.items.first()
    saved = save_page(
        administration_id=person.administration_id,
        respondent_id=person.pk,
        issue=person.issue,
        revision=1,
        rows=[AnswerRow(item.pk, "a", item.option_set.options.first().value)],
    )
    assert saved.outcome.name == "SAVED", saved
"""
ERASE = """
import json
from datetime import date
from django.conf import settings
from accounts.models import User
from survey.models import Erasure, Identity, Job
from survey.people.certificates.journal import name_of_erasure
from survey.people.erasing.erase import ErasureRequest, order_erasure
from survey.work import jobs
from survey.work.files import path_of
jobs.wake = lambda *_, **__: None
maya = Identity.objects.get(family_name="Zaragoza")
asked = ErasureRequest(date(2026, 9, 1), "parent", "request")
order = order_erasure([maya.pk], asked, by=User.objects.get(email="dana@example.org"))
jobs.run(Job.objects.get(subject_id=order.pk, kind="people.erase").pk)
order = Erasure.objects.get(pk=order.pk)
assert order.erased_at, Job.objects.get(subject_id=order.pk).message
def listed(keys):
    return ",".join(f"{n}={key}" for n, key in keys.items())
print(json.dumps({
    "entry": str(path_of(name_of_erasure(order))),
    "access_code_keys": listed(settings.ACCESS_CODE_KEYS),
    "certificate_keys": ",".join(settings.CERTIFICATE_KEYS),
}))
"""
NAMES = """
SELECT family_name FROM survey_identity
WHERE family_name IN ('Diaz', 'Zaragoza') ORDER BY 1
"""
ANSWERS = """
SELECT i.family_name FROM survey_response r
JOIN survey_identity i USING (respondent_id) ORDER BY 1
"""
ERASED = "SELECT count(*) FROM survey_respondent WHERE erased_at IS NOT NULL"


@dataclass
class Installation:
    """A person was erased after the backup; the journal is in another one."""

    repository: Repository
    before: datetime
    files: Path
    settings: dict[str, str]


@pytest.fixture(scope="module")
def installation(tmp_path_factory) -> Iterator[Installation]:
    files = tmp_path_factory.mktemp("files")
    with private_application(backs_up=True) as application:
        application.open_rehearsal("--respondents=3", "--pages=1", "--items=2")
        application.manage("shell", "-v0", "-c", NAME_AND_ANSWER)
        repository = Repository.of_stack(application.run)
        repository.back_up("full", from_standby=False)
        time.sleep(1.1)
        before = datetime.now(UTC).replace(microsecond=0)
        time.sleep(0.1)
        printed = application.manage("shell", "-v0", "-c", ERASE)
        settings = json.loads(printed.splitlines()[-1])
        archive_log(run=application.run)
        assert application.sql(NAMES) == [["Diaz"]]
        (files / JOURNAL).mkdir()
        shutil.copy(settings.pop("entry"), files / JOURNAL)
        yield Installation(repository, before, files, settings)


def with_keys(folder: Path) -> Path:
    (folder / "secrets").mkdir()
    (folder / "secrets" / "staff_secret_key").write_text("s" * 48)
    return folder


@pytest.mark.slow
def test_who_was_erased_after_the_backup_is_erased_again(installation, tmp_path):
    place = FileRepository(str(tmp_path / "place"), {"RESTIC_PASSWORD": "secret"})
    place.back_up(installation.files, retention_days=1)
    # Also where the files of the machine are lost.
    journal = collect_journal(tmp_path / "journal", place, str(tmp_path / "lost"))
    backup = backup_before(installation.repository.backups(), installation.before)
    until = until_time(backup, installation.before)
    with (
        scratch_folder() as folder,
        restored_database(installation.repository, folder, until) as run,
    ):
        with_keys(folder)
        # The twin: a restore alone brings the person back.
        assert run_sql(NAMES, run=run) == [["Diaz"], ["Zaragoza"]]
        assert run_sql(ANSWERS, run=run) == [["Diaz"], ["Zaragoza"]]
        broken = tmp_path / "broken"
        shutil.copytree(journal, broken)
        [entry] = broken.iterdir()
        entry.write_bytes(entry.read_bytes().replace(b"people", b"person"))
        with pytest.raises(Refusal, match="is not as it was written"):
            replay_erasures(folder, run, broken, installation.settings)
        assert run_sql(NAMES, run=run) == [["Diaz"], ["Zaragoza"]]

        replay_erasures(folder, run, journal, installation.settings)

        assert run_sql(NAMES, run=run) == [["Diaz"]]
        assert run_sql(ANSWERS, run=run) == [["Diaz"]]
        assert run_sql(ERASED, run=run) == [["1"]]


def test_a_journal_that_cannot_be_read_ends_the_restore(tmp_path):
    place, files = str(tmp_path / "place"), tmp_path / "files"
    (files / JOURNAL).mkdir(parents=True)
    (files / JOURNAL / "people-1.json").write_text("{}")
    repository = FileRepository(place, {"RESTIC_PASSWORD": "secret"})
    repository.back_up(files, retention_days=1)
    stranger = FileRepository(place, {"RESTIC_PASSWORD": "guess"})
    with pytest.raises(Refusal, match="can't be read"):
        collect_journal(tmp_path / "journal", stranger, "")
    # The twin, with the passphrase; and what is newer, of this host.
    (files / JOURNAL / "people-2.json").write_text("{}")
    journal = collect_journal(tmp_path / "both", repository, str(files))
    assert {path.name for path in journal.iterdir()} == {
        "people-1.json",
        "people-2.json",
    }
    # Without the keys by which people are found, nothing is restored either.
    with pytest.raises(Refusal, match="has no access_code_key"):
        replay_erasures(tmp_path, tmp_path, journal, {})


def test_an_installation_that_has_erased_nobody_is_restored(tmp_path):
    files = tmp_path / "files"
    files.mkdir()
    repository = FileRepository(str(tmp_path / "place"), {"RESTIC_PASSWORD": "secret"})
    repository.back_up(files, retention_days=1)
    journal = collect_journal(tmp_path / "first", repository, str(files))
    replay_erasures(tmp_path, tmp_path, journal, {})
    # Nor is an older backup of files a reason to stop.
    (files / "rosters").mkdir()
    (files / "rosters" / "a").write_text("a")
    repository.back_up(files, retention_days=1)
    journal = collect_journal(tmp_path / "second", repository, str(files))
    assert list(journal.iterdir()) == []
