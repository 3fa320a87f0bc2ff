"""Destroy names, and then answers, of a closed round; its record says what."""

from __future__ import annotations

import json
from datetime import timedelta
from hashlib import sha256

import pytest
from django.core.exceptions import ValidationError
from django.core.management import CommandError, call_command
from django.db import DatabaseError, IntegrityError, connection, transaction
from django.utils import timezone

from accounts.models import AuditEntry
from accounts.tables import Erasing
from survey.fieldwork.administrations.changes import reopen_administration
from survey.fieldwork.login_cards.card_sets import people_in
from survey.fieldwork.login_cards.refusals import reason_not_made
from survey.models import (
    Administration,
    CardSet,
    Destruction,
    DestructionCertificate,
    Identity,
    Job,
    RecordJoin,
    Respondent,
    Response,
    RosterUpload,
)
from survey.people.access_codes import code_of
from survey.people.certificates import journal
from survey.people.certificates.issuing import (
    DestroyedData,
    issue_certificate,
    journal_certificate,
)
from survey.people.certificates.journal import JournalError
from survey.people.certificates.keys import SigningKeyMissing
from survey.people.certificates.replay import Result, replay
from survey.people.erasing import stored
from survey.people.opt_outs.listed_ids import EarlyId, keep_ids
from survey.people.opt_outs.records import OptOutConflict, Request
from survey.people.person_changes.additions import NewPerson, add_person
from survey.people.person_changes.records import PersonConflict
from survey.people.retention import destroy as destroying
from survey.people.retention import replays
from survey.people.retention.counting import count_rows, request_count
from survey.people.retention.orders import (
    DestructionRefused,
    apply_retention,
    order_destruction,
)
from survey.people.retention.replays import replay_destruction
from survey.people.retention.row_digests import Tallies
from survey.taking.login import LoginRefused, log_in_respondent
from survey.tests.erasing.test_erase import HEADER, MAYA, marked
from survey.tests.retention.conftest import (
    ANSWERS,
    NAMES,
    close,
    destroy,
    hold,
    job_of,
    keep_for,
    row_of,
    run,
)
from survey.tests.rosters.roster_imports import run_import
from survey.work import jobs
from survey.work.files import path_of

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite]
# Answers have marks of people too: see `fill`.
IDS = ["00123", "00124", "zaragoza", "diaz"]


def answers_of(administration):
    return Response.objects.filter(administration_id=administration.pk)


def test_names_go_and_numbers_stay(filled, staff, maya):
    digest = bytes(row_of(maya).code_digest)
    assert marked(IDS)
    counts = count_rows(filled.pk, NAMES)

    destruction = destroy(filled, NAMES)

    # An address on the state's list of those that must not be written to stays.
    assert marked(IDS) == []
    for erasing in (Erasing.DELETED, Erasing.RELEASED):
        for model, rows in stored.rows_of_round(filled.pk, erasing):
            assert model is Response or not rows.exists(), model
    person = row_of(maya)
    assert bytes(person.code_digest) != digest
    assert (person.classroom, person.school_id) == ("", staff.lincoln.pk)
    # Figures count the person as before, and the answers are there.
    assert person.withdrawn_at is None and person.erased_at is None
    assert answers_of(filled).count() == 2
    # The count of the trial is that of the record.
    rows = {name: table["rows"] for name, table in destruction.tables.items()}
    assert rows == {name: count for name, count in counts.items() if count}
    assert rows["survey_identity"] == rows["survey_respondent"] == 2
    assert rows["survey_listedid"] == 2
    entries = AuditEntry.objects.filter(subject_id=filled.pk)
    assert {"order a destruction", "destroy data"} <= set(
        entries.values_list("action", flat=True)
    )
    certificate = DestructionCertificate.objects.get(kind="identities")
    # The key of digests stays until the journal has it.
    assert destruction.digest_key
    journal_certificate(certificate)
    destruction.refresh_from_db()
    assert destruction.digest_key is None


def test_a_table_that_says_nothing_would_keep_names(filled, monkeypatch):
    """The twin: the declarations are what is destroyed, and the scan sees the rest."""
    every = stored.tables
    monkeypatch.setattr(
        stored, "tables", lambda: [model for model in every() if model is not Identity]
    )
    destroy(filled, NAMES)
    assert ("survey_identity", "family_name") in marked(IDS)


def test_a_destroyed_code_opens_nothing(filled, maya):
    destroy(filled, NAMES)
    with pytest.raises(LoginRefused):
        log_in_respondent(code_of(row_of(maya)))


def test_joins_are_cut(filled, staff, maya, ali):
    RecordJoin.objects.create(
        administration=filled,
        kept=maya,
        other=ali,
        state="joined",
        district=staff.riverside,
        external_id="00124x",
        by=staff.dana,
    )
    assert count_rows(filled.pk, NAMES)["survey_recordjoin"] == 1
    destruction = destroy(filled, NAMES)
    assert not RecordJoin.objects.exists()
    assert destruction.tables["survey_recordjoin"]["rows"] == 1


def test_files_of_people_go_with_names(filled, staff):
    upload = RosterUpload.objects.get(administration=filled)
    card_set = CardSet.objects.create(
        administration=filled,
        school=staff.lincoln,
        by=staff.dana,
        made_at=timezone.now(),
        file_name="cards/x.pdf",
    )
    trial = request_count(filled, NAMES, by=staff.dana)
    jobs.run(Job.objects.get(kind="retention.count", subject_id=trial.pk).pk)
    trial.refresh_from_db()
    destruction = destroy(filled, NAMES)
    for row in (upload, card_set):
        row.refresh_from_db()
    assert upload.file == "" and upload.samples is None
    assert card_set.deleted_at is not None
    assert destruction.files == trial.files == 2
    assert trial.state == "counted"


def test_answers_go_and_people_stay(filled, maya):
    counts = count_rows(filled.pk, ANSWERS)
    destruction = destroy(filled, ANSWERS)
    assert not answers_of(filled).exists()
    assert Identity.objects.filter(administration=filled).count() == 2
    rows = {name: table["rows"] for name, table in destruction.tables.items()}
    assert rows == counts == {"survey_response": 2}
    assert DestructionCertificate.objects.get().kind == "answers"


def test_both_can_be_destroyed_in_either_order(filled):
    destroy(filled, ANSWERS)
    destroy(filled, NAMES)
    assert marked([*IDS, "mark of"]) == []


def test_another_round_keeps_everything(filled, staff, publish):
    from survey.tests.erasing.test_erase import fill, publish_round
    from survey.tests.people import invite

    fall = publish_round(filled, "fall")
    noor = invite(fall, staff.roosevelt, "00777", "Noor Haddad")
    fall.closes_at = timezone.now() + timedelta(days=3)
    fall.identities_destroyed_at = None
    fall.save(update_fields=["closes_at"])
    fill(noor, staff.dana)
    before = marked(["00777", "haddad", "mark of noor"])
    destroy(filled, NAMES)
    destroy(filled, ANSWERS)
    assert marked(["00777", "haddad", "mark of noor"]) == before != []


def test_the_digest_is_of_the_rows_in_order(filled, monkeypatch):
    """It can be calculated again from a copy, with the key."""
    names = [field.attname for field in Identity._meta.local_concrete_fields]
    copy = list(Identity.objects.order_by("pk").values_list(*names))
    destruction = order_destruction(filled, NAMES)
    digest = bytes(destruction.digest_key)
    for row in copy:
        line = json.dumps(row, default=str, ensure_ascii=False, separators=(",", ":"))
        digest = sha256(digest + line.encode()).digest()
    # In batches of one person, so that it goes on where the last one ended.
    monkeypatch.setattr(destroying, "BATCH", 1)
    run(destruction)
    assert destruction.tables["survey_identity"] == {"rows": 2, "digest": digest.hex()}


def test_an_interrupted_job_goes_on(filled, monkeypatch):
    counts = count_rows(filled.pk, NAMES)
    monkeypatch.setattr(destroying, "BATCH", 1)
    destruction = order_destruction(filled, NAMES)
    assert destroying.destroy_batch(destruction) == 1
    assert Identity.objects.filter(administration=filled).count() == 1
    run(destruction)
    rows = {name: table["rows"] for name, table in destruction.tables.items()}
    assert rows == {name: count for name, count in counts.items() if count}
    # And again, it finds that it has ended.
    destroying.destroy_data(job_of(destruction), jobs.Progress(job_of(destruction)))
    assert DestructionCertificate.objects.count() == 1


def test_a_batch_that_fails_is_neither_destroyed_nor_recorded(filled, monkeypatch):
    destruction = order_destruction(filled, NAMES)
    monkeypatch.setattr(destroying, "people_removed", None)
    with pytest.raises(TypeError):
        destroying.destroy_batch(destruction)
    destruction.refresh_from_db()
    assert (destruction.position, destruction.tables) == (0, {})
    assert Identity.objects.filter(administration=filled).count() == 2


def test_nothing_brings_people_back(filled, staff):
    destroy(filled, NAMES)
    report_refused = "retention period"
    with pytest.raises(Exception, match=report_refused):
        run_import(filled, HEADER, MAYA)
    with pytest.raises(PersonConflict, match=report_refused):
        add_person(filled, NewPerson("00999"), school=staff.lincoln, by=staff.dana)
    with pytest.raises(OptOutConflict, match=report_refused):
        keep_ids(
            [EarlyId("00999", staff.riverside.pk, None)],
            Request(timezone.localdate(), "parent"),
            administration=filled,
            by=staff.dana,
        )
    assert not Identity.objects.filter(administration=filled).exists()
    card_set = CardSet(administration=filled, school=staff.lincoln, reissue=True)
    assert report_refused in reason_not_made(card_set, people_in(card_set))


@pytest.mark.parametrize("kind", [NAMES, ANSWERS])
def test_what_was_destroyed_is_not_opened_again(filled, staff, kind):
    destroy(filled, kind)
    later = timezone.now() + timedelta(days=1)
    with pytest.raises(ValidationError, match="can't be opened again"):
        reopen_administration(
            administration=filled, closes_at=later, seen=None, by=staff.state
        )
    # The twin of the check: the database refuses it as well.
    with pytest.raises(IntegrityError), transaction.atomic():
        Administration.objects.filter(pk=filled.pk).update(closes_at=later)


@pytest.mark.parametrize("kind", [NAMES, ANSWERS])
def test_nothing_of_an_open_round_is_destroyed(filled, kind):
    for closes_in in (timedelta(days=2), -timedelta(hours=1)):
        filled.closes_at = timezone.now() + closes_in
        filled.save(update_fields=["closes_at"])
        with pytest.raises(DestructionRefused, match="a day after the closing"):
            order_destruction(filled, kind)


def test_a_file_that_is_made_is_waited_for(filled, staff):
    job = Job.objects.create(kind="cards.make", state="running")
    card_set = CardSet.objects.create(
        administration=filled, school=staff.lincoln, by=staff.dana, job=job
    )
    with pytest.raises(DestructionRefused, match="file of this survey round"):
        order_destruction(filled, NAMES)
    CardSet.objects.filter(pk=card_set.pk).update(job=None)
    destruction = order_destruction(filled, NAMES)
    # One that was ordered just before.
    CardSet.objects.filter(pk=card_set.pk).update(job=job)
    run(destruction)
    assert destruction.state == "running"
    assert Identity.objects.filter(administration=filled).exists()
    # The task goes on once it is there.
    Job.objects.filter(pk=job.pk).update(state="done", ended_at=timezone.now())
    apply_retention()
    run(destruction)
    assert destruction.state == "done"


def test_nothing_is_destroyed_twice(filled):
    destroy(filled, NAMES)
    with pytest.raises(DestructionRefused, match="ordered before"):
        order_destruction(filled, NAMES)


def test_the_database_destroys_no_answers_of_a_round_that_is_not_marked(filled):
    if connection.vendor != "postgresql":
        pytest.skip("the function is PostgreSQL's")

    def refused():
        with (
            pytest.raises(DatabaseError, match="is not marked"),
            transaction.atomic(),
            connection.cursor() as cursor,
        ):
            cursor.execute(destroying.DESTROY, [filled.pk, b"k" * 32, 1])

    refused()
    Administration.objects.filter(pk=filled.pk).update(
        closes_at=timezone.now() - timedelta(hours=2),
        answers_destroyed_at=timezone.now(),
    )
    refused()
    assert answers_of(filled).count() == 2


def test_no_function_digests_answers_and_leaves_them(filled):
    """Whoever could choose a key and an answer could test a guess of it."""
    if connection.vendor != "postgresql":
        pytest.skip("the functions are PostgreSQL's")
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT proname FROM pg_proc WHERE prosrc ~ 'survey_response'"
            " AND prosrc ~ 'sha256' ORDER BY proname"
        )
        names = [name for (name,) in cursor.fetchall()]
    assert names == ["survey_destroy_answers", "survey_erase_answers"]


def test_the_digest_of_answers_is_of_the_rows_in_order(filled):
    if connection.vendor != "postgresql":
        pytest.skip("the function is PostgreSQL's")
    # More than it reads before it rests.
    Response.objects.bulk_create(
        Response(
            administration_id=filled.pk,
            respondent_id=answer.respondent_id + 10_000 * copy,
            item_id=answer.item_id,
            state=answer.state,
            value=answer.value,
            revision=answer.revision,
            saved_at=answer.saved_at,
        )
        for answer in answers_of(filled)
        for copy in range(1, 250)
    )
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL timezone = 'UTC'")
        cursor.execute(
            "SELECT jsonb_build_array(administration_id, respondent_id, item_id, state,"
            " value, revision, saved_at)::text FROM survey_response"
            " WHERE administration_id = %s ORDER BY respondent_id, item_id",
            [filled.pk],
        )
        lines = [line for (line,) in cursor.fetchall()]
    destruction = order_destruction(filled, ANSWERS)
    digest = bytes(destruction.digest_key)
    for line in lines:
        digest = sha256(digest + line.encode()).digest()
    run(destruction)
    expected = {"rows": 500, "digest": digest.hex()}
    assert destruction.tables["survey_response"] == expected


@pytest.mark.parametrize("kind", [NAMES, ANSWERS])
def test_without_a_key_to_sign_with_nothing_is_destroyed(filled, settings, kind):
    destruction = order_destruction(filled, kind)
    keys, settings.CERTIFICATE_KEYS = settings.CERTIFICATE_KEYS, []
    second = ANSWERS if kind == NAMES else NAMES
    apply_retention()
    assert not Destruction.objects.filter(kind=second).exists()
    jobs.run(job_of(destruction).pk)
    job = job_of(destruction)
    assert job.state == Job.State.FAILED and "no key to sign" in job.message
    with pytest.raises(SigningKeyMissing):
        destroying.destroy_rows_of(destruction)
    with pytest.raises(JournalError, match="no key to sign"):
        replay_destruction({"kind": second, "rounds": []}, Result())
    destruction.refresh_from_db()
    assert destruction.tables == {} and destruction.digest_key
    assert Identity.objects.filter(administration=filled).count() == 2
    assert answers_of(filled).count() == 2
    settings.CERTIFICATE_KEYS = keys
    apply_retention()
    run(destruction)
    assert DestructionCertificate.objects.get().destruction == destruction


def test_without_this_check_names_would_go_uncertified(filled, settings, monkeypatch):
    destruction = order_destruction(filled, NAMES)
    settings.CERTIFICATE_KEYS = []
    monkeypatch.setattr(destroying, "signing_key", lambda: None)
    with pytest.raises(SigningKeyMissing):
        destroying.destroy_rows_of(destruction)
    assert not Identity.objects.filter(administration=filled).exists()
    assert not DestructionCertificate.objects.exists()


def test_another_key_gives_another_digest():
    rows = [(1, "Maya")]
    digests = set()
    for key in (b"a" * 32, b"b" * 32):
        tallies = Tallies({}, key)
        tallies.add_values("t", rows)
        digests.add(tallies.tables["t"]["digest"])
    assert len(digests) == 2


def test_a_round_without_people_is_destroyed(administration, staff):
    close(administration)
    keep_for(administration, timezone.now() - timedelta(days=31), identities_days=5)
    destruction = destroy(administration, NAMES)
    assert destruction.tables == {} and not Respondent.objects.exists()


@pytest.mark.parametrize("kind", [NAMES, ANSWERS])
def test_a_restored_backup_is_destroyed_again(filled, kind):
    """The journal names the round; a second replay finds nothing."""
    entry = entry_of(filled, kind)
    entry["rounds"].append({**entry["rounds"][0], "number": filled.pk + 1000})
    expected = sum(count_rows(filled.pk, kind).values())
    assert replayed(entry) == Result(rows=expected)
    assert expected > 0
    filled.refresh_from_db()
    assert getattr(filled, f"{kind}_destroyed_at") is not None
    names = Identity.objects.filter(administration=filled)
    assert names.exists() == (kind == ANSWERS)
    assert answers_of(filled).exists() == (kind == NAMES)
    assert replayed(entry) == Result()


def entry_of(administration: Administration, kind: str) -> dict:
    described = journal.description_of(administration)
    destroyed_at = timezone.now().isoformat()
    return {"kind": kind, "rounds": [described], "destroyed_at": destroyed_at}


def replayed(entry: dict) -> Result:
    result = Result()
    replay_destruction(entry, result)
    return result


@pytest.mark.parametrize("kind", [NAMES, ANSWERS])
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", "fall"),
        ("published", "0" * 64),
        ("opens_at", "2026-01-01T00:00:00+00:00"),
    ],
)
def test_a_later_round_of_the_same_number_is_left_as_it_is(
    filled, kind, field, value, monkeypatch
):
    entry = entry_of(filled, kind)
    entry["rounds"][0][field] = value
    before = count_rows(filled.pk, kind)
    with transaction.atomic():
        result = replayed(entry)
        assert result == Result(rounds_not_the_same=[filled.pk])
        assert count_rows(filled.pk, kind) == before
        filled.refresh_from_db()
        assert getattr(filled, f"{kind}_destroyed_at") is None
        assert not Destruction.objects.exists()
    # The twin: by its number alone, its data would be destroyed.
    monkeypatch.setattr(replays, "is_described", lambda *_: True)
    assert replayed(entry).rows == sum(before.values()) > 0


def test_the_command_names_rounds_that_are_not_the_same(filled, capsys):
    certificate = certified(filled)
    Administration.objects.filter(pk=filled.pk).update(name="another")
    path = path_of(journal.name_of_certificate(certificate))
    call_command("replay_erasures", str(path))
    printed = capsys.readouterr()
    assert json.loads(printed.out)["rounds_not_the_same"] == [filled.pk]
    assert f"[{filled.pk}]" in printed.err


def certified(administration: Administration) -> DestructionCertificate:
    """Write the journal of a destruction that the database has not seen."""
    certificate = issue_certificate(
        DestroyedData(
            kind=NAMES,
            administrations=(administration.pk,),
            district=None,
            tables=(),
            files=0,
            ordered_by="retention",
            reason="The retention period has ended.",
            destroyed_at=timezone.now(),
        )
    )
    journal_certificate(certificate)
    return certificate


@pytest.mark.parametrize("kind", [NAMES, ANSWERS])
def test_a_round_that_the_backup_has_open_is_closed_and_destroyed(filled, kind):
    """It was closed earlier after the backup, and then destroyed."""
    entry = entry_of(filled, kind)
    closed_at, later = filled.closes_at, timezone.now() + timedelta(days=7)
    Administration.objects.filter(pk=filled.pk).update(closes_at=later)
    # The twin: as the backup has it, the database refuses to mark it.
    with pytest.raises(IntegrityError), transaction.atomic():
        Administration.objects.filter(pk=filled.pk).update(
            **{f"{kind}_destroyed_at": timezone.now()}
        )
    assert replayed(entry).rows > 0
    filled.refresh_from_db()
    assert filled.closes_at == closed_at


@pytest.mark.parametrize("kind", [NAMES, ANSWERS])
def test_a_hold_that_was_lifted_before_the_destruction_is_lifted_again(
    filled, staff, kind
):
    placed = hold(filled, staff)
    entry = entry_of(filled, kind)
    assert replayed(entry).rows > 0
    placed.refresh_from_db()
    assert placed.lifted_at
    assert "restored backup" in placed.lifted_reason
    lifted = AuditEntry.objects.get(action="lift a hold")
    assert lifted.after["reason"] == placed.lifted_reason


@pytest.mark.parametrize("kind", [NAMES, ANSWERS])
def test_a_hold_of_after_the_destruction_stays(filled, staff, kind):
    entry = entry_of(filled, kind)
    placed = hold(filled, staff)
    before = count_rows(filled.pk, kind)
    with pytest.raises(JournalError, match="general counsel"):
        replayed(entry)
    placed.refresh_from_db()
    assert placed.lifted_at is None
    assert count_rows(filled.pk, kind) == before


def test_a_database_that_refuses_is_reported_in_a_sentence(filled, monkeypatch):
    certificate = certified(filled)
    path = path_of(journal.name_of_certificate(certificate))

    def refuse(*_: object) -> None:
        raise DatabaseError("is not marked")

    monkeypatch.setattr(replays, "destroy_rows_of", refuse)
    with pytest.raises(CommandError, match=r"is not marked. Let nobody in"):
        call_command("replay_erasures", str(path))


def test_the_journal_has_what_was_destroyed(filled, django_capture_on_commit_callbacks):
    destruction = order_destruction(filled, NAMES)
    key = bytes(destruction.digest_key)
    with django_capture_on_commit_callbacks(execute=True):
        run(destruction)
    certificate = DestructionCertificate.objects.get()
    [entry] = journal.read([path_of(journal.name_of_certificate(certificate))])
    assert entry["kind"] == NAMES
    assert entry["rounds"] == [journal.description_of(filled)]
    assert entry["destroyed_at"] == destruction.destroyed_at.isoformat()
    assert bytes.fromhex(entry["digest_key"]) == key
    assert replay(iter([entry])) == Result(entries=1)
