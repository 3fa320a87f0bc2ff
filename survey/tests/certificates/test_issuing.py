"""Certify what an erasure destroyed, without a word about anybody."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.utils import timezone

from accounts.models import AuditEntry
from accounts.tests.logging_in import log_in
from survey.models import (
    BackupRun,
    Destruction,
    DestructionCertificate,
    ErasedRecord,
    Erasure,
    Identity,
    Respondent,
    Response,
)
from survey.people.access_codes import code_of
from survey.people.certificates import journal
from survey.people.certificates.digests import combine, digest_rows, new_key
from survey.people.certificates.documents import Verdict, verify
from survey.people.certificates.issuing import (
    DestroyedData,
    DestroyedTable,
    certify_erasures,
    issue_certificate,
    keep_journal,
)
from survey.people.certificates.keys import SigningKeyMissing, own_keys
from survey.people.certificates.pdf import EFFECTS, SYSTEMS
from survey.people.certificates.systems import systems
from survey.people.erasing import erase
from survey.people.erasing.traces import text_of
from survey.tests.certificates.conftest import certified, completed
from survey.tests.erasing.conftest import erased
from survey.tests.erasing.test_erase import fill
from survey.work.files import path_of, private_files

pytestmark = pytest.mark.django_db


def content_of(certificate: DestructionCertificate) -> dict:
    return json.loads(bytes(certificate.document))["certificate"]


@pytest.mark.sqlite
def test_an_erasure_ends_with_a_signed_certificate(
    administration, staff, maya, ali, backup
):
    for person in (maya, ali):
        fill(person, staff.dana)
    code = code_of(maya)
    certificate = certified(maya, by=staff.dana)
    for file in (certificate.document, certificate.pdf):
        assert verify(bytes(file), own_keys()) is Verdict.VALID
    content = content_of(certificate)
    tables = {each["table"]: each for each in content["tables"]}
    assert tables["survey_response"]["rows"] == 1
    assert tables["survey_identity"]["rows"] == 1
    assert all(re.fullmatch("[0-9a-f]{64}", t["digest"]) for t in tables.values())
    assert content["files"] >= 1
    assert content["rounds"] == [
        {"number": administration.pk, "title": str(administration)}
    ]
    assert content["district"] == staff.riverside.name
    name = staff.dana.name or staff.dana.email
    assert content["ordered_by"] == f"{name}, district administrator"
    assert content["reason"] == "A request to delete the data"
    ends = certificate.backups_end
    assert timedelta(days=28) < ends - certificate.issued_at < timedelta(days=37)
    assert content["backups"]["ends"] == ends.isoformat()
    assert content["backups"]["last_backup"] == backup.ended_at.isoformat()
    # Not a word about her.
    text = text_of([certificate.document, certificate.pdf]).casefold()
    for word in ("00123", "zaragoza", "mark of maya", code.casefold()):
        assert word not in text
    # Once, and nobody can make the digests again.
    assert certify_erasures() == 0
    assert DestructionCertificate.objects.count() == 1
    assert Erasure.objects.get().digest_key is None


@pytest.mark.sqlite
def test_where_backups_say_nothing_their_end_is_not_known(staff, maya):
    certificate = certified(maya, by=staff.dana)
    assert certificate.backups_end is None
    assert content_of(certificate)["backups"] == {
        "ends": None,
        "last_backup": None,
        "retention_days": None,
    }


@pytest.mark.sqlite
def test_digests_are_of_the_rows_and_of_a_key_that_nobody_guesses(
    administration, staff, maya
):
    fill(maya, staff.dana)
    answers = Response.objects.filter(respondent_id=maya.pk)
    names = Identity.objects.filter(pk=maya.pk)
    key = new_key()
    before = digest_rows(key, names).hexdigest()
    assert digest_rows(key, names).hexdigest() == before
    assert digest_rows(new_key(), names).hexdigest() != before
    by_function = digest_of_answers(maya, key) if connection.vendor != "sqlite" else ""
    with transaction.atomic():
        names.update(given_name="Mayo")
        assert digest_rows(key, names).hexdigest() != before
        if by_function:
            assert digest_of_answers(maya, key) == by_function
            answers.update(value="something else")
            assert digest_of_answers(maya, key) != by_function
            assert digest_of_answers(maya, new_key()) != by_function


def digest_of_answers(respondent: Respondent, key: bytes) -> str:
    """Let the function delete answers, and bring them back."""
    point = transaction.savepoint()
    Respondent.objects.filter(pk=respondent.pk).update(
        erased_at=timezone.now(), withdrawn_at=timezone.now()
    )
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT deleted, digest FROM survey_erase_answers(%s, %s, %s)",
            [respondent.administration_id, respondent.pk, key],
        )
        [(deleted, digest)] = cursor.fetchall()
    assert deleted == 1
    assert not Response.objects.filter(respondent_id=respondent.pk).exists()
    transaction.savepoint_rollback(point)
    return bytes(digest).hex()


@pytest.mark.sqlite
def test_the_certificates_digest_is_made_of_those_of_the_records(staff, maya, ali):
    """By the key in the journal, as long as there is one."""
    erasure = completed(erased(maya, ali, by=staff.dana))
    key = bytes(erasure.digest_key)
    records = ErasedRecord.objects.filter(erasure=erasure).order_by("pk")
    parts = [record.digests["survey_identity"] for record in records]
    assert len(set(parts)) == 2
    certify_erasures()
    entry = json.loads(path_of(journal.name_of_erasure(erasure)).read_bytes())
    assert entry["certificate"]["digest_key"] == key.hex()
    [digest] = [
        table["digest"]
        for table in content_of(DestructionCertificate.objects.get())["tables"]
        if table["table"] == "survey_identity"
    ]
    assert digest == combine(key, parts) != combine(new_key(), parts)


@pytest.mark.sqlite
def test_without_a_key_people_are_erased_and_certified_later(
    staff, maya, settings, caplog
):
    keys, settings.CERTIFICATE_KEYS = settings.CERTIFICATE_KEYS, []
    erasure = completed(erased(maya, by=staff.dana))
    assert erasure.completed_at
    assert certify_erasures() == 1
    assert "GROUNDSWELL_CERTIFICATE_KEYS" in caplog.text
    assert not private_files().exists(journal.name_of_erasure(erasure))
    settings.CERTIFICATE_KEYS = keys
    assert certify_erasures() == 0
    assert DestructionCertificate.objects.filter(erasure=erasure).exists()
    assert private_files().exists(journal.name_of_erasure(erasure))


@pytest.mark.sqlite
def test_an_erasure_waits_for_its_journal(staff, maya, monkeypatch):
    """Otherwise a restore would bring the person back, and nobody would know."""

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(journal, "keep", full)
        erasure = erased(maya, by=staff.dana)
        early = timezone.now() - timedelta(hours=1)
        Erasure.objects.update(erased_at=early)
        assert erase.files.follow_up_all() == 1
    erasure.refresh_from_db()
    assert erasure.completed_at is None
    assert erase.files.follow_up_all() == 0
    assert private_files().exists(journal.name_of_erasure(erasure))


def of_answers(administration, staff) -> DestroyedData:
    return DestroyedData(
        kind="answers",
        administrations=(administration.pk,),
        district=staff.riverside.pk,
        tables=(DestroyedTable("survey_response", 12, "a" * 64),),
        files=0,
        ordered_by="Dana Ruiz, district administrator",
        reason="An agreement or contract has ended",
        destroyed_at=timezone.now(),
    )


@pytest.mark.sqlite
def test_other_destructions_are_certified_in_their_transaction(
    administration, staff, settings, django_capture_on_commit_callbacks
):
    destruction = Destruction.objects.create(
        administration=administration,
        kind="answers",
        state="done",
        destroyed_at=timezone.now(),
        digest_key=b"k" * 32,
    )
    with django_capture_on_commit_callbacks(execute=True):
        certificate = issue_certificate(of_answers(administration, staff))
        # Only what was committed is in the journal.
        assert not private_files().exists(journal.name_of_certificate(certificate))
    certificate.refresh_from_db()
    assert certificate.journaled_at
    path = path_of(journal.name_of_certificate(certificate))
    [entry] = journal.read([path])
    assert entry["rounds"] == [journal.description_of(administration)]
    assert entry["digest_key"] == (b"k" * 32).hex()
    destruction.refresh_from_db()
    assert destruction.digest_key is None
    # Without a key nothing is destroyed.
    settings.CERTIFICATE_KEYS = []
    with pytest.raises(SigningKeyMissing, match="GROUNDSWELL_CERTIFICATE_KEYS"):
        issue_certificate(of_answers(administration, staff))


@pytest.mark.sqlite
def test_a_certificate_claims_only_what_is_so(administration, staff, maya):
    """Each kind has its stores, and what stays of a round is named."""
    people = content_of(certified(maya, by=staff.dana))
    mails = {"system": "mail queue", "effect": "empties"}
    assert mails in people["systems"]
    answers = of_answers(administration, staff)
    content = content_of(issue_certificate(answers))
    assert content["remains"] == ["numbers and groups", "names", "log"]
    names = {each["system"] for each in content["systems"]}
    assert not names & {"mail queue", "messages Redis"}
    identities = replace(answers, kind="identities")
    content = content_of(issue_certificate(identities))
    assert content["remains"] == ["numbers and groups", "answers", "log"]
    assert mails in content["systems"]
    # Once the answers are destroyed too, they do not remain.
    Destruction.objects.create(
        administration=administration,
        kind="answers",
        state="done",
        destroyed_at=timezone.now(),
    )
    content = content_of(issue_certificate(identities))
    assert content["remains"] == ["numbers and groups", "log"]


@pytest.mark.sqlite
def test_people_of_message_platforms_are_named_where_there_is_their_redis(settings):
    settings.CACHES = {**settings.CACHES, "messages": {"BACKEND": "x"}}
    deleted = {"system": "messages Redis", "effect": "deleted"}
    assert deleted in systems("people") and deleted in systems("identities")
    assert deleted not in systems("answers")
    for kind in ("people", "identities", "answers"):
        for row in systems(kind):
            assert row["system"] in SYSTEMS and row["effect"] in EFFECTS


@pytest.mark.sqlite
def test_the_key_of_digests_waits_for_the_journal(administration, staff):
    """A worker that dies between commit and journal loses nothing."""
    destruction = Destruction.objects.create(
        administration=administration,
        kind="answers",
        state="done",
        destroyed_at=timezone.now(),
        digest_key=b"k" * 32,
    )
    # Nothing runs after the commit here.
    certificate = issue_certificate(of_answers(administration, staff))
    destruction.refresh_from_db()
    assert bytes(destruction.digest_key) == b"k" * 32
    keep_journal()
    [entry] = journal.read([path_of(journal.name_of_certificate(certificate))])
    assert entry["digest_key"] == (b"k" * 32).hex()
    destruction.refresh_from_db()
    assert destruction.digest_key is None


def backed_up(days_ago: float, kind: str = "full", days: int = 28, **details) -> None:
    at = timezone.now() - timedelta(days=days_ago)
    BackupRun.objects.create(
        kind="backup",
        ok=details.pop("ok", True),
        started_at=at - timedelta(hours=1),
        ended_at=at,
        details={"type": kind, "retention_days": days, **details},
    )


def journaled(administration, staff, days_ago: float) -> str:
    """Write the entry of a destruction of some days ago; return its name."""
    certificate = issue_certificate(of_answers(administration, staff))
    keep_journal()
    at = timezone.now() - timedelta(days=days_ago)
    rows = DestructionCertificate.objects.filter(pk=certificate.pk)
    # The date of the certificate has passed, whatever the backups did.
    rows.update(issued_at=at, backups_end=at)
    return journal.name_of_certificate(certificate)


@pytest.mark.sqlite
def test_an_entry_ends_once_a_later_full_backup_is_as_old_as_they_are_kept(
    administration, staff
):
    name = journaled(administration, staff, 40)
    assert private_files().exists(name)
    backed_up(30)
    backed_up(0.1, "incr")
    keep_journal()
    assert not private_files().exists(name)
    keep_journal()
    assert not private_files().exists(name)


@pytest.mark.sqlite
@pytest.mark.parametrize(
    "backups",
    [
        # None was made since the destruction.
        [(41, {})],
        # Backups stopped: nothing has deleted the ones before.
        [(30, {})],
        [(30, {}), (0.1, {"ok": False})],
        # The later full one failed, or was none.
        [(30, {"ok": False}), (0.1, {})],
        [(30, {"kind": "incr"}), (0.1, {})],
        # It is not old enough, by the longer of two settings.
        [(20, {}), (0.1, {})],
        [(30, {"days": 35}), (0.1, {"days": 7})],
        # Another node of the cluster has none.
        [(30, {"node": "a"}), (0.1, {"node": "a"}), (0.1, {"node": "b"})],
    ],
)
def test_an_entry_stays_as_long_as_a_backup_may_need_it(administration, staff, backups):
    name = journaled(administration, staff, 40)
    for days_ago, details in backups:
        backed_up(days_ago, **details)
    keep_journal()
    assert private_files().exists(name)


@pytest.mark.sqlite
def test_an_entry_that_could_not_be_deleted_is_deleted_later(
    administration, staff, monkeypatch
):
    name = journaled(administration, staff, 40)
    backed_up(30)
    backed_up(0.1)
    with monkeypatch.context() as patch:
        patch.setattr(journal, "delete_files", lambda name: None)
        keep_journal()
    assert private_files().exists(name)
    keep_journal()
    assert not private_files().exists(name)


def test_dana_downloads_the_certificate_and_ms_chen_does_not(client, staff, maya):
    certificate = certified(maya, by=staff.dana)
    page = f"/console/erasures/{certificate.erasure_id}/"
    address = f"/console/certificates/{certificate.pk}/"
    for name in ("chen", "sam"):
        log_in(client, getattr(staff, name))
        for suffix in ("pdf", "json"):
            assert client.get(f"{address}{suffix}/").status_code == 404
    log_in(client, staff.dana)
    shown = client.get(page).content.decode()
    assert certificate.fingerprint in shown
    for suffix, stored in (("pdf", certificate.pdf), ("json", certificate.document)):
        assert f"{address}{suffix}/" in shown
        assert client.get(f"{address}{suffix}/").content == bytes(stored)
    keys = client.get("/console/certificates/keys/")
    assert f"SHA-256 {certificate.fingerprint}" in keys.content.decode()
    actions = AuditEntry.objects.filter(kind="survey.destructioncertificate")
    assert sorted(actions.values_list("action", flat=True)) == [
        "download a certificate of destruction",
        "download a certificate of destruction",
        "issue a certificate of destruction",
    ]
