"""An administration that was opened by mistake is removed, and nothing else is."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.apps import apps
from django.core.cache import cache
from django.core.exceptions import PermissionDenied
from django.db import connection, transaction
from django.utils import timezone

from accounts.models import AuditEntry, School, User
from settings.tests.patience import patience
from survey.fieldwork.administrations import (
    ChangeBlocked,
    ConfirmationRequired,
    DatabaseBusy,
    EditConflict,
    close_administration,
    open_administration,
    removal,
)
from survey.fieldwork.administrations.removal import remove_administration
from survey.fieldwork.message_platforms.store import (
    key_of_administration,
    key_of_person,
    message_store,
)
from survey.fieldwork.open_codes.codes import code_of as open_code_text
from survey.fieldwork.open_codes.lookup import forget_open_codes
from survey.models import (
    Administration,
    CardSet,
    Consent,
    CountedGroup,
    Destruction,
    DeviceLogin,
    EmailDelivery,
    EmailSchedule,
    EmailStep,
    EmailTemplate,
    ErasedRecord,
    Erasure,
    Identity,
    Job,
    LegalHold,
    ListedId,
    OpenCode,
    OpenCodeBatch,
    OpenCodeFile,
    OpenDecline,
    OptOut,
    PairChoice,
    PersonFile,
    PlaceMerge,
    RecordJoin,
    Respondent,
    Response,
    Retention,
    Role,
    RosterChange,
    RosterFeed,
    RosterMissing,
    RosterUndo,
    RosterUpload,
    SchoolCount,
)
from survey.people.merging.references import foreign_keys_to
from survey.taking.login import LoginRefused, log_in_respondent
from survey.taking.storage import Outcome
from survey.tests.conftest import Browser, code_of, enrol
from survey.tests.open_codes.cast import begin, form_of, open_code, open_to_parents
from survey.tests.taking.test_storage_races import elsewhere, save
from survey.work.files import new_name, path_of

pytestmark = pytest.mark.django_db
needs_postgresql = pytest.mark.skipif(
    connection.vendor != "postgresql", reason="SQLite has one writer, no partitions"
)
needs_redis = pytest.mark.skipif(
    message_store() is None, reason="no Redis for message platforms"
)


@pytest.fixture
def parents(db: None) -> Administration:
    return open_to_parents()


@pytest.fixture
def code(parents: Administration, lincoln: School) -> OpenCode:
    return open_code(parents, lincoln)


def remove(administration: Administration, **options: Any) -> None:
    remove_administration(
        administration=administration,
        **{
            "seen": None,
            "confirmed": administration.name,
            "by": "a test",
            **options,
        },
    )


def has_partition(pk: int) -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_regclass(%s)", [f"survey_response_{pk}"])
        return cursor.fetchone() != (None,)


def store_file(folder: str) -> str:
    name = new_name(folder, ".csv")
    path_of(name).write_text("Maya")
    return name


def fill(administration: Administration, school: School, by: User) -> list[str]:
    """Create rows in each table that refers to it or its people; return the files."""
    maya, ali = enrol(administration, school), enrol(administration, school, issue=2)
    key = {"administration": administration}
    today, now = timezone.localdate(), timezone.now()
    asked = {"requested_on": today, "requested_by": "parent", "by": by}
    for number, person in enumerate((maya, ali)):
        Identity.objects.create(
            respondent=person, district=school.district, external_id=number, **key
        )
    CountedGroup.objects.create(respondent=maya, school=school, changed_at=now, **key)
    DeviceLogin.objects.create(respondent=maya, device="a", first_at=now, **key)
    OptOut.objects.create(respondent=maya, **asked)
    Consent.objects.create(respondent=ali, given_on=today, given_by="parent", by=by)
    ListedId.objects.create(district=school.district, external_id="3", **asked, **key)
    RecordJoin.objects.create(kept=maya, other=ali, by=by, state="refused", **key)
    merge = PlaceMerge.objects.create(
        kind="schools", district=school.district, kept_id=1, duplicate_id=2, by=by
    )
    PairChoice.objects.create(merge=merge, respondent=maya, keep="kept")
    erasure = Erasure.objects.create(
        district=school.district, reason="request", people=1, **asked
    )
    ErasedRecord.objects.create(
        erasure=erasure, respondent=maya, administration=administration
    )
    PersonFile.objects.create(respondent=maya, **asked)
    Retention.objects.create(administration=administration, answers_days=400)
    LegalHold.objects.create(
        administration=administration,
        holder="Counsel",
        reason="A case",
        placed_by=by,
        lifted_by=by,
        lifted_at=timezone.now(),
    )
    Destruction.objects.create(
        administration=administration, kind="answers", state="counted", by=by
    )
    files = [store_file(folder) for folder in ("cards", "open-codes", "rosters")]
    CardSet.objects.create(
        school=school, respondent=maya, by=by, file_name=files[0], people=1,
        made_at=now, **key,
    )  # fmt: skip
    schedule = EmailSchedule.objects.create(**key)
    step = EmailStep.objects.create(schedule=schedule, kind=EmailStep.Kind.INVITATION)
    EmailTemplate.objects.create(step=step, language="en", subject="Hi", body="Hi")
    EmailDelivery.objects.create(
        step=step, respondent=maya, state="sent", address_digest="a", claimed_at=now,
        job_id=1, job_attempt=1,
    )  # fmt: skip
    code = OpenCode.objects.create(
        school=school, code_digest=b"a", code_key_version=1, limit=1, **key
    )
    code.seats.create()
    OpenDecline.objects.create(form_digest=b"a", open_code=code, at=now)
    OpenCodeFile.objects.create(
        school=school, open_code=code, format="poster", file_name=files[1], by=by, **key
    )
    OpenCodeBatch.objects.create(by=by, **key)
    SchoolCount.objects.create(school=school, count=20, by="a test", **key)
    upload = RosterUpload.objects.create(
        by=by, name="people.csv", size=4, file=files[2], state="applied",
        confirmed_by=by, confirmed_at=now, **key,
    )  # fmt: skip
    upload.schools.create(school=school, name="Lincoln", district_name="Riverside")
    upload.rejections.create(row=1, reason="No ID")
    RosterUndo.objects.create(upload=upload, by=by)
    RosterChange.objects.create(upload=upload, respondent=maya, change="a")
    RosterMissing.objects.create(upload=upload, respondent=ali, has_left=True)
    feed = RosterFeed.objects.create(
        name="Gone", district=school.district, by=by, kind="rest", removed_at=now,
        address="https://sis.example.org",
    )  # fmt: skip
    feed.administrations.add(administration)
    return files


# Tables of the app `reports` have rows only once somebody has started.
ABOUT_PEOPLE = {
    name for name in foreign_keys_to(Respondent) if name.startswith("survey.")
}
ABOUT_IT = {
    name
    for name in foreign_keys_to(Administration)
    if name.startswith("survey.") and name != "survey.Response.administration"
} - {
    "survey.Administration_districts.administration",
    # Modules of districts, which are removed before it.
    "survey.Administration.module_of",
}


def tables_with_rows(names: set[str]) -> set[str]:
    models = {name: apps.get_model(name.rpartition(".")[0]) for name in names}
    return {
        name
        for name, model in models.items()
        if model._default_manager.filter(
            **{f"{name.rpartition('.')[2]}__isnull": False}
        ).exists()
    }


@pytest.mark.sqlite
def test_it_is_removed_with_all_that_is_about_it_alone(
    administration, staff, django_capture_on_commit_callbacks
):
    administration.schools.add(staff.lincoln)
    files = fill(administration, staff.lincoln, staff.state)
    # There was something in each table.
    everything = ABOUT_IT | ABOUT_PEOPLE
    assert tables_with_rows(everything) == everything - {
        # Only of seats that were taken, by people who have started.
        "survey.OpenCodeSeat.respondent"
    }
    title, pk = administration.title, administration.pk
    survey = administration.published.survey
    with django_capture_on_commit_callbacks(execute=True):
        remove(administration)
    assert not Administration.objects.exists()
    assert tables_with_rows(everything) == set()
    for model in (OpenCode, EmailStep, OpenDecline, PairChoice):
        assert not model.objects.exists()
    assert [path_of(name).exists() for name in files] == [False] * 3
    assert School.objects.filter(pk=staff.lincoln.pk).exists()
    assert survey.published.exists()
    if connection.vendor == "postgresql":
        assert not has_partition(pk)
    entry = AuditEntry.objects.get(action="remove administration")
    assert entry.before == {"title": title, "respondents": 2}


@pytest.mark.sqlite
def test_another_administration_keeps_everything(administration, staff):
    maya = enrol(administration, staff.lincoln, issue=3)
    second = open_administration(
        name="other",
        published=administration.published,
        role=Role.STUDENT,
        opens_at=administration.opens_at,
        closes_at=administration.closes_at,
    )
    enrol(second, staff.lincoln)
    fill(administration, staff.lincoln, staff.state)
    before = tables_with_rows(ABOUT_IT | ABOUT_PEOPLE)
    log_in_respondent(code_of(maya))
    assert save(maya, "kept", 7, issue=3).outcome is Outcome.SAVED
    remove(second)
    assert Administration.objects.get() == administration
    assert tables_with_rows(ABOUT_IT | ABOUT_PEOPLE) >= before
    assert Response.objects.count() == 3
    assert save(maya, "later", 8, issue=3).outcome is Outcome.SAVED


def test_a_code_of_a_removed_administration_is_unknown(administration, browser, maya):
    code = code_of(maya)
    assert browser.post("/", {"code": "ABCD-EFGH-JKMN"}).status_code != 302
    remove(administration)
    with pytest.raises(LoginRefused) as refused:
        log_in_respondent(code)
    assert refused.value.key == "code_wrong"


@pytest.mark.sqlite
def test_an_open_code_of_a_removed_administration_is_unknown(parents, code, browser):
    typed = open_code_text(code)
    form = form_of(browser, code)
    remove(parents)
    # The form that somebody still has open.
    assert browser.post("/open/begin/", form).status_code == 422
    # What a start page found is cached for a while.
    forget_open_codes()
    cache.clear()
    assert browser.post("/open/", {"code": typed}).status_code == 422
    assert not Respondent.objects.exists()


@pytest.mark.sqlite
def test_it_stays_once_somebody_has_started(administration, maya, noor):
    log_in_respondent(code_of(maya))
    with pytest.raises(ChangeBlocked, match="People have started"):
        remove(administration)
    assert Respondent.objects.count() == 2
    assert not AuditEntry.objects.exists()


@pytest.mark.sqlite
def test_it_stays_once_somebody_has_begun_with_an_open_code(parents, code):
    begin(Browser(), code)
    with pytest.raises(ChangeBlocked, match="People have started"):
        remove(parents)


@pytest.mark.sqlite
def test_answers_without_a_start_keep_it(administration, maya):
    """A start can be lost with a server; the tab sends the answers again."""
    assert save(maya, "kept", 7).outcome is Outcome.SAVED
    # The function on PostgreSQL knows the people first.
    with pytest.raises(ChangeBlocked, match="People have started"):
        remove(administration)
    assert Response.objects.count() == 3
    assert Respondent.objects.exists()


def test_the_short_name_has_to_be_typed(administration):
    with pytest.raises(ConfirmationRequired):
        remove(administration, confirmed="students")
    assert Administration.objects.exists()


def test_only_its_owners_remove_it(administration, staff):
    for user in (staff.dana, staff.chen, staff.sam):
        with pytest.raises(PermissionDenied):
            remove(administration, by=user)
    remove(administration, by=staff.state)


def test_a_page_from_before_another_change_removes_nothing(administration):
    seen = administration.changes
    close_administration(administration=administration, seen=None, by="a test")
    with pytest.raises(EditConflict):
        remove(administration, seen=seen)


def test_an_administration_of_a_feed_is_taken_out_of_it_first(administration, staff):
    feed = RosterFeed.objects.create(
        name="Nightly", district=staff.riverside, by=staff.dana, kind="rest",
        address="https://sis.example.org",
    )  # fmt: skip
    feed.administrations.add(administration)
    with pytest.raises(ChangeBlocked, match="Nightly"):
        remove(administration)
    feed.administrations.clear()
    remove(administration)


@pytest.mark.parametrize("state", ["applying", "undoing"])
def test_it_is_not_removed_while_a_roster_is_applied(administration, staff, state):
    RosterUpload.objects.create(
        administration=administration, by=staff.dana, name="a.csv", size=1, state=state,
        confirmed_by=staff.dana, confirmed_at=timezone.now(),
    )  # fmt: skip
    with pytest.raises(ChangeBlocked, match="is being applied or undone"):
        remove(administration)


def test_it_is_not_removed_while_a_job_works_on_it(administration, staff):
    fill(administration, staff.lincoln, staff.state)
    subjects = {
        "cards.make": CardSet,
        "roster.check": RosterUpload,
        "emails.send": EmailSchedule,
        "emails.test": EmailTemplate,
        "open_codes.file": OpenCodeFile,
        "open_codes.create": OpenCodeBatch,
        "people.join": RecordJoin,
        "results.count": Administration,
    }
    for kind, model in subjects.items():
        subject = model.objects.get()
        job = Job.objects.create(kind=kind, subject_id=subject.pk, by=staff.state)
        with pytest.raises(ChangeBlocked, match="has not ended"):
            remove(administration)
        assert Respondent.objects.count() == 2
        job.delete()
        # A job of another one does not matter.
        Job.objects.create(kind=kind, subject_id=subject.pk + 1000)
    remove(administration)


def test_more_people_than_a_request_can_delete_are_undone_first(
    administration, maya, noor, monkeypatch
):
    monkeypatch.setattr(removal, "MOST_PEOPLE", 1)
    with pytest.raises(ChangeBlocked, match="Undo its rosters first"):
        remove(administration)


@needs_redis
def test_message_platforms_forget_its_people(
    administration, maya, django_capture_on_commit_callbacks
):
    store = message_store()
    keys = [key_of_person(maya.pk), key_of_administration(administration.pk)]
    for key in keys:
        store.command("SET", key, "x")
    with django_capture_on_commit_callbacks(execute=True):
        remove(administration)
    assert [store.command("EXISTS", key) for key in keys] == [0, 0]


# At the same moment


def start_and_answer(maya: Respondent, code: str) -> Callable[[], object]:
    """Log in and save, on a connection of its own; return what the person was told."""

    def run() -> object:
        try:
            log_in_respondent(code)
        except LoginRefused as refused:
            return refused.key
        return save(maya, "an answer", 7).outcome

    return elsewhere(run)


@needs_postgresql
@pytest.mark.django_db(transaction=True)
def test_a_start_during_the_removal_waits_and_is_refused(
    administration, maya, monkeypatch
):
    """The login has read the person; the removal has locked and deleted the row."""
    code, started = code_of(maya), []
    delete = removal._delete_people

    def delete_and_let_start(current: Administration) -> None:
        delete(current)
        started.append(threads.submit(start_and_answer(maya, code)))
        time.sleep(0.4)
        assert not started[0].done()

    monkeypatch.setattr(removal, "_delete_people", delete_and_let_start)
    with ThreadPoolExecutor(1) as threads:
        remove(administration)
        assert started[0].result(timeout=patience(5)) == "code_wrong"
    assert not DeviceLogin.objects.exists()


@needs_postgresql
@pytest.mark.django_db(transaction=True)
def test_an_answer_after_the_check_of_the_page_keeps_everything(
    administration, maya, monkeypatch
):
    """It is checked again, with the rows locked."""
    start_after_the_first_check(maya, monkeypatch)
    with pytest.raises(ChangeBlocked, match="People have started"):
        remove(administration)
    assert {row.value for row in Response.objects.all()} == {"an answer"}
    assert Respondent.objects.get() == maya


def start_after_the_first_check(maya: Respondent, monkeypatch: Any) -> None:
    check = removal.reason_not_to_remove

    def check_and_let_start(current: Administration) -> str:
        reason = check(current)
        with ThreadPoolExecutor(1) as threads:
            started = threads.submit(start_and_answer(maya, code_of(maya)))
            assert started.result(timeout=patience(5)) is Outcome.SAVED
        return reason

    monkeypatch.setattr(removal, "reason_not_to_remove", check_and_let_start)


@needs_postgresql
@pytest.mark.django_db(transaction=True)
def test_without_the_check_under_the_lock_an_acknowledged_answer_is_lost(
    administration, maya, monkeypatch
):
    def delete_everybody(current: Administration) -> None:
        current.respondents.all().delete()

    def drop_unchecked(pk: int, *, has_codes: bool) -> None:
        with connection.cursor() as cursor:
            cursor.execute(f"DROP TABLE survey_response_{int(pk)}")

    start_after_the_first_check(maya, monkeypatch)
    monkeypatch.setattr(removal, "_delete_people", delete_everybody)
    with monkeypatch.context() as patch:
        patch.setattr(removal, "_drop_partition", drop_unchecked)
        remove(administration)
    assert not Response.objects.exists()


@needs_postgresql
@pytest.mark.django_db(transaction=True)
def test_the_function_keeps_answers_that_the_deletion_missed(
    administration, maya, monkeypatch
):
    """The same twin, with the function in place."""
    start_after_the_first_check(maya, monkeypatch)
    monkeypatch.setattr(
        removal, "_delete_people", lambda current: current.respondents.all().delete()
    )
    with pytest.raises(ChangeBlocked, match="People have started"):
        remove(administration)
    assert Response.objects.count() == 3
    assert Respondent.objects.get() == maya


@needs_postgresql
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("locked", [True, False])
def test_a_start_with_an_open_code_in_flight_is_waited_for(
    parents, code, monkeypatch, locked
):
    """It has found the code, which is deleted meanwhile, and has not committed."""
    monkeypatch.setattr(removal, "TRIES", 2)
    drop = removal._drop_partition
    monkeypatch.setattr(
        removal,
        "_drop_partition",
        lambda pk, *, has_codes: drop(pk, has_codes=has_codes and locked),
    )
    browser = Browser()
    form = form_of(browser, code)
    with ThreadPoolExecutor(1) as threads:
        with transaction.atomic():
            assert browser.post("/open/begin/", form).status_code == 302
            removed = threads.submit(elsewhere(lambda: remove(parents)))
            if locked:
                with pytest.raises(DatabaseBusy):
                    removed.result(timeout=patience(5))
            else:
                removed.result(timeout=patience(5))
        assert Respondent.objects.count() == 1
        # Without the lock, a person of no administration is left behind.
        assert Administration.objects.exists() == locked
    if locked:
        with pytest.raises(ChangeBlocked, match="People have started"):
            remove(parents)


@needs_postgresql
@pytest.mark.django_db(transaction=True)
def test_a_removal_that_does_not_get_its_lock_lets_saves_pass(
    administration, maya, monkeypatch
):
    monkeypatch.setattr(removal, "TRIES", 3)
    second = open_administration(
        name="other",
        published=administration.published,
        role=Role.STUDENT,
        opens_at=administration.opens_at,
        closes_at=administration.closes_at,
    )
    with ThreadPoolExecutor(2) as threads, transaction.atomic():
        # A long reader, such as a report that read the primary.
        Response.objects.exists()
        removed = threads.submit(elsewhere(lambda: remove(second)))
        saved = threads.submit(elsewhere(lambda: save(maya, "meanwhile", 7)))
        assert saved.result(timeout=patience(2)).outcome is Outcome.SAVED
        with pytest.raises(DatabaseBusy, match="Nothing was changed"):
            removed.result(timeout=patience(5))
    assert has_partition(second.pk)
    remove(second)
    assert not has_partition(second.pk)
