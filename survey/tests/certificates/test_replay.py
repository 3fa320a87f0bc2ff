"""Erase once more who is there again after a restore."""

from __future__ import annotations

import json
from datetime import timedelta
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import transaction
from django.utils import timezone

from accounts import audit
from accounts.models import User
from survey.models import (
    DestructionCertificate,
    ErasedId,
    ErasedRecord,
    Erasure,
    Identity,
    Respondent,
    RosterChange,
    RosterUpload,
)
from survey.people.certificates import journal, replay
from survey.people.certificates.documents import sign_json
from survey.people.certificates.issuing import (
    UNKNOWN_ORDERER,
    certify_erasures,
    issue_certificate,
)
from survey.people.certificates.keys import (
    _private_key,
    installation_keys,
    public_bytes,
    signing_key,
)
from survey.tests.certificates.conftest import completed
from survey.tests.certificates.test_issuing import of_answers
from survey.tests.erasing.conftest import erased
from survey.tests.erasing.test_erase import MARKS, fill, marked
from survey.tests.opt_outs.test_modules import come, module
from survey.tests.people import invite
from survey.work.files import path_of

__all__ = ["module"]

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite]


def erased_and_restored(*people: Respondent, by: User) -> Path:
    """Erase people, and bring the database back to before; return the entry."""
    before = transaction.savepoint()
    erasure = erased(*people, by=by)
    assert marked(MARKS) == []
    entry = path_of(journal.name_of_erasure(erasure))
    transaction.savepoint_rollback(before)
    # The twin: without a replay, the restore brings everything back.
    assert ("survey_identity", "family_name") in marked(MARKS)
    assert not ErasedRecord.objects.exists()
    return entry


def replayed(*paths: Path) -> dict:
    printed = StringIO()
    call_command("replay_erasures", *map(str, paths), stdout=printed)
    return json.loads(printed.getvalue())


def test_a_restored_person_is_erased_again_and_nobody_else(staff, maya, ali):
    for person in (maya, ali):
        fill(person, staff.dana)
    entry = erased_and_restored(maya, by=staff.dana)
    result = replayed(entry)
    assert (result["erased"], result["not_the_same"]) == (1, [])
    assert result["rows"] > 5
    assert marked(MARKS) == []
    assert Identity.objects.get().pk == ali.pk
    assert ErasedId.objects.count() == 1
    erasure = Erasure.objects.get()
    assert (erasure.by, erasure.people) == (staff.dana, 1)
    # Its files and its certificate follow, as after every erasure.
    assert completed(erasure).completed_at
    # Replayed again, it finds nobody.
    assert replayed(entry)["erased"] == 0
    assert Erasure.objects.count() == 1


def test_an_order_that_the_backup_had_is_carried_out(staff, maya):
    fill(maya, staff.dana)
    erasure = erased_after_its_order(maya, staff.dana)
    assert replayed(erasure)["erased"] == 1
    assert marked(MARKS) == []
    assert ErasedRecord.objects.get().erased_at


def erased_after_its_order(person: Respondent, by: User) -> Path:
    from survey.people.erasing.erase import order_erasure
    from survey.tests.erasing.conftest import ASKED, run

    erasure = order_erasure([person.pk], ASKED, by=by)
    before = transaction.savepoint()
    entry = path_of(journal.name_of_erasure(run(erasure)))
    transaction.savepoint_rollback(before)
    return entry


def test_a_person_of_the_same_number_is_not_erased(staff, maya, ali):
    """Numbers of rows begin anew: the entry's number is somebody else's by then."""
    entry = erased_and_restored(maya, by=staff.dana)
    Identity.objects.filter(pk=maya.pk).update(external_id="77777", family_name="Lu")
    result = replayed(entry)
    assert (result["erased"], result["not_the_same"]) == (0, [maya.pk])
    assert Identity.objects.count() == 2


def test_a_person_who_has_another_number_is_erased(administration, staff, maya):
    entry = erased_and_restored(maya, by=staff.dana)
    Respondent.objects.filter(pk=maya.pk).delete()
    person = invite(administration, staff.lincoln, "00123", "Maya Zaragoza")
    elsewhere = invite(administration, staff.roosevelt, "00123", "Noor Haddad")
    assert person.pk != maya.pk
    assert replayed(entry)["erased"] == 1
    assert list(Identity.objects.values_list("pk", flat=True)) == [elsewhere.pk]


def test_a_district_that_was_merged_later_is_the_schools_again(staff, maya):
    """The entry has the district of the erasure, which the backup does not know."""
    [entry] = journal.read([erased_and_restored(maya, by=staff.dana)])
    later = {"code": "united", "name": "United"}
    assert replay.replay([{**entry, "district": later}]).erased == 1
    assert Erasure.objects.get().district == staff.riverside


def test_who_came_back_after_an_erasure_that_the_database_has_seen_stays(
    administration, staff, maya, monkeypatch
):
    entry = path_of(journal.name_of_erasure(erased(maya, by=staff.dana)))
    back = invite(administration, staff.lincoln, "00123", "Maya Zaragoza")
    result = replayed(entry)
    assert (result["erased"], result["not_the_same"]) == (0, [])
    assert Identity.objects.get().pk == back.pk
    # The twin.
    monkeypatch.setattr(replay, "has_seen", lambda *_: False)
    assert replayed(entry)["erased"] == 1
    assert not Identity.objects.exists()


def test_an_erasure_that_was_replayed_is_known_by_the_next_restore(
    administration, staff, maya
):
    entry = erased_and_restored(maya, by=staff.dana)
    assert replayed(entry)["erased"] == 1
    of_replay = path_of(journal.name_of_erasure(Erasure.objects.get()))
    invite(administration, staff.lincoln, "00123", "Maya Zaragoza")
    assert replayed(entry, of_replay)["erased"] == 0
    assert Identity.objects.count() == 1


@pytest.mark.parametrize("evidence", ["answers", "log", "roster"])
def test_who_came_after_the_erasure_under_another_number_stays(
    administration, staff, maya, evidence, monkeypatch
):
    entry = erased_and_restored(maya, by=staff.dana)
    Respondent.objects.filter(pk=maya.pk).delete()
    person = invite(administration, staff.lincoln, "00123", "Maya Zaragoza")
    if evidence == "roster":
        upload = RosterUpload.objects.create(
            administration=administration,
            by=staff.dana,
            name="roster.csv",
            size=1,
            state="applied",
            confirmed_at=timezone.now(),
            confirmed_by=staff.dana,
            ended_at=timezone.now(),
        )
        RosterChange.objects.create(upload=upload, respondent=person, change="a")
    if evidence == "answers":
        Respondent.objects.filter(pk=person.pk).update(started_at=timezone.now())
    if evidence == "log":
        audit.record("add a person", by=staff.dana, subject=person)
    pk = Identity.objects.get().pk
    result = replayed(entry)
    assert (result["erased"], result["not_the_same"]) == (0, [pk])
    # The twin: by the ID alone, the person would be erased.
    monkeypatch.setattr(replay, "_came_later", lambda *_: [])
    assert replayed(entry)["erased"] == 1


def test_a_namesake_in_a_later_district_of_the_same_number_stays(
    administration, staff, maya
):
    entry = erased_and_restored(maya, by=staff.dana)
    Respondent.objects.filter(pk=maya.pk).delete()
    staff.riverside.code = "delta"
    staff.riverside.save(update_fields=["code"])
    invite(administration, staff.lincoln, "00123", "Noor Haddad")
    assert replayed(entry)["erased"] == 0
    assert not ErasedId.objects.exists()
    # The twin: in the district of the entry, the ID is the erased person's.
    staff.riverside.code = "riverside"
    staff.riverside.save(update_fields=["code"])
    assert replayed(entry)["erased"] == 1


def test_nobody_is_named_who_did_not_order_it(staff, maya):
    entry = erased_and_restored(maya, by=staff.dana)
    later = timezone.now() + timedelta(hours=1)
    User.objects.filter(pk=staff.dana.pk).update(date_joined=later)
    assert replayed(entry)["erased"] == 1
    erasure = completed(Erasure.objects.get())
    assert certify_erasures() == 0
    content = json.loads(bytes(erasure.certificate.document))["certificate"]
    assert content["ordered_by"] == UNKNOWN_ORDERER


def test_who_ordered_it_is_named_where_the_backup_has_the_user(staff, maya):
    """The twin."""
    entry = erased_and_restored(maya, by=staff.dana)
    assert replayed(entry)["erased"] == 1
    erasure = completed(Erasure.objects.get())
    assert certify_erasures() == 0
    content = json.loads(bytes(erasure.certificate.document))["certificate"]
    assert content["ordered_by"].endswith(", district administrator")


def test_answers_in_a_districts_module_are_erased_again(staff, maya, ali, module):
    hers, his = come(module, maya), come(module, ali)
    result = replayed(erased_and_restored(maya, by=staff.dana))
    assert (result["erased"], result["not_the_same"]) == (1, [])
    hers.refresh_from_db()
    his.refresh_from_db()
    assert hers.erased_at and not his.erased_at


def test_people_whom_the_backup_does_not_know_yet_stay_away(staff, maya):
    entry = erased_and_restored(maya, by=staff.dana)
    Respondent.objects.filter(pk=maya.pk).delete()
    assert replayed(entry)["erased"] == 0
    assert ErasedId.objects.get().district_id == staff.riverside.pk


def test_a_journal_that_cannot_be_read_erases_nobody(staff, maya, tmp_path, settings):
    entry = erased_and_restored(maya, by=staff.dana)
    broken = tmp_path / "broken.json"
    broken.write_bytes(entry.read_bytes()[:-9])
    later = tmp_path / "later.json"
    later.write_bytes(sign_json({"format": "later"}, signing_key()))
    for path, reason in (
        (broken, "is not as it was written"),
        (later, "is no entry of this release"),
        (tmp_path / "none", "does not exist"),
    ):
        # Nor are those erased whose entries can be read.
        with pytest.raises(CommandError, match=reason):
            replayed(entry, path)
    settings.CERTIFICATE_KEYS = ["another installation " + "o" * 32]
    with pytest.raises(CommandError, match="add the earlier text after"):
        replayed(entry)
    assert Identity.objects.filter(pk=maya.pk).exists()


def test_a_row_of_the_database_makes_no_entry_trusted(
    staff, maya, settings, tmp_path, monkeypatch
):
    """Whoever writes rows would have answers deleted by the next restore."""
    entry = erased_and_restored(maya, by=staff.dana)
    forger = _private_key("a stranger " + "s" * 32)
    [content] = journal.read([entry])
    forged = tmp_path / "forged.json"
    forged.write_bytes(sign_json(content, forger))
    DestructionCertificate.objects.create(
        kind="people",
        issued_at=timezone.now(),
        document=b"",
        pdf=b"",
        public_key=public_bytes(forger),
    )
    with pytest.raises(CommandError, match="not in GROUNDSWELL_CERTIFICATE_KEYS"):
        replayed(forged)
    assert Identity.objects.filter(pk=maya.pk).exists()
    # The twin: with the keys of rows, the forged entry erases.
    monkeypatch.setattr(journal, "own_keys", installation_keys)
    assert replayed(forged)["erased"] == 1


def test_other_destructions_are_replayed_by_their_functions(
    administration, staff, monkeypatch, django_capture_on_commit_callbacks
):
    with django_capture_on_commit_callbacks(execute=True):
        certificate = issue_certificate(of_answers(administration, staff))
    entry = path_of(journal.name_of_certificate(certificate))
    monkeypatch.setattr(replay, "_kinds", {})
    with pytest.raises(CommandError, match="cannot replay a destruction of answers"):
        replayed(entry)
    seen = []

    def destroy(entry: dict, result: replay.Result) -> None:
        seen.append([each["number"] for each in entry["rounds"]])
        result.rows += 7

    replay.replays("answers")(destroy)
    assert replayed(entry)["rows"] == 7
    assert seen == [[administration.pk]]


def test_an_empty_journal_is_read(tmp_path):
    assert replayed(tmp_path)["entries"] == 0
