"""What of a running administration may be changed, and what obeys it at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from accounts.models import AuditEntry
from survey.administrations import (
    Busy,
    ChangedMeanwhile,
    NeedsTyping,
    WouldHarm,
    change_administration,
    changes,
    close_administration,
    open_administration,
    plan_of,
    reopen_administration,
    standing,
)
from survey.database import advisory_locks
from survey.models import Administration, Response, Role, Wave
from survey.taking import resume_cookie
from survey.tests.conftest import FIRST_PAGE, SECOND_PAGE, code_of, enrol
from survey.tests.taking.test_storage_races import elsewhere
from survey.waves import create_wave, delete_wave, rename_wave

pytestmark = pytest.mark.django_db
COMMAND = "a test"
MINUTE = timedelta(minutes=1)


def changed(administration: Administration, **to: Any) -> Administration:
    options = {name: to.pop(name) for name in ("seen", "by", "confirmed") if name in to}
    return change_administration(
        administration=administration,
        to=replace(plan_of(administration), **to),
        **{"seen": None, "by": COMMAND, **options},
    )


def closed(administration: Administration, **options: Any) -> Administration:
    return close_administration(
        administration=administration, **{"seen": None, "by": COMMAND, **options}
    )


def reopened(administration: Administration, **options: Any) -> Administration:
    return reopen_administration(
        administration=administration,
        **{
            "closes_at": timezone.now() + timedelta(days=1),
            "seen": None,
            "by": COMMAND,
            **options,
        },
    )


def put_back(administration: Administration, by: timedelta) -> None:
    """As if its whole window were so much earlier."""
    administration.refresh_from_db()
    Administration.objects.filter(pk=administration.pk).update(
        opens_at=administration.opens_at - by, closes_at=administration.closes_at - by
    )


def outcome(reply: Any) -> tuple[int, str]:
    return reply.status_code, reply.json().get("error", "")


def test_closing_now_holds_for_logins_at_once_and_for_saves_after_ten_minutes(
    browser, maya, noor
):
    administration = maya.administration
    browser.log_in(maya)
    base = browser.shell()["revision"]
    assert browser.save(1, FIRST_PAGE, base).status_code == 200
    closed(administration)

    # Noor has not started: no login any more. Maya goes on for ten minutes.
    reply = browser.__class__().post("/", {"code": code_of(noor)})
    assert reply.status_code == 422
    noor.refresh_from_db()
    assert noor.started_at is None
    assert browser.save(2, SECOND_PAGE, base + 1).status_code == 200
    put_back(administration, 9 * MINUTE)
    assert browser.save(2, SECOND_PAGE, base + 2).status_code == 200
    put_back(administration, 2 * MINUTE)
    assert outcome(browser.save(2, SECOND_PAGE, base + 3)) == (409, "closed")
    saved = Response.objects.filter(respondent_id=maya.pk)
    assert saved.count() == 9
    assert max(saved.values_list("revision", flat=True)) == base + 2
    reply = browser.__class__().post("/", {"code": code_of(maya)})
    assert reply.status_code == 422

    # Reopened, each goes on: the very next save is taken.
    reopened(administration)
    assert browser.save(2, SECOND_PAGE, base + 4).status_code == 200
    browser.__class__().log_in(noor)


def test_extending_lets_a_person_in_the_middle_go_on(browser, maya):
    administration = maya.administration
    browser.log_in(maya)
    base = browser.shell()["revision"]
    # A tab that loaded before knows the old end, and asks the server anyway.
    administration = changed(
        administration, closes_at=timezone.now() + 1 * MINUTE, confirmed="students-2027"
    )
    put_back(administration, 11 * MINUTE + MINUTE)
    assert outcome(browser.save(1, FIRST_PAGE, base)) == (409, "closed")
    put_back(administration, -12 * MINUTE)
    assert browser.save(1, FIRST_PAGE, base).status_code == 200
    administration.refresh_from_db()
    changed(administration, closes_at=timezone.now() + timedelta(days=2))
    assert browser.save(2, SECOND_PAGE, base + 1).status_code == 200
    assert browser.get("/take/complete/").status_code == 200


def test_no_process_keeps_an_old_window(browser, maya, administration, monkeypatch):
    """The cookie that stands in for a session remembers the survey, and for
    thirty seconds; of the window nothing is kept."""
    browser.log_in(maya)
    base = browser.shell()["revision"]
    browser.cookies.pop("sessionid")
    tag = browser.get("/take/", headers={"Accept": "application/json"}).json()["tag"]
    assert browser.save(1, FIRST_PAGE, base, tag=tag).status_code == 200
    assert administration.pk in resume_cookie._digests
    closed(administration)
    put_back(administration, 11 * MINUTE)
    assert outcome(browser.save(1, FIRST_PAGE, base + 1, tag=tag)) == (409, "closed")


def test_an_exchanged_survey_is_known_after_thirty_seconds(
    administration, publish, monkeypatch
):
    old = resume_cookie.published_digest(administration.pk)
    changed(administration, published=publish(name="other"))
    new = Administration.objects.get().published_id
    assert new != old
    now = resume_cookie.time.monotonic()
    monkeypatch.setattr(resume_cookie.time, "monotonic", lambda: now + 29)
    assert resume_cookie.published_digest(administration.pk) == old
    monkeypatch.setattr(resume_cookie.time, "monotonic", lambda: now + 31)
    assert resume_cookie.published_digest(administration.pk) == new


# What would harm


def test_survey_and_role_stay_once_somebody_is_invited(
    administration, publish, lincoln
):
    other = publish(name="other")
    administration = changed(administration, published=other, role=Role.PARENT)
    assert (administration.published, administration.role) == (other, Role.PARENT)
    enrol(administration, lincoln)
    for to, word in (
        ({"role": Role.STUDENT}, "Open another administration"),
        ({"published": publish(name="third")}, "corrected version"),
    ):
        with pytest.raises(WouldHarm, match=word):
            changed(administration, **to)
    administration.refresh_from_db()
    assert (administration.published, administration.role) == (other, Role.PARENT)


def test_a_place_with_people_is_not_taken_away(staff, publish):
    administration = at_once(publish(), districts=[staff.riverside, staff.lakeside])
    enrol(administration, staff.lincoln)
    lakeside, riverside = (
        frozenset([one]) for one in (staff.lakeside, staff.riverside)
    )
    with pytest.raises(WouldHarm, match="People of Lincoln are invited"):
        changed(administration, districts=lakeside)
    # Nobody of Lakeside's is; and Lincoln may be named alone instead.
    administration = changed(administration, districts=riverside)
    lincoln = frozenset([staff.lincoln])
    administration = changed(administration, districts=frozenset(), schools=lincoln)
    assert list(administration.schools.all()) == [staff.lincoln]
    with pytest.raises(WouldHarm, match="Lincoln"):
        changed(administration, schools=frozenset([staff.washington]))
    # No place at all is everywhere.
    changed(administration, schools=frozenset())


def test_a_place_whose_people_were_withdrawn_is_taken_away(staff, publish):
    """As the refusal advises."""
    administration = at_once(publish(), districts=[staff.riverside])
    enrol(administration, staff.washington, withdrawn_at=timezone.now())
    enrol(administration, staff.lincoln)
    lincoln = frozenset([staff.lincoln])
    administration = changed(administration, districts=frozenset(), schools=lincoln)
    assert list(administration.schools.all()) == [staff.lincoln]


def test_everywhere_is_not_narrowed_past_its_people(staff, publish):
    administration = at_once(publish())
    for school in (staff.lincoln, staff.washington, staff.roosevelt):
        enrol(administration, school)
    with pytest.raises(WouldHarm, match="Lincoln and Washington"):
        changed(administration, districts=frozenset([staff.lakeside]))


def test_a_beginning_stays_once_somebody_has_started(administration, lincoln):
    now = timezone.now()
    administration = changed(administration, opens_at=now + timedelta(days=2))
    assert administration.state == "planned"
    administration = changed(administration, opens_at=now - timedelta(days=2))
    enrol(administration, lincoln)
    administration = changed(administration, opens_at=now - timedelta(hours=2))
    enrol(administration, lincoln, started_at=now, grade="7")
    for opens_at in (now + timedelta(hours=2), now - timedelta(days=5)):
        with pytest.raises(WouldHarm, match="Somebody has started"):
            changed(administration, opens_at=opens_at)
    administration.refresh_from_db()
    assert administration.opens_at == now - timedelta(hours=2)


def test_an_end_is_in_the_future_or_now(administration):
    now = timezone.now()
    with pytest.raises(WouldHarm, match="Close now"):
        changed(administration, closes_at=now - MINUTE)
    administration = changed(administration, closes_at=now + 11 * MINUTE)
    with pytest.raises(NeedsTyping, match="type its name: students-2027"):
        changed(administration, closes_at=now + 9 * MINUTE)
    with pytest.raises(NeedsTyping):
        changed(administration, closes_at=now + 9 * MINUTE, confirmed="students")
    administration = changed(
        administration, closes_at=now + 9 * MINUTE, confirmed="students-2027"
    )
    # Longer is never dangerous, however short it still is.
    administration = changed(administration, closes_at=now + 9.5 * MINUTE)
    administration = closed(administration)
    with pytest.raises(WouldHarm, match="reopen it"):
        changed(administration, closes_at=now + timedelta(days=1))
    with pytest.raises(WouldHarm, match="closed already"):
        closed(administration)
    with pytest.raises(ValidationError, match="over already"):
        reopened(administration, closes_at=now - MINUTE)
    administration = reopened(administration)
    with pytest.raises(WouldHarm, match="not closed"):
        reopened(administration)


def test_what_has_not_begun_is_not_closed(publish):
    tomorrow = timezone.now() + timedelta(days=1)
    planned = at_once(
        publish(), opens_at=tomorrow, closes_at=tomorrow + timedelta(days=9)
    )
    with pytest.raises(WouldHarm, match="has not begun"):
        closed(planned)
    # Nobody is in the middle of it, so nothing has to be typed.
    changed(planned, opens_at=timezone.now(), closes_at=timezone.now() + 5 * MINUTE)


@pytest.mark.parametrize(
    "to",
    [
        {"closes_at": timezone.now() + timedelta(days=9999)},
        {"closes_at": timezone.now().replace(year=9999)},
        {"opens_at": timezone.now().replace(year=1)},
        {"role": Role.TEACHER, "coordinators_see_finished": True},
    ],
)
def test_what_cannot_be_changes_nothing(administration, to):
    before = Administration.objects.values().get()
    with pytest.raises(ValidationError):
        changed(administration, **to)
    assert Administration.objects.values().get() == before
    assert not AuditEntry.objects.exists()


def test_the_database_holds_what_it_can(administration):
    def broken(**fields: Any) -> None:
        with pytest.raises(IntegrityError), transaction.atomic():
            Administration.objects.update(**fields)

    broken(closes_at=administration.opens_at)
    broken(role="teacher", coordinators_see_finished=True)
    Wave.objects.create(name="Spring")
    with pytest.raises(IntegrityError), transaction.atomic():
        Wave.objects.create(name="SPRING")


def test_two_who_change_at_once_see_each_other(administration):
    later = timezone.now() + timedelta(days=60)
    changed(administration, closes_at=later, seen=0, by="the first")
    with pytest.raises(ChangedMeanwhile, match="the first changed it.*closes:"):
        closed(administration, seen=0)
    administration.refresh_from_db()
    assert (administration.closes_at, administration.changes) == (later, 1)
    closed(administration, seen=1)


def test_without_the_check_the_second_undoes_the_first(administration):
    """The twin: nobody told what they had seen."""
    later = timezone.now() + timedelta(days=60)
    stale = plan_of(administration)
    changed(administration, closes_at=later)
    change_administration(
        administration=administration,
        to=replace(stale, coordinators_see_finished=True),
        seen=None,
        by=COMMAND,
    )
    administration.refresh_from_db()
    assert administration.closes_at == stale.closes_at


def test_only_its_owners_administrators_may(staff, publish):
    states = at_once(publish(), name="state")
    own = at_once(states.published, name="own", district=staff.riverside)
    for user, administration in (
        (staff.dana, states),
        (staff.chen, own),
        (staff.analyst, own),
        (staff.sam, own),
    ):
        for act in (closed, reopened, changed):
            with pytest.raises(PermissionDenied):
                act(administration, by=user)
        with pytest.raises(PermissionDenied):
            at_once(states.published, name="x", district=staff.lakeside, by=user)
    at_once(states.published, name="x", district=staff.riverside, by=staff.dana)
    closed(own, by=staff.dana)
    closed(states, by=staff.state)
    reopened(own, by=staff.state)


def test_a_district_offers_inside_and_in_waves_of_its_own(staff, publish):
    published = publish()
    lakes = Wave.objects.create(name="Lakes", district=staff.lakeside)
    for fields in (
        {"districts": [staff.lakeside]},
        {"schools": [staff.lincoln, staff.roosevelt]},
        {"wave": lakes},
    ):
        with pytest.raises(ValidationError):
            at_once(published, district=staff.riverside, by=staff.dana, **fields)
    with pytest.raises(ValidationError, match="its owner"):
        at_once(published, wave=lakes)
    assert not Administration.objects.exists()
    own = at_once(published, district=staff.riverside, schools=[staff.lincoln])
    with pytest.raises(ValidationError, match="not in Roosevelt"):
        changed(own, schools=frozenset([staff.lincoln, staff.roosevelt]))


def test_each_change_is_written_down_with_before_and_after(staff, publish):
    one = at_once(publish(), district=staff.riverside, by=staff.dana)
    changed(one, schools=frozenset([staff.lincoln]), by=staff.dana)
    closed(one, by=staff.state)
    opened, moved, ended = AuditEntry.objects.order_by("pk")
    assert (opened.action, opened.before) == ("open administration", {})
    assert opened.after["survey"] == "climate 1"
    assert moved.before == {"offered in": "all of its owner's schools"}
    assert moved.after == {"offered in": ["riverside/lincoln"]}
    assert set(ended.before) == set(ended.after) == {"closes"}
    assert {one.district_id for one in (opened, moved, ended)} == {staff.riverside.pk}
    assert ended.by == staff.state.email


def test_standing_counts_the_invited(administration, lincoln):
    now = timezone.now()
    enrol(administration, lincoln, grade="1")
    enrol(administration, lincoln, grade="2", started_at=now)
    enrol(administration, lincoln, grade="3", started_at=now, completed_at=now)
    enrol(administration, lincoln, grade="4", started_at=now, withdrawn_at=now)
    found = standing(administration)
    assert (found.not_started, found.in_the_middle, found.finished) == (1, 1, 1)


def test_waves_are_their_owners(staff):
    states = create_wave(name="Spring", by=staff.state)
    own = create_wave(name="Spring", district=staff.riverside, by=staff.dana)
    for act in (
        lambda: create_wave(name="x", by=staff.dana),
        lambda: create_wave(name="x", district=staff.lakeside, by=staff.dana),
        lambda: rename_wave(wave=states, name="x", by=staff.dana),
        lambda: delete_wave(wave=states, by=staff.dana),
        lambda: delete_wave(wave=own, by=staff.sam),
    ):
        with pytest.raises(PermissionDenied):
            act()
    rename_wave(wave=own, name="spring", by=staff.dana)
    assert Wave.objects.get(pk=own.pk).name == "spring"


def at_once(published: Any, **fields: Any) -> Administration:
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
    def test_a_survey_is_not_exchanged_while_people_are_being_invited(
        administration, publish, lincoln
    ):
        other = publish(name="other")

        def try_it() -> str:
            with pytest.raises(Busy) as busy:
                changed(administration, published=other)
            # A window can be closed meanwhile.
            closed(administration)
            return busy.value.messages[0]

        with ThreadPoolExecutor(1) as threads, transaction.atomic():
            is_importing(administration, lincoln)
            said = threads.submit(elsewhere(try_it)).result(timeout=5)
        assert "a roster that is being applied" in said
        administration.refresh_from_db()
        assert administration.published != other
        assert administration.state == "closed"

    @pytest.mark.django_db(transaction=True)
    def test_without_the_wait_it_is_exchanged_behind_them(
        administration, publish, lincoln, monkeypatch
    ):
        """The twin: another survey for those who were invited to the old one."""
        other = publish(name="other")
        monkeypatch.setattr(changes, "_wait_for_rosters", lambda administration: None)
        with ThreadPoolExecutor(1) as threads, transaction.atomic():
            is_importing(administration, lincoln)
            threads.submit(
                elsewhere(lambda: changed(administration, published=other))
            ).result(timeout=5)
        administration.refresh_from_db()
        assert administration.published == other
        assert administration.respondents.exists()

    def is_importing(administration: Administration, school: Any) -> None:
        """As a roster does, until the transaction ends."""
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT pg_advisory_xact_lock(%s, %s)",
                [advisory_locks.ROSTER, administration.pk],
            )
        enrol(administration, school)
