"""Changes of a running administration, and when they take effect."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import IntegrityError, connection, transaction
from django.utils import timezone, translation

from accounts.models import AuditEntry
from settings.tests.patience import patience
from survey.database import advisory_locks
from survey.fieldwork.administrations import (
    ChangeBlocked,
    ConfirmationRequired,
    DatabaseBusy,
    EditConflict,
    change_administration,
    changes,
    close_administration,
    count_progress,
    open_administration,
    plan_of,
    reopen_administration,
)
from survey.fieldwork.administrations.plans import format_moment
from survey.fieldwork.waves import create_wave, delete_wave, rename_wave
from survey.models import (
    Administration,
    CountedGroup,
    Respondent,
    Response,
    Role,
    Wave,
)
from survey.taking import resume_cookie
from survey.tests.conftest import FIRST_PAGE, SECOND_PAGE, code_of, enrol
from survey.tests.taking.test_storage_races import elsewhere

pytestmark = pytest.mark.django_db
COMMAND = "a test"
MINUTE = timedelta(minutes=1)


def change(administration: Administration, **to: Any) -> Administration:
    options = {name: to.pop(name) for name in ("seen", "by", "confirmed") if name in to}
    return change_administration(
        administration=administration,
        to=replace(plan_of(administration), **to),
        **{"seen": None, "by": COMMAND, **options},
    )


def close(administration: Administration, **options: Any) -> Administration:
    return close_administration(
        administration=administration, **{"seen": None, "by": COMMAND, **options}
    )


def reopen(administration: Administration, **options: Any) -> Administration:
    return reopen_administration(
        administration=administration,
        **{
            "closes_at": timezone.now() + timedelta(days=1),
            "seen": None,
            "by": COMMAND,
            **options,
        },
    )


def move_window_back(administration: Administration, by: timedelta) -> None:
    administration.refresh_from_db()
    Administration.objects.filter(pk=administration.pk).update(
        opens_at=administration.opens_at - by, closes_at=administration.closes_at - by
    )


def outcome(reply: Any) -> tuple[int, str]:
    return reply.status_code, reply.json().get("error", "")


def test_closing_stops_logins_at_once_and_saves_after_ten_minutes(browser, maya, noor):
    administration = maya.administration
    browser.log_in(maya)
    base = browser.bootstrap()["revision"]
    assert browser.save(1, FIRST_PAGE, base).status_code == 200
    close(administration)

    # Noor has not started and cannot log in. Maya continues for ten minutes.
    reply = browser.__class__().post("/", {"code": code_of(noor)})
    assert reply.status_code == 422
    noor.refresh_from_db()
    assert noor.started_at is None
    assert browser.save(2, SECOND_PAGE, base + 1).status_code == 200
    move_window_back(administration, 9 * MINUTE)
    assert browser.save(2, SECOND_PAGE, base + 2).status_code == 200
    move_window_back(administration, 2 * MINUTE)
    assert outcome(browser.save(2, SECOND_PAGE, base + 3)) == (409, "closed")
    saved = Response.objects.filter(respondent_id=maya.pk)
    assert saved.count() == 9
    assert max(saved.values_list("revision", flat=True)) == base + 2
    reply = browser.__class__().post("/", {"code": code_of(maya)})
    assert reply.status_code == 422

    # After reopening, the very next save is accepted.
    reopen(administration)
    assert browser.save(2, SECOND_PAGE, base + 4).status_code == 200
    browser.__class__().log_in(noor)


def test_extending_lets_started_respondents_continue(browser, maya):
    administration = maya.administration
    browser.log_in(maya)
    base = browser.bootstrap()["revision"]
    # The tab was loaded before the change.
    administration = change(
        administration, closes_at=timezone.now() + 1 * MINUTE, confirmed="students-2027"
    )
    move_window_back(administration, 11 * MINUTE + MINUTE)
    assert outcome(browser.save(1, FIRST_PAGE, base)) == (409, "closed")
    move_window_back(administration, -12 * MINUTE)
    assert browser.save(1, FIRST_PAGE, base).status_code == 200
    administration.refresh_from_db()
    change(administration, closes_at=timezone.now() + timedelta(days=2))
    assert browser.save(2, SECOND_PAGE, base + 1).status_code == 200
    assert browser.get("/take/complete/").status_code == 200


def test_the_window_is_never_cached(browser, maya, administration, monkeypatch):
    """The resume cookie caches the survey's digest for 30 s, and never the window."""
    browser.log_in(maya)
    base = browser.bootstrap()["revision"]
    browser.cookies.pop("sessionid")
    tag = browser.get("/take/", headers={"Accept": "application/json"}).json()["tag"]
    assert browser.save(1, FIRST_PAGE, base, tag=tag).status_code == 200
    assert administration.pk in resume_cookie._digests
    close(administration)
    move_window_back(administration, 11 * MINUTE)
    assert outcome(browser.save(1, FIRST_PAGE, base + 1, tag=tag)) == (
        409,
        "closed",
    )


def test_a_replaced_survey_is_used_after_thirty_seconds(
    administration, publish, monkeypatch
):
    old = resume_cookie.published_digest(administration.pk)
    change(administration, published=publish(name="other"))
    new = Administration.objects.get().published_id
    assert new != old
    now = resume_cookie.time.monotonic()
    monkeypatch.setattr(resume_cookie.time, "monotonic", lambda: now + 29)
    assert resume_cookie.published_digest(administration.pk) == old
    monkeypatch.setattr(resume_cookie.time, "monotonic", lambda: now + 31)
    assert resume_cookie.published_digest(administration.pk) == new


# Refused changes


def test_survey_and_audience_are_fixed_after_the_first_invitation(
    administration, publish, lincoln
):
    replacement = publish(name="other")
    administration = change(administration, published=replacement, role=Role.PARENT)
    assert (administration.published, administration.role) == (replacement, Role.PARENT)
    enrol(administration, lincoln)
    for to, word in (
        ({"role": Role.STUDENT}, "Open another survey round"),
        ({"published": publish(name="third")}, "corrected version"),
    ):
        with pytest.raises(ChangeBlocked, match=word):
            change(administration, **to)
    administration.refresh_from_db()
    assert (administration.published, administration.role) == (replacement, Role.PARENT)


def test_schools_with_invited_people_cannot_be_removed(staff, publish):
    administration = open_now(publish(), districts=[staff.riverside, staff.lakeside])
    enrol(administration, staff.lincoln)
    lakeside, riverside = (
        frozenset([district]) for district in (staff.lakeside, staff.riverside)
    )
    with pytest.raises(ChangeBlocked, match="People of Lincoln are invited"):
        change(administration, districts=lakeside)
    # No one in Lakeside is invited; and Lincoln alone may be named instead.
    administration = change(administration, districts=riverside)
    lincoln = frozenset([staff.lincoln])
    administration = change(administration, districts=frozenset(), schools=lincoln)
    assert list(administration.schools.all()) == [staff.lincoln]
    with pytest.raises(ChangeBlocked, match="Lincoln"):
        change(administration, schools=frozenset([staff.washington]))
    # Without places it is offered everywhere.
    change(administration, schools=frozenset())


def test_schools_without_active_people_can_be_removed(staff, publish):
    administration = open_now(publish(), districts=[staff.riverside])
    enrol(administration, staff.washington, withdrawn_at=timezone.now())
    enrol(administration, staff.lincoln)
    lincoln = frozenset([staff.lincoln])
    administration = change(administration, districts=frozenset(), schools=lincoln)
    assert list(administration.schools.all()) == [staff.lincoln]


def test_a_statewide_offer_cannot_exclude_invited_schools(staff, publish):
    administration = open_now(publish())
    for school in (staff.lincoln, staff.washington, staff.roosevelt):
        enrol(administration, school)
    with pytest.raises(ChangeBlocked, match="Lincoln and Washington"):
        change(administration, districts=frozenset([staff.lakeside]))


def test_opening_time_is_fixed_after_the_first_start(administration, lincoln):
    now = timezone.now()
    administration = change(administration, opens_at=now + timedelta(days=2))
    assert administration.state == "planned"
    administration = change(administration, opens_at=now - timedelta(days=2))
    enrol(administration, lincoln)
    administration = change(administration, opens_at=now - timedelta(hours=2))
    enrol(administration, lincoln, started_at=now, grade="7")
    for opens_at in (now + timedelta(hours=2), now - timedelta(days=5)):
        with pytest.raises(ChangeBlocked, match="People have started"):
            change(administration, opens_at=opens_at)
    administration.refresh_from_db()
    assert administration.opens_at == now - timedelta(hours=2)


def test_closing_time_must_be_in_the_future(administration):
    now = timezone.now()
    with pytest.raises(ChangeBlocked, match="Close now"):
        change(administration, closes_at=now - MINUTE)
    administration = change(administration, closes_at=now + 11 * MINUTE)
    with pytest.raises(ConfirmationRequired, match="short name: students-2027"):
        change(administration, closes_at=now + 9 * MINUTE)
    with pytest.raises(ConfirmationRequired):
        change(administration, closes_at=now + 9 * MINUTE, confirmed="students")
    administration = change(
        administration, closes_at=now + 9 * MINUTE, confirmed="students-2027"
    )
    # A later end never needs confirmation.
    administration = change(administration, closes_at=now + 9.5 * MINUTE)
    administration = close(administration)
    with pytest.raises(ChangeBlocked, match="reopen it"):
        change(administration, closes_at=now + timedelta(days=1))
    with pytest.raises(ChangeBlocked, match="It closed on"):
        close(administration)
    with pytest.raises(ValidationError, match="has passed"):
        reopen(administration, closes_at=now - MINUTE)
    administration = reopen(administration)
    with pytest.raises(ChangeBlocked, match="not closed"):
        reopen(administration)


def test_a_planned_administration_cannot_be_closed(publish):
    tomorrow = timezone.now() + timedelta(days=1)
    planned = open_now(
        publish(), opens_at=tomorrow, closes_at=tomorrow + timedelta(days=9)
    )
    with pytest.raises(ChangeBlocked, match="has not opened"):
        close(planned)
    # No one is answering, so no confirmation is needed.
    change(planned, opens_at=timezone.now(), closes_at=timezone.now() + 5 * MINUTE)


@pytest.mark.parametrize(
    "to",
    [
        {"closes_at": timezone.now() + timedelta(days=9999)},
        {"closes_at": timezone.now().replace(year=9999)},
        {"opens_at": timezone.now().replace(year=1)},
        {"role": Role.TEACHER, "coordinators_see_finished": True},
    ],
)
def test_invalid_changes_leave_everything_unchanged(administration, to):
    before = Administration.objects.values().get()
    with pytest.raises(ValidationError):
        change(administration, **to)
    assert Administration.objects.values().get() == before
    assert not AuditEntry.objects.exists()


def test_the_audit_log_is_in_english_whatever_language_the_user_reads(administration):
    closes_at = administration.closes_at + timedelta(days=1)
    with translation.override("es"):
        change(administration, closes_at=closes_at)
        assert " de " in format_moment(closes_at)
    entry = AuditEntry.objects.get()
    assert entry.after == {"closes": format_moment(closes_at)}


def test_database_constraints_refuse_invalid_rows(administration):
    def broken(**fields: Any) -> None:
        with pytest.raises(IntegrityError), transaction.atomic():
            Administration.objects.update(**fields)

    broken(closes_at=administration.opens_at)
    broken(role="teacher", coordinators_see_finished=True)
    Wave.objects.create(name="Spring")
    with pytest.raises(IntegrityError), transaction.atomic():
        Wave.objects.create(name="SPRING")


def test_simultaneous_changes_are_reported_as_a_conflict(administration):
    later = timezone.now() + timedelta(days=60)
    change(administration, closes_at=later, seen=0, by="the first")
    with pytest.raises(EditConflict, match="the first changed it.*closes:"):
        close(administration, seen=0)
    administration.refresh_from_db()
    assert (administration.closes_at, administration.changes) == (later, 1)
    close(administration, seen=1)


def test_without_the_check_the_second_change_overwrites_the_first(
    administration,
):
    """The twin: without `seen`, the second change overwrites the first."""
    later = timezone.now() + timedelta(days=60)
    stale = plan_of(administration)
    change(administration, closes_at=later)
    change_administration(
        administration=administration,
        to=replace(stale, coordinators_see_finished=True),
        seen=None,
        by=COMMAND,
    )
    administration.refresh_from_db()
    assert administration.closes_at == stale.closes_at


def test_only_the_owners_administrators_may_manage_it(staff, publish):
    states = open_now(publish(), name="state")
    of_riverside = open_now(states.published, name="own", district=staff.riverside)
    for user, administration in (
        (staff.dana, states),
        (staff.chen, of_riverside),
        (staff.analyst, of_riverside),
        (staff.sam, of_riverside),
    ):
        for act in (close, reopen, change):
            with pytest.raises(PermissionDenied):
                act(administration, by=user)
        with pytest.raises(PermissionDenied):
            open_now(states.published, name="x", district=staff.lakeside, by=user)
    open_now(states.published, name="x", district=staff.riverside, by=staff.dana)
    close(of_riverside, by=staff.dana)
    close(states, by=staff.state)
    reopen(of_riverside, by=staff.state)


def test_a_district_offers_only_in_its_own_schools_and_waves(staff, publish):
    published = publish()
    lakes = Wave.objects.create(name="Lakes", district=staff.lakeside)
    for fields in (
        {"districts": [staff.lakeside]},
        {"schools": [staff.lincoln, staff.roosevelt]},
        {"wave": lakes},
    ):
        with pytest.raises(ValidationError):
            open_now(published, district=staff.riverside, by=staff.dana, **fields)
    with pytest.raises(ValidationError, match="another owner"):
        open_now(published, wave=lakes)
    assert not Administration.objects.exists()
    of_riverside = open_now(
        published, district=staff.riverside, schools=[staff.lincoln]
    )
    with pytest.raises(ValidationError, match="not in Roosevelt"):
        change(of_riverside, schools=frozenset([staff.lincoln, staff.roosevelt]))


def test_audit_entries_show_values_before_and_after(staff, publish):
    spring = open_now(publish(), district=staff.riverside, by=staff.dana)
    change(spring, schools=frozenset([staff.lincoln]), by=staff.dana)
    close(spring, by=staff.state)
    opened, moved, ended = AuditEntry.objects.order_by("pk")
    assert (opened.action, opened.before) == ("open administration", {})
    assert opened.after["survey"] == "climate 1"
    assert moved.before == {"offered in": "all of its owner's schools"}
    assert moved.after == {"offered in": ["riverside/lincoln"]}
    assert set(ended.before) == set(ended.after) == {"closes"}
    assert {row.district_id for row in (opened, moved, ended)} == {staff.riverside.pk}
    assert ended.by == staff.state.email


def test_progress_counts_invited_people(administration, lincoln):
    now = timezone.now()
    enrol(administration, lincoln, grade="1")
    enrol(administration, lincoln, grade="2", started_at=now)
    enrol(administration, lincoln, grade="3", started_at=now, completed_at=now)
    enrol(administration, lincoln, grade="4", started_at=now, withdrawn_at=now)
    progress = count_progress(administration)
    assert (progress.not_started, progress.in_progress, progress.finished) == (1, 1, 1)


def test_progress_does_not_follow_a_single_withdrawal(administration, lincoln):
    """The number before and after would tell whether that person has finished."""
    now = timezone.now()
    people = [
        enrol(administration, lincoln, grade=grade, started_at=now, completed_at=now)
        for grade in ("1", "2", "3")
    ]
    for person in people[:2]:
        Respondent.objects.filter(pk=person.pk).update(withdrawn_at=now)
    CountedGroup.objects.create(
        respondent=people[0],
        administration=administration,
        school=lincoln,
        changed_at=now,
    )
    assert count_progress(administration).finished == 2
    administration.coordinators_see_finished = True
    assert count_progress(administration).finished == 1


def test_only_owners_manage_waves(staff):
    states = create_wave(name="Spring", by=staff.state)
    spring = create_wave(name="Spring", district=staff.riverside, by=staff.dana)
    for act in (
        lambda: create_wave(name="x", by=staff.dana),
        lambda: create_wave(name="x", district=staff.lakeside, by=staff.dana),
        lambda: rename_wave(wave=states, name="x", by=staff.dana),
        lambda: delete_wave(wave=states, by=staff.dana),
        lambda: delete_wave(wave=spring, by=staff.sam),
    ):
        with pytest.raises(PermissionDenied):
            act()
    rename_wave(wave=spring, name="spring", by=staff.dana)
    assert Wave.objects.get(pk=spring.pk).name == "spring"


def open_now(published: Any, **fields: Any) -> Administration:
    now = timezone.now()
    return open_administration(
        **{
            "name": "spring",
            "published": published,
            "role": Role.STUDENT,
            "opens_at": now - timedelta(days=1),
            "closes_at": now + timedelta(days=30),
            **fields,
        }
    )


if connection.vendor == "postgresql":
    # SQLite has one writer at a time.

    @pytest.mark.django_db(transaction=True)
    def test_the_survey_cannot_be_replaced_during_a_roster_import(
        administration, publish, lincoln
    ):
        replacement = publish(name="other")

        def change_survey() -> str:
            with pytest.raises(DatabaseBusy) as busy:
                change(administration, published=replacement)
            # Closing does not wait for the roster.
            close(administration)
            return busy.value.messages[0]

        with ThreadPoolExecutor(1) as threads, transaction.atomic():
            start_import(administration, lincoln)
            message = threads.submit(elsewhere(change_survey)).result(
                timeout=patience(5)
            )
        assert "a roster that is being applied" in message
        administration.refresh_from_db()
        assert administration.published != replacement
        assert administration.state == "closed"

    @pytest.mark.django_db(transaction=True)
    def test_without_the_lock_the_survey_is_replaced_during_an_import(
        administration, publish, lincoln, monkeypatch
    ):
        """The twin: invited people get another survey."""
        replacement = publish(name="other")
        monkeypatch.setattr(changes.advisory_locks, "lock", lambda *keys: None)
        with ThreadPoolExecutor(1) as threads, transaction.atomic():
            start_import(administration, lincoln)
            threads.submit(
                elsewhere(lambda: change(administration, published=replacement))
            ).result(timeout=patience(5))
        administration.refresh_from_db()
        assert administration.published == replacement
        assert administration.respondents.exists()

    def start_import(administration: Administration, school: Any) -> None:
        """Take a roster's lock and invite a person, until the transaction ends."""
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT pg_advisory_xact_lock(%s, %s)",
                [advisory_locks.ROSTER, administration.pk],
            )
        enrol(administration, school)


def test_the_minimum_group_is_not_lowered_after_the_first_start(
    administration, lincoln
):
    change(administration, minimum_group=4)
    enrol(administration, lincoln, started_at=timezone.now())
    with pytest.raises(ChangeBlocked, match="answered under the promise of 4"):
        change(administration, minimum_group=3)
    change(administration, minimum_group=9)
    administration.refresh_from_db()
    assert administration.minimum_group == 9


def test_joining_waves_cannot_be_allowed_after_the_first_start(administration, lincoln):
    change(administration, joins_waves=True)
    change(administration, joins_waves=False)
    enrol(administration, lincoln, started_at=timezone.now())
    with pytest.raises(ChangeBlocked, match="under the promise that their answers"):
        change(administration, joins_waves=True)
    administration.refresh_from_db()
    assert not administration.joins_waves


def test_joining_waves_can_be_taken_back_after_the_first_start(administration, lincoln):
    change(administration, joins_waves=True)
    enrol(administration, lincoln, started_at=timezone.now())
    change(administration, joins_waves=False)
    administration.refresh_from_db()
    assert not administration.joins_waves


def test_a_minimum_group_without_people_is_refused(administration):
    with pytest.raises(IntegrityError), transaction.atomic():
        Administration.objects.update(minimum_group=0)
