"""Join two records of one person in an administration."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.utils import timezone

from accounts.models import AuditEntry
from accounts.permissions import Places
from settings.tests.patience import patience
from survey.models import Identity, Job, RecordJoin, Respondent, Response
from survey.people.access_codes import code_of
from survey.people.merging import joins
from survey.people.merging.joins import request_join
from survey.people.rosters.joined_ids import REPEATED
from survey.people.rosters.scope import OTHER_SCHOOL, RosterScope
from survey.taking.login import LoginRefused, log_in_respondent
from survey.taking.storage import AnswerRow, Outcome, save_page
from survey.tests.people import invite
from survey.tests.rosters.roster_console import ConsoleClient
from survey.tests.rosters.roster_imports import run_import
from survey.work import jobs

pytestmark = pytest.mark.django_db

HEADER = "district,school,student ID,given name,family name,grade"
OLD = "riverside,lincoln,00123,Maya,Lopez,7"
NEW = "riverside,lincoln,A-77,Maya,Lopez,7"
ALI = "riverside,lincoln,00124,Ali,Diaz,7"
NEXT_YEAR = NEW.replace(",7", ",8")
# The fixture of this folder replaces it.
WAKE = jobs.wake


@pytest.fixture
def administration(administration):
    """Let staff see who has started."""
    administration.coordinators_see_finished = True
    administration.save(update_fields=["coordinators_see_finished"])
    return administration


@pytest.fixture
def roster(administration):
    """Return a function that imports rows."""

    def run(*lines, header=HEADER, **options):
        report = run_import(administration, header, *lines, **options)
        assert report.imported, report.rejections
        return report

    return run


@pytest.fixture
def twice(administration, staff, roster):
    """Maya is on the roster under two IDs."""
    roster(OLD, NEW, ALI)


@pytest.fixture
def join(staff):
    """Return a function that requests a join and runs its job."""

    def run(target, duplicate, *, by=staff.chen, is_chosen=False):
        created = request_join(target, duplicate, by=by, is_chosen=is_chosen)
        jobs.run(Job.objects.get(kind=joins.KIND, subject_id=created.pk).pk)
        created.refresh_from_db()
        return created

    return run


def person(external_id):
    return Respondent.objects.get(identity__external_id=external_id)


def answer(respondent, text="mine"):
    log_in_respondent(code_of(respondent))
    item = respondent.administration.published.survey.items.get(name="comment")
    return save_page(
        administration_id=respondent.administration_id,
        respondent_id=respondent.pk,
        issue=respondent.issue,
        revision=1,
        rows=[AnswerRow(item.pk, "a", text)],
    ).outcome


def answers():
    return dict(Response.objects.values_list("respondent_id", "value"))


def invited():
    listed = Identity.objects.filter(respondent__withdrawn_at=None)
    return dict(listed.values_list("external_id", "respondent"))


def is_withdrawn(respondent):
    respondent.refresh_from_db()
    return respondent.withdrawn_at is not None


@pytest.mark.sqlite
def test_two_records_become_one_and_rosters_find_it_by_either_id(twice, roster, join):
    maya, twin, ali = person("00123"), person("A-77"), person("00124")
    assert answer(maya) is Outcome.SAVED
    # The new ID was chosen, but the old record has been started.
    joined = join(twin, maya)

    assert joined.state == "joined", joined.message
    assert (joined.kept, joined.other) == (maya, twin)
    assert invited() == {"00123": maya.pk, "00124": ali.pk}
    with pytest.raises(LoginRefused, match="withdrawn"):
        log_in_respondent(code_of(twin))
    assert log_in_respondent(code_of(maya)).respondent_id == maya.pk
    assert answers() == {maya.pk: "mine"}

    for line in (NEXT_YEAR, OLD):
        report = roster(line, ALI, complete_for="schools")
        assert (report.added, report.withdrawn, report.rejected) == (0, 0, 0)
        maya.refresh_from_db()
        assert maya.grade == ("08" if line == NEXT_YEAR else "07")
        assert invited() == {"00123": maya.pk, "00124": ali.pk}
    assert is_withdrawn(twin)
    assert answers() == {maya.pk: "mine"}


def test_without_the_alias_the_next_roster_would_invite_the_person_again(
    twice, roster, join
):
    """Shows that the test above would fail without the alias."""
    join(person("00123"), person("A-77"))
    RecordJoin.objects.update(external_id="")
    assert roster(NEXT_YEAR).added == 1


def test_with_its_id_a_roster_would_bring_the_other_record_back(
    twice, roster, join, administration, staff
):
    """Shows why the withdrawn record loses its ID."""
    twin = person("A-77")
    join(person("00123"), twin)
    Identity.objects.create(
        respondent=twin,
        administration=administration,
        district=staff.riverside,
        external_id="A-77",
    )
    roster(NEXT_YEAR)
    assert not is_withdrawn(twin)


@pytest.mark.sqlite
def test_a_person_who_is_gone_under_both_ids_is_withdrawn(twice, roster, join):
    maya = person("00123")
    join(maya, person("A-77"))
    assert roster(ALI, complete_for="schools").withdrawn == 1
    assert is_withdrawn(maya)
    # And comes back under the other ID.
    roster(NEXT_YEAR)
    assert not is_withdrawn(maya)


@pytest.mark.sqlite
def test_the_row_with_the_persons_own_id_wins(twice, roster, join):
    maya = person("00123")
    join(maya, person("A-77"))
    for rows in ((OLD, NEXT_YEAR), (NEXT_YEAR, OLD)):
        report = roster(*rows, ALI, complete_for="schools")
        assert (report.added, report.rejected, report.withdrawn) == (0, 0, 0)
        assert report.notes == {REPEATED: 1}
        maya.refresh_from_db()
        assert maya.grade == "07"


@pytest.mark.sqlite
def test_three_records_become_one(twice, roster, join):
    roster(OLD, NEW, OLD.replace("00123", "Maya Lopez"))
    maya, ali = person("Maya Lopez"), person("00124")
    join(person("A-77"), person("00123"))
    # The first alias follows.
    assert join(maya, person("A-77")).state == "joined"
    assert invited() == {"Maya Lopez": maya.pk, "00124": ali.pk}
    assert roster(OLD).added == 0
    report = roster(NEXT_YEAR, OLD)
    assert (report.added, report.notes) == (0, {REPEATED: 1})
    maya.refresh_from_db()
    assert maya.grade == "08"


@pytest.mark.sqlite
def test_a_previous_id_may_be_that_of_a_joined_record(twice, roster, join):
    maya = person("00123")
    join(maya, person("A-77"))
    roster(f"{NEW.replace('A-77', 'B-9')},A-77", header=f"{HEADER},previous ID")
    assert person("B-9") == maya
    assert roster(NEXT_YEAR).added == 0


def test_a_system_that_ends_one_of_the_ids_withdraws_nobody(twice, roster, join):
    maya = person("00123")
    join(maya, person("A-77"))
    header = f"{HEADER},status"
    roster(f"{OLD},inactive", f"{ALI},active", header=header)
    assert not is_withdrawn(maya)
    roster(f"{NEW},inactive", header=header)
    assert not is_withdrawn(maya)
    roster(f"{NEW},inactive", f"{OLD},inactive", header=header)
    assert is_withdrawn(maya)


def test_a_rejected_row_of_the_other_id_withdraws_nobody(twice, roster, join):
    maya = person("00123")
    join(maya, person("A-77"))
    report = roster(
        NEW.replace(",7", ",no grade"), ALI, complete_for="schools", partial=True
    )
    assert (report.rejected, report.withdrawn) == (1, 0)
    assert not is_withdrawn(maya)


def test_a_school_learns_nothing_about_a_person_of_another_one(
    twice, roster, join, administration, staff
):
    maya = person("00123")
    join(maya, person("A-77"))
    roster(OLD.replace("lincoln", "washington"))
    before = list(Respondent.objects.order_by("pk").values())
    report = run_import(
        administration,
        HEADER,
        NEXT_YEAR,
        scope=RosterScope(Places(schools=frozenset({staff.lincoln.pk}))),
    )
    [rejection] = report.rejections
    assert (rejection.reason, rejection.text) == (OTHER_SCHOOL, "A-77")
    assert list(Respondent.objects.order_by("pk").values()) == before


@pytest.mark.sqlite
def test_answers_of_both_records_are_not_mixed(twice, join):
    maya, twin = person("00123"), person("A-77")
    answer(maya, "of the old ID")
    answer(twin, "of the new ID")
    refused = join(twin, maya)
    assert (refused.state, refused.message) == ("refused", joins.BOTH_STARTED)
    assert not is_withdrawn(maya) and not is_withdrawn(twin)

    assert join(twin, maya, is_chosen=True).state == "joined"
    assert is_withdrawn(maya) and not is_withdrawn(twin)
    assert answers() == {maya.pk: "of the old ID", twin.pk: "of the new ID"}


@pytest.mark.sqlite
def test_answers_count_even_if_the_start_was_lost(twice, join):
    """A server can lose the start, while its tab sends the answers again."""
    maya, twin = person("00123"), person("A-77")
    answer(maya)
    Respondent.objects.filter(pk=maya.pk).update(started_at=None)
    assert join(twin, maya).kept == maya


@pytest.mark.sqlite
def test_a_withdrawn_record_that_was_started_comes_back(twice, roster, join):
    maya, twin = person("00123"), person("A-77")
    answer(maya)
    roster(NEW, ALI, complete_for="schools")
    assert is_withdrawn(maya)
    join(twin, maya)
    assert is_withdrawn(twin) and not is_withdrawn(maya)


def test_nobody_joins_records_of_other_places(twice, join, staff, administration):
    maya, twin = person("00123"), person("A-77")
    refused = join(maya, twin, by=staff.sam)
    assert (refused.state, refused.message) == ("refused", joins.NOT_PERMITTED)
    Respondent.objects.filter(pk=twin.pk).update(school=staff.washington)
    assert join(maya, twin, by=staff.chen).state == "refused"
    # Two districts have nothing to do with each other, also for the state.
    noor = invite(administration, staff.roosevelt, "00123", "Maya Lopez")
    assert join(maya, noor, by=staff.state).message == joins.NOT_PERMITTED
    assert not is_withdrawn(maya) and not is_withdrawn(twin)
    assert join(maya, twin, by=staff.dana).state == "joined"


def test_a_record_is_joined_once(twice, join):
    maya, twin = person("00123"), person("A-77")
    assert join(maya, twin).state == "joined"
    assert join(twin, maya).message == joins.GONE
    assert RecordJoin.objects.filter(state="joined").count() == 1


def test_where_progress_is_hidden_records_are_joined_before_the_opening(
    twice, join, staff, administration
):
    maya, twin = person("00123"), person("A-77")
    administration.coordinators_see_finished = False
    administration.save()
    for user in (staff.chen, staff.dana, staff.state):
        assert join(maya, twin, by=user).message == joins.HIDDEN
    administration.opens_at = timezone.now() + timedelta(days=1)
    administration.save()
    # Who decides about the address decides who gets the code.
    assert join(maya, twin, by=staff.chen).message == joins.FOR_DISTRICT
    assert join(maya, twin, by=staff.dana).state == "joined"


def test_the_audit_log_tells_who_joined_records_without_names(twice, join, staff):
    maya, twin = person("00123"), person("A-77")
    join(maya, twin)
    entries = AuditEntry.objects.filter(action__contains="join").order_by("pk")
    assert [entry.school_id for entry in entries] == [staff.lincoln.pk] * 2
    assert {entry.by for entry in entries} == {staff.chen.email}
    assert entries[0].after == {"stays": str(maya), "withdrawn": str(twin)}
    written = str(list(AuditEntry.objects.values()))
    assert "Lopez" not in written and "A-77" not in written


@pytest.mark.sqlite
def test_undoing_an_earlier_roster_leaves_both_records_alone(
    administration, staff, join, monkeypatch, django_capture_on_commit_callbacks
):
    monkeypatch.setattr(jobs, "wake", WAKE)
    dana = ConsoleClient(staff.dana, django_capture_on_commit_callbacks)
    upload = dana.apply(administration, HEADER, OLD, NEW, ALI)
    maya, twin = person("00123"), person("A-77")
    join(maya, twin)
    dana.post(f"/console/rosters/{upload.pk}/undo/")
    upload.refresh_from_db()
    assert upload.state == "undone"
    assert invited() == {"00123": maya.pk}
    assert is_withdrawn(twin)


def test_otherwise_undoing_would_delete_the_person(
    administration, staff, join, monkeypatch, django_capture_on_commit_callbacks
):
    """Shows that the test above would fail if the changes were not forgotten."""
    monkeypatch.setattr(jobs, "wake", WAKE)
    monkeypatch.setattr(joins, "_forget_changes", lambda *_: None)
    dana = ConsoleClient(staff.dana, django_capture_on_commit_callbacks)
    upload = dana.apply(administration, HEADER, OLD, NEW, ALI)
    join(person("00123"), person("A-77"))
    dana.post(f"/console/rosters/{upload.pk}/undo/")
    assert invited() == {}


@pytest.mark.sqlite
def test_an_alias_follows_its_district_into_another_one(
    twice, join, merge, staff, copy, administration, roster
):
    maya = person("00123")
    join(maya, person("A-77"))
    assert merge(staff.riverside, copy).state == "merged"
    assert RecordJoin.objects.get().district == copy
    assert roster(NEXT_YEAR.replace("riverside", "0017")).added == 0
    assert invited()["00123"] == maya.pk


class Start(threading.Thread):
    """Log in and save a page at another connection."""

    def __init__(self, respondent):
        super().__init__()
        self.respondent, self.outcomes = respondent, []

    def run(self):
        try:
            self.outcomes.append(answer(self.respondent))
        finally:
            connection.close()


needs_postgresql = pytest.mark.skipif(
    connection.vendor == "sqlite", reason="SQLite has one writer"
)


@needs_postgresql
@pytest.mark.django_db(transaction=True)
def test_a_start_at_the_same_moment_loses_no_answer(twice, join, monkeypatch):
    """The login has read the person; the join has locked both rows."""
    maya, twin = person("00123"), person("A-77")
    start, read = Start(twin), joins.read_records

    def lock_and_let_start(*args, **options):
        records = read(*args, **options)
        start.start()
        # Long enough for the login to read the person and to wait for the row.
        start.join(0.3)
        assert start.is_alive()
        return records

    monkeypatch.setattr(joins, "read_records", lock_and_let_start)
    assert join(maya, twin).state == "joined"
    start.join(patience(10))
    assert start.outcomes == [Outcome.WITHDRAWN]
    assert answers() == {}


@needs_postgresql
@pytest.mark.django_db(transaction=True)
def test_without_the_lock_a_join_would_hide_answers(twice, join, monkeypatch):
    """Shows that the test above would fail without the locked rows."""
    maya, twin = person("00123"), person("A-77")
    start, read = Start(twin), joins.read_records

    def let_start(*args, lock):
        records = read(*args, lock=False)
        start.start()
        start.join(patience(10))
        return records

    monkeypatch.setattr(joins, "read_records", let_start)
    assert join(maya, twin).kept == maya
    assert start.outcomes == [Outcome.SAVED]
    assert is_withdrawn(twin)
    assert answers() == {twin.pk: "mine"}


@needs_postgresql
@pytest.mark.django_db(transaction=True)
def test_a_join_waits_for_a_page_save(twice, join):
    """The save has locked the person's row, and is not committed yet."""
    maya, twin = person("00123"), person("A-77")
    is_saved, outcomes = threading.Event(), []

    def save_slowly():
        try:
            with transaction.atomic():
                outcomes.append(answer(twin))
                is_saved.set()
                # The join begins meanwhile, and tries several times.
                threading.Event().wait(0.8)
        finally:
            connection.close()

    thread = threading.Thread(target=save_slowly)
    thread.start()
    assert is_saved.wait(patience(10))
    joined = join(maya, twin)
    thread.join(patience(10))
    assert outcomes == [Outcome.SAVED]
    assert (joined.kept, joined.other) == (twin, maya)
    assert answers() == {twin.pk: "mine"}
