"""Administrations in which only people whose consent is recorded may start."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction

from accounts.models import AuditEntry, District
from survey.fieldwork.administrations import change_administration, plan_of
from survey.fieldwork.administrations.queries import invited_people
from survey.models import (
    Administration,
    Consent,
    CountedGroup,
    Job,
    ListedId,
    OptOut,
    Respondent,
)
from survey.models.listed_id import ListedId as Listed
from survey.people.merging import joins
from survey.people.merging.joins import request_join
from survey.people.merging.references import ADAPTERS
from survey.people.opt_outs import listed_ids
from survey.people.opt_outs.consents import give_consent, give_consents
from survey.people.opt_outs.listed_ids import EarlyId, keep_ids, remove_id
from survey.people.opt_outs.records import OptOutConflict, Request, opt_out, take_back
from survey.people.person_changes.additions import NewPerson, add_person
from survey.people.person_changes.records import PersonConflict, bring_back_person
from survey.people.rosters.opted_out import AWAITS, LISTED
from survey.taking.login import LoginRefused, log_in_respondent
from survey.tests.conftest import FIRST_PAGE, Browser, code_of
from survey.tests.opt_outs.conftest import ALI, HEADER, MAYA, NO_FORM
from survey.tests.rosters.roster_console import ConsoleClient, person
from survey.work import jobs

pytestmark = pytest.mark.django_db

FORM = Request(date(2026, 9, 2), "parent", "paper form")
TWICE = MAYA.replace("00123", "A-77")
SOMEBODY_ELSE = ALI.replace("00124", "00200")


@pytest.fixture
def administration(administration):
    administration.requires_consent = True
    administration.save(update_fields=["requires_consent"])
    return administration


@pytest.fixture
def dana(staff, django_capture_on_commit_callbacks):
    return ConsoleClient(staff.dana, django_capture_on_commit_callbacks)


@pytest.fixture
def keep(administration, staff):
    """Return a function that keeps an ID of a list, of consents unless told."""

    def run(external_id, given=FORM, *, kind=Listed.Kind.CONSENT, school=None):
        early = EarlyId(external_id, staff.riverside.pk, school.pk if school else None)
        keep_ids(
            [early], given, administration=administration, by=staff.dana, kind=kind
        )

    return run


def refusal_of(respondent) -> str:
    """Return why a person can't log in, or an empty string."""
    try:
        log_in_respondent(code_of(respondent))
    except LoginRefused as refused:
        return refused.key
    return ""


def may_log_in(respondent) -> bool:
    return not refusal_of(respondent)


def test_a_pupil_of_a_roster_starts_once_a_parent_has_consented(
    administration, staff, roster
):
    report = roster(MAYA, ALI)
    assert (report.added, report.notes) == (2, {AWAITS: 2})
    maya, ali = person("00123"), person("00124")
    assert refusal_of(maya) == refusal_of(ali) == "consent_missing"
    assert not invited_people(administration).exists()

    consent = give_consent(maya, FORM, by=staff.chen)
    assert may_log_in(maya) and not may_log_in(ali)
    assert list(invited_people(administration)) == [maya]
    assert (consent.respondent_id, consent.given_by, consent.note, consent.by) == (
        maya.pk,
        "parent",
        "paper form",
        staff.chen,
    )
    entry = AuditEntry.objects.get(action="record a consent")
    assert (entry.subject_id, entry.school_id) == (maya.pk, staff.lincoln.pk)
    assert entry.after == {
        "administration": "students-2027",
        "given on": "2026-09-02",
        "given by": "parent",
    }


def test_without_the_check_in_the_batch_pupils_could_start_at_once(
    administration, roster, monkeypatch
):
    """The twin: what the check protects from."""
    monkeypatch.setattr(listed_ids, "await_consent", lambda _: None)
    roster(MAYA)
    assert may_log_in(person("00123"))


def test_elsewhere_nobody_awaits_consent(administration, roster):
    administration.requires_consent = False
    administration.save()
    assert roster(MAYA).notes == {}
    assert may_log_in(person("00123"))


def test_the_requirement_is_read_again_behind_the_lock(administration, roster):
    """A stale object must not let anybody in."""
    Administration.objects.filter(pk=administration.pk).update(requires_consent=False)
    administration.refresh_from_db()
    Administration.objects.filter(pk=administration.pk).update(requires_consent=True)
    roster(MAYA)
    assert not may_log_in(person("00123"))


def test_a_person_who_is_added_by_hand_awaits_consent(administration, staff):
    Administration.objects.filter(pk=administration.pk).update(requires_consent=False)
    administration.refresh_from_db()
    Administration.objects.filter(pk=administration.pk).update(requires_consent=True)
    maya = add_person(
        administration, NewPerson("00123"), school=staff.lincoln, by=staff.chen
    )
    assert refusal_of(maya) == "consent_missing"


def test_the_next_rosters_neither_give_nor_lose_consent(administration, staff, roster):
    roster(MAYA, ALI)
    give_consent(person("00123"), FORM, by=staff.chen)
    for lines in (
        (MAYA, ALI),
        (MAYA.replace("Lopez,7", "López,8"), ALI.replace("Diaz,7", "Díaz,8")),
        (MAYA.replace("lincoln", "washington"), ALI.replace("lincoln", "washington")),
    ):
        report = roster(*lines, complete_for="districts")
        assert (report.back, report.withdrawn) == (0, 0)
        assert report.notes == {AWAITS: 1}
        assert may_log_in(person("00123"))
        assert refusal_of(person("00124")) == "consent_missing"
    # Neither do those that leave people out and bring them back.
    assert roster(SOMEBODY_ELSE, complete_for="districts").withdrawn == 1
    assert not may_log_in(person("00123"))
    assert roster(MAYA, ALI).back == 1
    assert may_log_in(person("00123"))
    assert refusal_of(person("00124")) == "consent_missing"


def test_nobody_is_brought_back_by_hand_without_consent(administration, staff, roster):
    roster(MAYA)
    with pytest.raises(PersonConflict):
        bring_back_person(person("00123"), by=staff.chen)
    assert not may_log_in(person("00123"))


def test_the_database_keeps_people_out_who_await_consent(roster):
    roster(MAYA)
    for values in (
        {"withdrawn_at": None},
        {"withdrawn_at": None, "opted_out_at": None},
    ):
        with pytest.raises(IntegrityError), transaction.atomic():
            Respondent.objects.filter(pk=person("00123").pk).update(**values)


def test_who_takes_consent_back_opts_out_and_needs_a_new_one(
    administration, staff, roster
):
    roster(MAYA)
    maya = person("00123")
    give_consent(maya, FORM, by=staff.chen)
    child = Browser().log_in(maya)
    base = child.bootstrap()["revision"]
    assert child.save(1, FIRST_PAGE, base).status_code == 200
    opt_out(maya, NO_FORM, by=staff.chen)
    assert child.save(1, FIRST_PAGE, base + 1).status_code == 409
    assert refusal_of(maya) == "withdrawn"
    with pytest.raises(OptOutConflict, match="does not await"):
        give_consent(maya, FORM, by=staff.chen)

    take_back(maya, by=staff.chen)
    assert refusal_of(maya) == "consent_missing"
    give_consent(maya, FORM, by=staff.chen)
    assert may_log_in(maya)
    assert Consent.objects.count() == 2


def test_a_refusal_of_a_person_who_awaits_consent_is_recorded(
    administration, staff, roster
):
    roster(MAYA)
    maya = person("00123")
    opt_out(maya, NO_FORM, by=staff.chen)
    assert refusal_of(maya) == "withdrawn"
    assert OptOut.objects.get().respondent == maya
    take_back(maya, by=staff.chen)
    assert refusal_of(maya) == "consent_missing"


def test_nobody_consents_twice(administration, staff, roster):
    roster(MAYA)
    give_consent(person("00123"), FORM, by=staff.chen)
    with pytest.raises(OptOutConflict, match="no longer"):
        give_consent(person("00123"), FORM, by=staff.chen)
    assert Consent.objects.count() == 1


# Lists


def test_a_list_gives_the_consents_of_its_people(administration, staff, roster):
    roster(MAYA, ALI, ALI.replace("00124", "00125"))
    people = [person(key) for key in ("00123", "00124", "00125")]
    opt_out(people[1], NO_FORM, by=staff.chen)
    schools = type(staff.lincoln).objects.filter(pk=staff.lincoln.pk)
    done = give_consents(
        [pupil.pk for pupil in people[:2]],
        FORM,
        administration=administration,
        schools=schools,
        by=staff.chen,
    )
    assert done == 1
    assert [refusal_of(pupil) for pupil in people] == [
        "",
        "withdrawn",
        "consent_missing",
    ]
    entry = AuditEntry.objects.get(action="record consents of a list")
    assert (entry.school_id, entry.after["people"]) == (staff.lincoln.pk, 1)
    with pytest.raises(OptOutConflict, match="no longer in one of your schools"):
        give_consents(
            [people[2].pk],
            FORM,
            administration=administration,
            schools=schools.none(),
            by=staff.chen,
        )
    assert not may_log_in(people[2])


def test_a_later_roster_finds_the_consents_of_a_list(
    administration, staff, keep, roster
):
    keep("00123")
    report = roster(MAYA, ALI)
    assert report.notes == {AWAITS: 1}
    maya, ali = person("00123"), person("00124")
    assert may_log_in(maya) and not may_log_in(ali)
    given = Consent.objects.get()
    assert (given.respondent, given.by, given.note) == (maya, staff.dana, "paper form")
    assert not ListedId.objects.waiting().exists()
    entry, done = AuditEntry.objects.order_by("pk")
    assert (entry.action, entry.after["given by"]) == (
        "keep consents for later rosters",
        "parent",
    )
    assert (done.action, done.after["people"]) == ("record consents of a list", 1)
    # Nor had the pupil's group to wait until it counts.
    assert not CountedGroup.objects.filter(respondent=maya).exists()


def test_a_refusal_on_another_list_wins(administration, keep, roster):
    keep("00123")
    keep("00123", NO_FORM, kind=Listed.Kind.OPT_OUT)
    report = roster(MAYA)
    assert report.notes == {LISTED: 1}
    assert refusal_of(person("00123")) == "withdrawn"
    assert not Consent.objects.exists()


def test_the_consent_of_a_school_counts_there(administration, staff, keep, roster):
    keep("00123", school=staff.lincoln)
    roster(MAYA.replace("lincoln", "washington"))
    assert not may_log_in(person("00123"))
    roster(MAYA)
    assert may_log_in(person("00123"))


def test_a_kept_consent_does_not_outlive_an_opt_out(
    administration, staff, keep, roster
):
    keep("00123")
    roster(MAYA)
    opt_out(person("00123"), NO_FORM, by=staff.chen)
    take_back(person("00123"), by=staff.chen)
    roster(MAYA.replace("Lopez,7", "Lopez,8"))
    assert refusal_of(person("00123")) == "consent_missing"


def test_a_kept_consent_is_refused_for_people_on_the_roster(
    administration, keep, roster
):
    roster(MAYA)
    with pytest.raises(OptOutConflict, match="on the roster since"):
        keep("00123")
    assert not ListedId.objects.exists()


def test_a_removed_id_counts_no_more(administration, staff, keep, roster):
    keep("00123")
    remove_id(ListedId.objects.get(), by=staff.dana)
    roster(MAYA)
    assert not may_log_in(person("00123"))
    assert AuditEntry.objects.filter(action="remove a kept consent").exists()


@pytest.mark.parametrize("number", [1, 3])
def test_a_list_takes_as_many_statements_as_one_person(
    administration, staff, roster, django_assert_num_queries, number
):
    rows = [MAYA.replace("00123", f"{key:05}") for key in range(number)]
    roster(*rows)
    people = list(Respondent.objects.values_list("pk", flat=True))
    schools = type(staff.lincoln).objects.filter(pk=staff.lincoln.pk)
    # A savepoint and its release, the rows, their groups, the people, the consents,
    # the audit.
    with django_assert_num_queries(7):
        give_consents(
            people, FORM, administration=administration, schools=schools, by=staff.chen
        )


# Undo, join and merge


def undo_upload(console, upload):
    console.post(f"/console/rosters/{upload.pk}/undo/")
    upload.refresh_from_db()
    assert upload.state == "undone", upload.message


@pytest.fixture
def seen(administration):
    """Let rosters of one person be undone."""
    administration.coordinators_see_finished = True
    administration.save(update_fields=["coordinators_see_finished"])


def test_undoing_a_roster_loses_no_consent_and_keeps_nobody_else(
    administration, staff, dana, seen
):
    upload = dana.apply(administration, HEADER, ALI, MAYA)
    give_consent(person("00123"), FORM, by=staff.dana)
    undo_upload(dana, upload)
    assert (upload.undo.removed, upload.undo.withdrawn) == (1, 1)
    assert not may_log_in(person("00123"))
    dana.apply(administration, HEADER, ALI, MAYA)
    assert may_log_in(person("00123"))
    assert refusal_of(person("00124")) == "consent_missing"


@pytest.fixture
def join(administration, staff, dana, seen, monkeypatch):
    """Return a function that joins the two records of Maya."""
    dana.apply(administration, HEADER, MAYA, TWICE, ALI)
    monkeypatch.setattr(jobs, "wake", lambda *_: None)

    def run(target, duplicate):
        created = request_join(person(target), person(duplicate), by=staff.chen)
        jobs.run(Job.objects.get(kind=joins.KIND, subject_id=created.pk).pk)
        created.refresh_from_db()
        assert created.state == "joined", created.message
        return Respondent.objects.get(pk=created.kept_id), Respondent.objects.get(
            pk=created.other_id
        )

    return run


@pytest.mark.parametrize("consented", ["00123", "A-77"])
def test_the_consent_for_either_record_of_a_person_counts(join, staff, consented):
    give_consent(person(consented), FORM, by=staff.chen)
    survivor, twin = join("A-77", "00123")
    assert may_log_in(survivor) and not may_log_in(twin)
    assert Consent.objects.get().respondent == survivor
    assert not Respondent.objects.filter(pk=twin.pk, awaits_consent=True).exists()


def test_two_records_without_consent_await_it_once(join, staff):
    survivor, twin = join("A-77", "00123")
    assert refusal_of(survivor) == "consent_missing" and not may_log_in(twin)
    assert [survivor.awaits_consent, twin.awaits_consent] == [True, False]
    give_consent(survivor, FORM, by=staff.chen)
    assert may_log_in(survivor) and not may_log_in(twin)


@pytest.mark.parametrize("refused", ["00123", "A-77"])
@pytest.mark.parametrize("with_consent", [True, False])
def test_a_refusal_for_either_record_wins(join, staff, refused, with_consent):
    [consented] = {"00123", "A-77"} - {refused}
    if with_consent:
        give_consent(person(consented), FORM, by=staff.chen)
    opt_out(person(refused), NO_FORM, by=staff.chen)
    survivor, twin = join("A-77", "00123")
    assert refusal_of(survivor) == "withdrawn" and not may_log_in(twin)
    assert OptOut.objects.get(ended_at=None).respondent == survivor
    take_back(survivor, by=staff.chen)
    assert refusal_of(survivor) == "consent_missing"


def test_merged_districts_keep_one_id_of_each_list(administration, staff, keep):
    keep("00123")
    copy = District.objects.create(code="copy", name="Copy of Riverside")
    rows = [*ListedId.objects.all()]
    for kind in Listed.Kind:
        rows[0].pk, rows[0].district, rows[0].kind = None, copy, kind
        rows[0].save(force_insert=True)
    for adapt in ADAPTERS[District]:
        adapt(copy, staff.riverside)
    left = ListedId.objects.filter(district=copy)
    assert [listed_id.kind for listed_id in left] == [Listed.Kind.OPT_OUT]


# The administration


def change(administration, **to):
    return change_administration(
        administration=administration,
        to=replace(plan_of(administration), **to),
        seen=None,
        by="a test",
    )


@pytest.mark.parametrize("is_required", [True, False])
def test_consent_is_required_or_not_until_the_first_person_is_invited(
    administration, roster, is_required
):
    changed = change(administration, requires_consent=False)
    assert not changed.requires_consent
    changed = change(administration, requires_consent=is_required)
    roster(MAYA)
    with pytest.raises(ValidationError, match="already invited"):
        change(changed, requires_consent=not is_required)
    changed.refresh_from_db()
    assert changed.requires_consent == is_required


def test_a_school_stays_whose_people_await_consent(administration, staff, roster):
    roster(MAYA)
    with pytest.raises(ValidationError, match="Lincoln"):
        change(administration, schools=frozenset([staff.washington]))


def test_it_is_not_for_open_codes(administration):
    with pytest.raises(ValidationError, match="only for people on a roster"):
        change(administration, denominator="count")
    with (
        pytest.raises(IntegrityError, match="consent_is_for_people_on_a_roster"),
        transaction.atomic(),
    ):
        Administration.objects.update(denominator="count")


def test_a_missing_consent_costs_one_read(
    administration, roster, django_assert_num_queries
):
    roster(MAYA)
    maya = person("00123")
    assert maya.withdrawn_at
    with django_assert_num_queries(1):
        assert refusal_of(maya) == "consent_missing"


@pytest.mark.parametrize(
    ("language", "words"),
    [("en", "consent form"), ("es", "consentimiento"), ("ar", "الموافقة")],
)
def test_the_login_page_says_it_in_every_language(roster, language, words):
    roster(MAYA)
    reply = Browser().post(
        "/", {"code": code_of(person("00123")), "language": language}
    )
    assert reply.status_code == 422
    assert words in reply.content.decode()
