"""Erase once more who is there again after a restore."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import transaction

from accounts.models import User
from survey.models import ErasedId, ErasedRecord, Erasure, Identity, Respondent
from survey.people.certificates import journal, replay
from survey.people.certificates.documents import sign_json
from survey.people.certificates.issuing import issue_certificate
from survey.people.certificates.keys import signing_key
from survey.tests.certificates.conftest import completed
from survey.tests.certificates.test_issuing import of_answers
from survey.tests.erasing.conftest import erased
from survey.tests.erasing.test_erase import MARKS, fill, marked
from survey.tests.people import invite
from survey.work.files import path_of

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
    assert replay.replay([{**entry, "district": 99_999}]).erased == 1
    assert Erasure.objects.get().district == staff.riverside


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
    with pytest.raises(CommandError, match="unknown key"):
        replayed(entry)
    assert Identity.objects.filter(pk=maya.pk).exists()


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
    replay.replays("answers")(lambda entry: seen.append(entry["administrations"]) or 7)
    assert replayed(entry)["rows"] == 7
    assert seen == [[administration.pk]]


def test_an_empty_journal_is_read(tmp_path):
    assert replayed(tmp_path)["entries"] == 0
