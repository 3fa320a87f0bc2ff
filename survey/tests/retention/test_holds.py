"""While a round is on hold nothing of it is destroyed, and nobody of it erased."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import DatabaseError, IntegrityError, connection, transaction
from django.utils import timezone

from accounts.models import AuditEntry, QueuedEmail
from survey.fieldwork.administrations.changes import reopen_administration
from survey.fieldwork.administrations.removal import remove_administration
from survey.models import (
    Administration,
    CardSet,
    Destruction,
    Identity,
    Job,
    Response,
    Retention,
)
from survey.people.erasing import erase
from survey.people.erasing.erase import ErasureConflict, order_erasure
from survey.people.retention import destroy as destroying
from survey.people.retention import holds
from survey.people.retention.hold_changes import lift_hold, place_hold
from survey.people.retention.holds import OnHold
from survey.people.retention.orders import apply_retention, order_destruction
from survey.tasks import check_erasures
from survey.tests.erasing.conftest import ASKED
from survey.tests.erasing.conftest import run as run_erasure
from survey.tests.erasing.test_erase import publish_round
from survey.tests.people import invite
from survey.tests.retention.conftest import (
    ANSWERS,
    NAMES,
    hold,
    job_of,
    keep_for,
    run,
)
from survey.work import jobs

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite]


@pytest.mark.parametrize("kind", [NAMES, ANSWERS])
def test_a_hold_stops_destroying_and_says_who_holds_it_and_why(filled, staff, kind):
    hold(filled, staff)
    with pytest.raises(OnHold) as refused:
        order_destruction(filled, kind, by=staff.state)
    assert "Office of the general counsel" in str(refused.value)
    assert "Roe v. Riverside" in str(refused.value)
    apply_retention()
    assert not Destruction.objects.exists()
    assert Identity.objects.filter(administration=filled).count() == 2
    entry = AuditEntry.objects.get(action="place a hold")
    assert entry.after["reason"] == "Roe v. Riverside"


def test_without_the_hold_it_would_be_destroyed(filled, staff):
    """The twin of the task: the same round is due."""
    apply_retention()
    assert set(Destruction.objects.values_list("kind", flat=True)) == {NAMES, ANSWERS}


@pytest.mark.parametrize("kind", [NAMES, ANSWERS])
def test_a_hold_stops_a_destruction_that_was_ordered(filled, staff, kind):
    destruction = order_destruction(filled, kind)
    placed = hold(filled, staff)
    jobs.run(job_of(destruction).pk)
    job = job_of(destruction)
    assert job.state == Job.State.FAILED and "general counsel" in job.message
    assert Identity.objects.filter(administration=filled).count() == 2
    apply_retention()
    assert job_of(destruction) == job
    lift_hold(placed, reason="Settled", by=staff.state)
    apply_retention()
    # Warned anew, as of the other kind; a month passes.
    assert job_of(destruction) == job
    emails = QueuedEmail.objects.filter(kind="retention warning")
    assert sorted(email.facts["kind"] for email in emails) == [ANSWERS, NAMES]
    apply_retention(timezone.now() + timedelta(days=29))
    assert job_of(destruction) == job
    Retention.objects.update(**{f"{kind}_warned_at": a_month_ago()})
    apply_retention()
    assert run(destruction).state == "done"


@pytest.mark.parametrize("kind", [NAMES, ANSWERS])
def test_a_job_that_waited_during_a_hold_waits_for_the_new_month(filled, staff, kind):
    destruction = order_destruction(filled, kind)
    lift_hold(hold(filled, staff), reason="Settled", by=staff.state)
    assert run(destruction).state == "running"
    assert "A hold was lifted" in job_of(destruction).message
    apply_retention()
    destroying.destroy_data(job_of(destruction), jobs.Progress(job_of(destruction)))
    destruction.refresh_from_db()
    assert destruction.state == "running"
    assert Identity.objects.filter(administration=filled).count() == 2
    assert Response.objects.filter(administration_id=filled.pk).count() == 2


def test_without_the_month_lifting_a_hold_would_destroy_within_the_hour(
    filled, staff, monkeypatch
):
    monkeypatch.setattr(destroying, "reason_to_pause", lambda *_: "")
    destruction = order_destruction(filled, NAMES)
    lift_hold(hold(filled, staff), reason="Settled", by=staff.state)
    assert run(destruction).state == "done"


def test_what_was_ordered_goes_on_also_without_a_period(filled, staff):
    """Half of the names are destroyed, and nothing brings them back."""
    destruction = order_destruction(filled, NAMES)
    placed = hold(filled, staff)
    jobs.run(job_of(destruction).pk)
    lift_hold(placed, reason="Settled", by=staff.state)
    Retention.objects.update(identities_days=None, answers_days=None)
    apply_retention()
    assert QueuedEmail.objects.filter(kind="retention warning").count() == 1
    Retention.objects.update(identities_warned_at=a_month_ago())
    apply_retention()
    assert run(destruction).state == "done"


def files_of_two(filled, staff) -> list[CardSet]:
    return [
        CardSet.objects.create(
            administration=filled,
            school=staff.lincoln,
            by=staff.dana,
            made_at=timezone.now(),
            file_name=f"cards/{name}.pdf",
        )
        for name in ("x", "y")
    ]


def only_files_remain(filled, kind):
    """Order a destruction of which everything but files and the end is done."""
    destruction = order_destruction(filled, kind)
    while kind == NAMES and destroying.destroy_batch(destruction):
        pass
    return destruction


@pytest.mark.parametrize("kind", [NAMES, ANSWERS])
def test_files_of_a_round_on_hold_stay(filled, staff, kind):
    sets = files_of_two(filled, staff)
    destruction = only_files_remain(filled, kind)
    hold(filled, staff)
    with pytest.raises(OnHold):
        destroying.destroy_rows_of(destruction)
    for card_set in sets:
        card_set.refresh_from_db()
        assert card_set.deleted_at is None and card_set.file_name


@pytest.mark.parametrize("kind", [NAMES, ANSWERS])
def test_files_would_go_if_the_hold_was_looked_at_later(
    filled, staff, kind, monkeypatch
):
    sets = files_of_two(filled, staff)
    destruction = only_files_remain(filled, kind)
    hold(filled, staff)
    monkeypatch.setattr(destroying, "refuse_if_held", lambda *_: None)
    destroying._delete_files(destruction, None)
    for card_set in sets:
        card_set.refresh_from_db()
        assert card_set.deleted_at is not None


@pytest.fixture
def module(filled, staff) -> Administration:
    """A module of the round, closed and warned as long as it."""
    row = publish_round(filled, "riverside-pages")
    row.module_of, row.district = filled, staff.riverside
    row.save(update_fields=["module_of", "district"])
    keep_for(row, a_month_ago(), identities_days=5, answers_days=5)
    return row


def a_month_ago():
    return timezone.now() - timedelta(days=31)


@pytest.mark.parametrize("kind", [NAMES, ANSWERS])
def test_a_hold_on_the_states_round_holds_its_modules(filled, staff, module, kind):
    ordered = order_destruction(module, kind)
    placed = hold(filled, staff)
    apply_retention()
    assert list(Destruction.objects.all()) == [ordered]
    jobs.run(job_of(ordered).pk)
    assert "general counsel" in job_of(ordered).message
    Administration.objects.filter(pk=module.pk).update(
        identities_destroyed_at=None, answers_destroyed_at=None
    )
    with pytest.raises(OnHold):
        order_destruction(module, kind)
    lift_hold(placed, reason="Settled", by=staff.state)
    row = Retention.objects.get(administration=module)
    assert (row.identities_warned_at, row.answers_warned_at) == (None, None)


def test_a_hold_on_the_states_round_stops_a_modules_destruction_that_runs(
    filled, staff, module
):
    ordered = order_destruction(module, ANSWERS)
    hold(filled, staff)
    jobs.run(job_of(ordered).pk)
    before = job_of(ordered)
    apply_retention()
    assert job_of(ordered) == before


def test_without_the_states_hold_a_module_would_be_destroyed(module, staff):
    """The twin; and a hold on a module does not hold the state's round."""
    apply_retention()
    kinds = Destruction.objects.filter(administration=module)
    assert set(kinds.values_list("kind", flat=True)) == {NAMES, ANSWERS}


def test_a_hold_on_a_module_leaves_the_states_round(filled, staff, module):
    hold(module, staff, district=staff.riverside)
    apply_retention()
    assert {row.administration for row in Destruction.objects.all()} == {filled}


def test_the_database_empties_no_module_of_a_round_on_hold(filled, staff, module):
    if connection.vendor != "postgresql":
        pytest.skip("the function is PostgreSQL's")
    Administration.objects.filter(pk=module.pk).update(
        answers_destroyed_at=timezone.now()
    )
    with connection.cursor() as cursor:
        values = [module.pk, b"k" * 32, 1]
        hold(filled, staff)
        with (
            pytest.raises(DatabaseError, match="is on hold"),
            transaction.atomic(),
        ):
            cursor.execute(destroying.DESTROY, values)
        filled.holds.all().delete()
        cursor.execute(destroying.DESTROY, values)


@pytest.mark.parametrize("kind", [NAMES, ANSWERS])
def test_a_destroyed_module_does_not_keep_the_round_closed(filled, staff, module, kind):
    run(order_destruction(module, kind))
    module.refresh_from_db()
    closed, later = module.closes_at, timezone.now() + timedelta(days=1)
    reopen_administration(
        administration=filled, closes_at=later, seen=None, by=staff.state
    )
    module.refresh_from_db()
    filled.refresh_from_db()
    assert (filled.closes_at, module.closes_at) == (later, closed)
    # The twin: the database refuses to open it again.
    with pytest.raises(IntegrityError), transaction.atomic():
        Administration.objects.filter(pk=module.pk).update(closes_at=later)


@pytest.mark.parametrize("kind", [NAMES, ANSWERS])
def test_without_the_check_an_ordered_destruction_would_go_on(
    filled, staff, kind, monkeypatch
):
    monkeypatch.setattr(destroying, "refuse_if_held", lambda *_: None)
    monkeypatch.setattr(destroying, "hold_on", lambda *_: None)
    destruction = order_destruction(filled, kind)
    hold(filled, staff)
    jobs.run(job_of(destruction).pk)
    destruction.refresh_from_db()
    # PostgreSQL destroys no answers of a round on hold, whatever the code does.
    is_refused = kind == ANSWERS and connection.vendor == "postgresql"
    assert destruction.state == ("running" if is_refused else "done")


def test_a_hold_stops_in_the_middle(filled, staff, monkeypatch):
    monkeypatch.setattr(destroying, "BATCH", 1)
    destruction = order_destruction(filled, NAMES)
    destroying.destroy_batch(destruction)
    hold(filled, staff)
    with pytest.raises(OnHold):
        destroying.destroy_batch(destruction)
    assert Identity.objects.filter(administration=filled).count() == 1


def test_nobody_of_a_round_on_hold_is_erased(filled, staff, maya):
    placed = hold(filled, staff)
    with pytest.raises(ErasureConflict) as refused:
        order_erasure([maya.pk], ASKED, by=staff.dana)
    assert "Office of the general counsel" in str(refused.value)
    assert "Roe v. Riverside" in str(refused.value)
    lift_hold(placed, reason="Settled", by=staff.state)
    run_erasure(order_erasure([maya.pk], ASKED, by=staff.dana))
    assert not Identity.objects.filter(pk=maya.pk).exists()


def test_without_the_hold_the_person_would_be_erased(filled, staff, maya, monkeypatch):
    hold(filled, staff)
    monkeypatch.setattr(erase, "_refuse_held", lambda *_: None)
    monkeypatch.setattr(erase, "refuse_if_held", lambda *_: None)
    run_erasure(order_erasure([maya.pk], ASKED, by=staff.dana))
    assert not Identity.objects.filter(pk=maya.pk).exists()


def test_a_person_of_another_round_on_hold_is_not_erased(filled, staff, maya):
    fall = publish_round(filled, "fall")
    invite(fall, staff.lincoln, "00123", "Maya Zaragoza")
    hold(fall, staff)
    with pytest.raises(ErasureConflict):
        order_erasure([maya.pk], ASKED, by=staff.dana)


def test_who_was_to_be_erased_before_the_hold_waits_until_it_is_lifted(
    filled, staff, maya, ali
):
    erasure = order_erasure([maya.pk], ASKED, by=staff.dana)
    placed = hold(filled, staff)
    job = Job.objects.get(kind=erase.KIND, subject_id=erasure.pk)
    jobs.run(job.pk)
    job.refresh_from_db()
    assert job.state == Job.State.FAILED and "general counsel" in job.message
    assert Identity.objects.filter(pk=maya.pk).exists()
    lift_hold(placed, reason="Settled", by=staff.state)
    later = Job.objects.filter(kind=erase.KIND, subject_id=erasure.pk).latest("pk")
    assert later != job
    jobs.run(later.pk)
    assert not Identity.objects.filter(pk=maya.pk).exists()


def stopped_by_another_round(filled, staff, maya):
    """Order an erasure that waits for a hold on another round of the person."""
    from survey.tests.erasing.test_erase import publish_round

    erasure = order_erasure([maya.pk], ASKED, by=staff.dana)
    fall = publish_round(filled, "fall")
    invite(fall, staff.lincoln, "00123", "Maya Zaragoza")
    placed = hold(fall, staff)
    job = Job.objects.get(kind=erase.KIND, subject_id=erasure.pk)
    jobs.run(job.pk)
    job.refresh_from_db()
    assert job.state == Job.State.FAILED and "general counsel" in job.message
    return placed


def waiting_erasures():
    return Job.objects.filter(kind=erase.KIND, ended_at=None)


def test_an_erasure_that_another_round_stopped_goes_on(filled, staff, maya):
    placed = stopped_by_another_round(filled, staff, maya)
    lift_hold(placed, reason="Settled", by=staff.state)
    jobs.run(waiting_erasures().get().pk)
    assert not Identity.objects.filter(external_id="00123").exists()


def test_the_task_goes_on_with_erasures_that_nobody_holds(filled, staff, maya):
    placed = stopped_by_another_round(filled, staff, maya)
    check_erasures()
    assert not waiting_erasures().exists()
    # As after a restore, or where the job of lifting was lost.
    type(placed).objects.filter(pk=placed.pk).update(
        lifted_at=timezone.now(), lifted_by=staff.state
    )
    check_erasures()
    jobs.run(waiting_erasures().get().pk)
    assert not Identity.objects.filter(external_id="00123").exists()
    check_erasures()
    assert not waiting_erasures().exists()


def test_a_hold_of_a_district_is_of_its_people(filled, staff, maya):
    noor = invite(filled, staff.roosevelt, "00555", "Noor Haddad")
    hold(filled, staff, district=staff.riverside)
    with pytest.raises(ErasureConflict):
        order_erasure([maya.pk], ASKED, by=staff.dana)
    run_erasure(order_erasure([noor.pk], ASKED, by=staff.state))
    # Nothing of the round is destroyed as a whole.
    with pytest.raises(OnHold):
        order_destruction(filled, NAMES)


def test_lifting_a_hold_begins_a_new_month(filled, staff):
    placed = hold(filled, staff)
    assert lift_hold(placed, reason="Settled", by=staff.state)
    assert not lift_hold(placed, reason="Settled", by=staff.state)
    apply_retention()
    assert not Destruction.objects.exists()
    warned_at = Retention.objects.get().identities_warned_at
    assert timezone.now() - warned_at < timedelta(minutes=1)
    placed.refresh_from_db()
    assert (placed.lifted_by, placed.lifted_reason) == (staff.state, "Settled")


@pytest.mark.parametrize("name", ["chen", "analyst", "sam"])
def test_only_administrators_place_holds(filled, staff, name):
    for district in (None, staff.riverside):
        with pytest.raises(PermissionDenied):
            place_hold(
                filled,
                holder="Me",
                reason="No",
                district=district,
                by=getattr(staff, name),
            )


def test_a_district_lifts_its_own_holds_and_no_other(filled, staff):
    of_state, of_district = (
        hold(filled, staff),
        hold(filled, staff, district=staff.riverside),
    )
    with pytest.raises(PermissionDenied):
        lift_hold(of_state, reason="", by=staff.dana)
    with pytest.raises(PermissionDenied):
        place_hold(
            filled, holder="A", reason="B", district=staff.lakeside, by=staff.dana
        )
    assert lift_hold(of_district, reason="Settled", by=staff.dana)


def test_a_round_on_hold_is_not_removed(administration, staff):
    hold(administration, staff)
    with pytest.raises(ValidationError, match="general counsel"):
        remove_administration(
            administration=administration,
            seen=None,
            confirmed=administration.name,
            by=staff.state,
        )
    assert Administration.objects.filter(pk=administration.pk).exists()


def test_without_the_hook_it_would_be_removed(administration, staff, monkeypatch):
    from survey.fieldwork.administrations import removal

    remaining = [hook for hook in removal._hooks if hook != holds.refuse_to_remove]
    monkeypatch.setattr(removal, "_hooks", remaining)
    hold(administration, staff)
    remove_administration(
        administration=administration,
        seen=None,
        confirmed=administration.name,
        by=staff.state,
    )
    assert not Administration.objects.exists()


def hold_and_lift(administration, staff) -> None:
    lift_hold(hold(administration, staff), reason="Settled", by=staff.state)


@pytest.fixture
def passing_hold(filled, staff, monkeypatch):
    """A hold that comes and goes after the first batch, and while answers are read."""
    monkeypatch.setattr(destroying, "BATCH", 1)
    batch = destroying.destroy_batch

    def batch_and_hold(*args: object) -> int:
        done = batch(*args)
        hold_and_lift(filled, staff)
        return done

    def hold_and_read(_administration: int) -> list:
        hold_and_lift(filled, staff)
        return []

    monkeypatch.setattr(destroying, "destroy_batch", batch_and_hold)
    monkeypatch.setattr(destroying, "derived_rows", hold_and_read)


@pytest.mark.parametrize("kind", [NAMES, ANSWERS])
def test_a_hold_that_came_and_went_meanwhile_begins_a_new_month(
    filled, passing_hold, kind
):
    destruction = order_destruction(filled, kind)
    jobs.run(job_of(destruction).pk)
    assert "warned anew" in job_of(destruction).message
    destruction.refresh_from_db()
    assert destruction.state == Destruction.State.RUNNING
    if kind == NAMES:
        assert Identity.objects.filter(administration=filled).count() == 1
    else:
        assert Response.objects.filter(administration_id=filled.pk).count() == 2


def hold_before_files(filled, staff, monkeypatch) -> list[str]:
    """Let a hold come and go before files are deleted; return what is deleted."""
    delete_files, deleted = destroying._delete_files, []

    def hold_and_delete(*args: object) -> None:
        hold_and_lift(filled, staff)
        delete_files(*args)

    monkeypatch.setattr(destroying, "_delete_files", hold_and_delete)
    monkeypatch.setattr(
        destroying.round_files,
        "delete_round_files",
        lambda _administration, kind: deleted.append(kind) or 0,
    )
    return deleted


@pytest.mark.parametrize("kind", [NAMES, ANSWERS])
def test_a_hold_that_came_and_went_before_files_keeps_them(
    filled, staff, monkeypatch, kind
):
    deleted = hold_before_files(filled, staff, monkeypatch)
    destruction = order_destruction(filled, kind)
    jobs.run(job_of(destruction).pk)
    assert "warned anew" in job_of(destruction).message
    destruction.refresh_from_db()
    assert (destruction.state, deleted) == (Destruction.State.RUNNING, [])


@pytest.mark.parametrize("kind", [NAMES, ANSWERS])
def test_without_the_look_before_files_they_would_be_deleted(
    filled, staff, monkeypatch, kind
):
    """The twin."""
    deleted = hold_before_files(filled, staff, monkeypatch)
    monkeypatch.setattr(destroying, "_refuse_if_paused", lambda _destruction: None)
    jobs.run(job_of(order_destruction(filled, kind)).pk)
    assert deleted == [kind]


def refuse_and_lift(filled, staff, monkeypatch) -> None:
    """Let the database refuse for a hold that is lifted before anybody looks."""

    def refuse(*_args: object) -> None:
        hold_and_lift(filled, staff)
        raise IntegrityError("on hold")

    monkeypatch.setattr(destroying, "_destroy_answers_and_derived", refuse)


def test_a_hold_that_was_lifted_after_the_database_refused_begins_a_new_month(
    filled, staff, monkeypatch
):
    refuse_and_lift(filled, staff, monkeypatch)
    destruction = order_destruction(filled, ANSWERS)
    jobs.run(job_of(destruction).pk)
    job = job_of(destruction)
    assert "warned anew" in job.message and job.state != Job.State.FAILED


def test_other_refusals_of_the_database_stay_errors(filled, staff, monkeypatch):
    refuse_and_lift(filled, staff, monkeypatch)
    monkeypatch.setattr(destroying, "_refuse_if_paused", lambda _destruction: None)
    destruction = order_destruction(filled, ANSWERS)
    with pytest.raises(IntegrityError):
        destroying.destroy_answers(destruction, None)


@pytest.mark.parametrize("kind", [NAMES, ANSWERS])
def test_without_the_look_at_the_warning_it_would_go_on(
    filled, passing_hold, monkeypatch, kind
):
    """The twin: the hold is no longer there when holds are looked for."""
    monkeypatch.setattr(destroying, "_refuse_if_paused", lambda _destruction: None)
    destruction = order_destruction(filled, kind)
    jobs.run(job_of(destruction).pk)
    destruction.refresh_from_db()
    assert destruction.state == Destruction.State.DONE
    if kind == NAMES:
        assert not Identity.objects.filter(administration=filled).exists()
    else:
        assert not Response.objects.filter(administration_id=filled.pk).exists()
