"""Erase a person from every table, and keep the person away."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.conf import settings
from django.db import IntegrityError, connection, models, transaction
from django.utils import timezone

from accounts.models import AuditEntry, District
from accounts.tables import Erasing, tables
from survey.models import (
    CardSet,
    Consent,
    DeviceLogin,
    EmailDelivery,
    EmailSchedule,
    EmailStep,
    ErasedId,
    ErasedRecord,
    Identity,
    Job,
    ListedId,
    OptOut,
    PairChoice,
    PlaceMerge,
    RecordJoin,
    Respondent,
    Response,
    RosterChange,
    RosterMissing,
    RosterRejection,
    RosterUpload,
)
from survey.people.access_codes import code_of
from survey.people.certificates.journal import entry_of_erasure
from survey.people.erasing import erase, erased_ids, files, stored
from survey.people.erasing.deletion import delete_rows
from survey.people.erasing.erase import ErasureConflict, order_erasure
from survey.people.erasing.stored import person_fields, rows_about
from survey.people.erasing.trace_stores import search_database
from survey.people.erasing.traces import Mark, Marks
from survey.people.opt_outs.records import OptOutConflict, take_back
from survey.people.person_changes.additions import NewPerson, add_person
from survey.people.person_changes.records import PersonConflict, bring_back_person
from survey.people.retention.hold_changes import lift_hold, place_hold
from survey.taking.login import LoginRefused, log_in_respondent
from survey.taking.storage import AnswerRow, Outcome, save_page
from survey.tests.erasing.conftest import ASKED, erased
from survey.tests.opt_outs.test_modules import come, module
from survey.tests.people import invite
from survey.tests.rosters.roster_imports import run_import
from survey.work import jobs

__all__ = ["module"]

pytestmark = pytest.mark.django_db

HEADER = "district,school,student ID,given name,family name,grade"
MAYA = "riverside,lincoln,00123,Maya,Zaragoza,7"
ALI = "riverside,lincoln,00124,Ali,Diaz,7"
# Nobody else's, in whatever column or file.
MARKS = ("00123", "zaragoza", "mark of maya")


def answer(respondent, text="mark of maya", revision=1):
    item = respondent.administration.published.survey.items.get(name="comment")
    return save_page(
        administration_id=respondent.administration_id,
        respondent_id=respondent.pk,
        issue=respondent.issue,
        revision=revision,
        rows=[AnswerRow(item.pk, "a", text)],
    ).outcome


def fill(respondent, by):
    """Store something about a person in each table that refers to people."""
    administration, now = respondent.administration, timezone.now()
    text = f"mark of {respondent.identity.given_name}"
    place = {"administration": administration, "district": respondent.school.district}
    log_in_respondent(code_of(respondent))
    assert answer(respondent, text) is Outcome.SAVED
    on = {"requested_on": now.date(), "requested_by": "parent", "by": by}
    OptOut.objects.create(
        respondent=respondent, ended_at=now, ended_by=by, reason=text, **on
    )
    Consent.objects.create(
        respondent=respondent, given_on=now, given_by="parent", note=text, by=by
    )
    identity = respondent.identity
    ListedId.objects.create(external_id=identity.external_id, **place, **on)
    DeviceLogin.objects.get_or_create(
        respondent=respondent,
        device="f" * 32,
        defaults={"administration": administration, "first_at": now},
    )
    schedule, _ = EmailSchedule.objects.get_or_create(administration=administration)
    step = schedule.steps.first() or EmailStep.objects.create(
        schedule=schedule, kind="invitation"
    )
    EmailDelivery.objects.create(
        step=step,
        respondent=respondent,
        state="sent",
        address_digest="d" * 64,
        claimed_at=now,
        job_id=1,
        job_attempt=1,
    )
    upload = administration.rosters.first() or RosterUpload.objects.create(
        administration=administration,
        by=by,
        name="roster.csv",
        size=1,
        file="rosters/roster.csv",
        samples={"name": ["Maya Zaragoza"]},
        state="cancelled",
        district=respondent.school.district,
    )
    RosterChange.objects.create(
        upload=upload,
        respondent=respondent,
        change="c",
        given_name=identity.given_name,
        family_name=identity.family_name,
        external_id=identity.external_id,
    )
    RosterMissing.objects.create(upload=upload, respondent=respondent, has_left=True)
    RosterRejection.objects.create(
        upload=upload, row=2, reason="not a grade", text=identity.family_name
    )
    merge = PlaceMerge.objects.first() or PlaceMerge.objects.create(
        kind="district",
        duplicate_id=98,
        duplicate_name="A",
        kept_id=99,
        kept_name="B",
        district_id=respondent.school.district_id,
        by=by,
    )
    PairChoice.objects.create(merge=merge, respondent=respondent, keep="kept")
    CardSet.objects.create(
        administration=administration,
        school=respondent.school,
        respondent=respondent,
        by=by,
    )


def marked(words=MARKS):
    """Return the tables and columns that have one of the words."""
    marks = Marks(Mark("word", (word,)) for word in words)
    places = search_database(marks, "default").traces
    columns = (place.removesuffix(": word") for place in places)
    return sorted(tuple(column.split(".")) for column in columns)


def rows_left(respondent):
    return {
        model._meta.db_table
        for erasing in (Erasing.DELETED, Erasing.RELEASED)
        for model, rows in rows_about(
            respondent.pk, respondent.administration_id, erasing
        )
        if rows.exists()
    }


@pytest.mark.sqlite
def test_nothing_in_any_table_is_about_an_erased_person(
    administration, staff, maya, ali
):
    for person in (maya, ali):
        fill(person, staff.dana)
    expected = {
        model._meta.db_table
        for model in tables()
        if model.declaration.erasing == Erasing.DELETED and person_fields(model)
    } - {"survey_recordjoin"}
    assert rows_left(maya) == rows_left(ali) == expected
    assert {table for table, _ in marked()} >= {
        "survey_identity",
        "survey_response",
        "survey_optout",
        "survey_listedid",
        "survey_rosterchange",
        "survey_rosterupload",
        "survey_rosterrejection",
    }
    digest = Respondent.objects.get(pk=maya.pk).code_digest

    erasure = erased(maya, by=staff.dana)

    assert marked() == []
    assert rows_left(maya) == set()
    # The list of a decided roster is forgotten with its file.
    assert rows_left(ali) == expected - {"survey_rostermissing"}
    assert marked(["00124"]) != []
    maya.refresh_from_db()
    assert bytes(maya.code_digest) != bytes(digest)
    assert maya.erased_at and maya.withdrawn_at and maya.opted_out_at
    assert (maya.grade, maya.classroom, maya.language, maya.attributes) == (
        *("", "", ""),
        {},
    )
    [record] = erasure.records.all()
    assert record.rows["survey_response"] == record.rows["survey_identity"] == 1
    assert record.rows["survey_listedid"] == 1
    # It is in the log who ordered it, and no name.
    entries = AuditEntry.objects.filter(kind="survey.erasure")
    assert {entry.action for entry in entries} == {
        "order the erasing of people",
        "erase people",
    }
    with pytest.raises(LoginRefused):
        log_in_respondent(code_of(maya))
    assert answer(maya, revision=9) is Outcome.WITHDRAWN


@pytest.mark.sqlite
def test_every_table_that_refers_to_people_says_what_erasing_does():
    named = {"external_id", "given_name", "family_name", "email", "birth_date"}
    named |= {"respondent_id", "address_digest", "people"}
    silent = []
    for model in tables():
        blobs = {
            field.name
            for field in model._meta.local_fields
            if field.name in named and not isinstance(field, models.IntegerField)
        }
        if model._meta.label == "accounts.User":
            continue
        refers = person_fields(model) or blobs
        if refers and model.declaration.erasing is None:
            silent.append(model._meta.label)
    assert silent == [], (
        "say at the model what erasing a person does with its rows, such as"
        " `class Consent(Table, erasing=Erasing.DELETED)`"
    )


@pytest.mark.sqlite
def test_a_table_that_says_nothing_would_keep_the_person(
    administration, staff, maya, monkeypatch
):
    """The twin: without its declaration, a table is left alone, and the scan sees."""
    fill(maya, staff.dana)
    monkeypatch.setattr(
        stored,
        "tables",
        lambda: [model for model in tables() if model is not Consent],
    )
    erased(maya, by=staff.dana)
    assert marked() == [("survey_consent", "note")]


@pytest.mark.sqlite
def test_all_rounds_and_joined_records_of_a_person_are_erased(
    administration, staff, maya, publish
):
    fall = publish_round(administration, "fall")
    elsewhere = invite(fall, staff.washington, "A-77", "Maya Zaragoza")
    twin = invite(administration, staff.lincoln, "A-77", "Maya Zaragoza")
    teachers = publish_round(administration, "staff", role="teacher")
    teacher = invite(teachers, staff.lincoln, "00123", "Tom Ortiz")
    noor = invite(administration, staff.roosevelt, "00123", "Noor Haddad")
    Identity.objects.filter(pk=twin.pk).delete()
    RecordJoin.objects.create(
        administration=administration,
        kept=maya,
        other=twin,
        state="joined",
        district=staff.riverside,
        external_id="A-77",
        by=staff.dana,
    )
    erasure = erased(maya, by=staff.dana)
    assert set(erasure.records.values_list("pk", flat=True)) == {
        maya.pk,
        twin.pk,
        elsewhere.pk,
    }
    assert not RecordJoin.objects.exists()
    assert set(Identity.objects.values_list("pk", flat=True)) == {teacher.pk, noor.pk}
    assert ErasedId.objects.filter(district=staff.riverside).count() == 2


def in_module(person, module, text):
    """Let a person go on to a district's module and answer there."""
    from survey.fieldwork.administrations.changes import add_partition

    if connection.vendor == "postgresql":
        add_partition(module)
    respondent = come(module, person)
    Response.objects.create(
        administration_id=module.pk,
        respondent_id=respondent.pk,
        item_id=module.published.survey.items.get().pk,
        state="a",
        value=text,
        revision=1,
        saved_at=timezone.now(),
    )
    return respondent


@pytest.mark.sqlite
def test_answers_in_a_districts_module_are_erased(staff, maya, module):
    hers = in_module(maya, module, "mark of maya")
    erasure = erased(maya, by=staff.dana)
    assert marked() == []
    hers.refresh_from_db()
    assert hers.erased_at and hers.withdrawn_at
    record = erasure.records.get(pk=hers.pk)
    assert record.rows["survey_response"] == 1
    entry = entry_of_erasure(erasure)
    assert entry["respondents"][str(module.pk)] == [hers.pk]


@pytest.mark.sqlite
def test_without_the_modules_of_a_person_answers_would_stay(
    staff, maya, module, monkeypatch
):
    """The twin: nothing in the module's record has the person's ID."""
    in_module(maya, module, "mark of maya")
    monkeypatch.setattr(stored, "respondents_in_modules", lambda _: [])
    erased(maya, by=staff.dana)
    assert marked() == [("survey_response", "value")]


@pytest.mark.sqlite
def test_a_hold_on_a_module_stops_an_erasure(staff, maya, module):
    hers = in_module(maya, module, "mark of maya")
    placed = place_hold(
        module, holder="Counsel", reason="Roe", district=None, by=staff.state
    )
    erasure = order_erasure([maya.pk], ASKED, by=staff.dana)
    job = Job.objects.get(kind=erase.KIND, subject_id=erasure.pk)
    jobs.run(job.pk)
    job.refresh_from_db()
    assert job.state == Job.State.FAILED and "Counsel" in job.message
    hers.refresh_from_db()
    assert hers.erased_at is None
    # It is not ordered anew, and goes on once the hold is lifted.
    erase.resume_erasures()
    assert not Job.objects.filter(kind=erase.KIND, ended_at=None).exists()
    lift_hold(placed, reason="Settled", by=staff.state)
    jobs.run(Job.objects.get(kind=erase.KIND, ended_at=None).pk)
    assert marked() == []


def publish_round(administration, name, role="student"):
    fall = type(administration).objects.get(pk=administration.pk)
    fall.pk, fall.name, fall.role = None, name, role
    fall.save(force_insert=True)
    from survey.fieldwork.administrations.changes import add_partition

    if connection.vendor == "postgresql":
        add_partition(fall)
    return fall


@pytest.mark.sqlite
@pytest.mark.parametrize("row", [MAYA, MAYA.replace("Zaragoza", "Lopez")])
def test_no_roster_brings_an_erased_person_back(administration, staff, row):
    run_import(administration, HEADER, MAYA, ALI)
    maya = Respondent.objects.get(identity__external_id="00123")
    erased(maya, by=staff.dana)
    report = run_import(administration, HEADER, row, ALI)
    assert report.imported and (report.added, report.rejected) == (0, 0)
    assert report.notes == {erased_ids.SKIPPED: 1}
    assert list(Identity.objects.values_list("external_id", flat=True)) == ["00124"]
    # The next round of the same district as well, and no other district's.
    fall = publish_round(administration, "fall")
    elsewhere = MAYA.replace("riverside,lincoln", "lakeside,roosevelt")
    report = run_import(fall, HEADER, row, elsewhere)
    assert (report.added, report.notes) == (1, {erased_ids.SKIPPED: 1})


@pytest.mark.sqlite
def test_without_the_digest_a_roster_would_bring_the_person_back(administration, staff):
    run_import(administration, HEADER, MAYA, ALI)
    erased(Respondent.objects.get(identity__external_id="00123"), by=staff.dana)
    ErasedId.objects.all().delete()
    assert run_import(administration, HEADER, MAYA, ALI).added == 1


@pytest.mark.sqlite
def test_a_new_id_does_not_bring_an_erased_person_back(administration, staff):
    run_import(administration, HEADER, MAYA, ALI)
    erased(Respondent.objects.get(identity__external_id="00123"), by=staff.dana)
    header = HEADER + ",previous ID"
    row = MAYA.replace("00123", "A-77") + ",00123"
    report = run_import(administration, header, row, ALI + ",")
    assert report.notes == {erased_ids.SKIPPED: 1} and report.added == 0


@pytest.mark.sqlite
def test_nobody_adds_or_brings_back_an_erased_person_by_hand(
    administration, staff, maya
):
    erased(maya, by=staff.dana)
    with pytest.raises(PersonConflict, match="00123 is the ID of a person whose data"):
        add_person(
            administration,
            NewPerson("00123", "Maya", "Zaragoza"),
            school=staff.lincoln,
            by=staff.dana,
        )
    with pytest.raises(PersonConflict):
        bring_back_person(maya, by=staff.dana)
    with pytest.raises(OptOutConflict):
        take_back(maya, by=staff.dana)


@pytest.mark.sqlite
def test_erasing_again_changes_nothing(administration, staff, maya):
    first = erased(maya, by=staff.dana)
    erase.erase_person(first.records.get(), first)
    with pytest.raises(ErasureConflict):
        order_erasure([maya.pk], ASKED, by=staff.dana)


@pytest.mark.sqlite
@pytest.mark.parametrize("name", ["chen", "analyst", "sam"])
def test_only_the_district_and_the_state_erase(administration, staff, maya, name):
    with pytest.raises(ErasureConflict):
        order_erasure([maya.pk], ASKED, by=getattr(staff, name))
    assert not ErasedRecord.objects.exists()


@pytest.mark.sqlite
def test_people_of_two_districts_are_refused_together(administration, staff, maya):
    noor = invite(administration, staff.roosevelt, "00123", "Noor Haddad")
    with pytest.raises(ErasureConflict, match="several districts"):
        order_erasure([maya.pk, noor.pk], ASKED, by=staff.state)


@pytest.mark.skipif(not settings.SERVERS, reason="the function is PostgreSQL's")
def test_answers_of_others_cannot_be_erased_by_the_function(administration, maya):
    log_in_respondent(code_of(maya))
    answer(maya)
    refused = pytest.raises(IntegrityError, match="is not marked as erased")
    with refused, transaction.atomic():
        delete_rows(maya.pk, administration.pk)
    assert Response.objects.count() == 1


@pytest.mark.skipif(not settings.SERVERS, reason="plans are PostgreSQL's")
def test_erasing_reads_no_table_as_a_whole(administration, staff, maya):
    """Each statement finds the rows of one person by an index."""
    plans = []
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        for erasing in (Erasing.DELETED, Erasing.RELEASED, Erasing.EMPTIED):
            for model, rows in rows_about(maya.pk, administration.pk, erasing):
                plan = rows.order_by().explain()
                plans.append(model._meta.db_table)
                about = r"Seq Scan on (survey_\w+)"
                assert not re.search(about, plan), plan
    assert len(plans) == 12


@pytest.mark.sqlite
def test_rows_that_a_request_in_flight_wrote_are_deleted_later(
    administration, staff, maya
):
    erasure = erased(maya, by=staff.dana)
    DeviceLogin.objects.create(
        respondent=maya,
        device="a" * 32,
        administration=administration,
        first_at=timezone.now(),
    )
    assert files.follow_up_all() == 1
    assert not DeviceLogin.objects.exists()
    # Until a replica that was behind has caught up.
    assert erasure.completed_at is None
    later = timezone.now() - files.REPLICA_LAG
    type(erasure).objects.update(erased_at=later)
    assert files.follow_up_all() == 0
    erasure.refresh_from_db()
    assert erasure.completed_at is not None


@pytest.mark.sqlite
def test_files_of_the_district_are_deleted_and_no_others(
    administration, staff, maya, ali
):
    def cards(school, **fields):
        return CardSet.objects.create(
            administration=administration,
            school=school,
            by=staff.dana,
            made_at=timezone.now(),
            file_name=f"cards/{school.code}.pdf",
            **fields,
        )

    of_lincoln, of_roosevelt = cards(staff.lincoln), cards(staff.roosevelt)
    erased(maya, by=staff.dana)
    for card_set in (of_lincoln, of_roosevelt):
        card_set.refresh_from_db()
    assert of_lincoln.deleted_at and not of_lincoln.file_name
    assert of_roosevelt.deleted_at is None and of_roosevelt.file_name


@pytest.mark.sqlite
def test_roster_files_wait_for_a_decision(administration, staff, maya):
    upload = RosterUpload.objects.create(
        administration=administration,
        by=staff.dana,
        name="roster.csv",
        size=1,
        file="rosters/roster.csv",
        district=staff.riverside,
        state="checked",
    )
    erasure = erased(maya, by=staff.dana)
    type(erasure).objects.update(erased_at=timezone.now() - timedelta(hours=1))
    type(upload).objects.update(uploaded_at=timezone.now() - timedelta(hours=2))
    assert files.follow_up_all() == 1
    upload.refresh_from_db()
    assert upload.file
    type(upload).objects.update(state="cancelled")
    assert files.follow_up_all() == 0
    upload.refresh_from_db()
    assert upload.file == ""


@pytest.mark.sqlite
def test_merged_districts_remember_the_erased_ids_of_both(administration, staff, maya):
    from survey.people.merging.references import move_references

    erased(maya, by=staff.dana)
    copy = District.objects.create(code="17", name="Riverside Unified")
    erased_ids.remember("student", copy.pk, ["00123", "00999"])
    with transaction.atomic():
        move_references(copy, staff.riverside)
    known = erased_ids.ErasedIds("student", [staff.riverside.pk])
    assert ErasedId.objects.count() == 2
    assert known.has(staff.riverside.pk, "00999")
