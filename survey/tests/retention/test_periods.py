"""Periods of the state, districts and rounds; warnings, and what the task does when."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.core import mail
from django.core.exceptions import PermissionDenied, ValidationError
from django.utils import timezone

from accounts import email_outbox
from accounts.models import AuditEntry, Membership, PlaceSettings, QueuedEmail
from survey.fieldwork.administrations.changes import reopen_administration
from survey.models import Destruction, Retention
from survey.people.retention import orders
from survey.people.retention.orders import (
    DestructionRefused,
    apply_retention,
    order_destruction,
)
from survey.people.retention.periods import change_retention
from survey.people.retention.terms import terms_of
from survey.tests.erasing.test_erase import publish_round
from survey.tests.retention.conftest import ANSWERS, NAMES, close, keep_for

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite]
NOW = timezone.now


def settings_of(district=None, **values):
    return PlaceSettings.objects.create(district=district, **values)


def days_of(administration):
    administration = type(administration).objects.get(pk=administration.pk)
    return [(term.days, term.source) for term in terms_of(administration)]


def test_nothing_ends_unless_a_period_was_set(administration, staff):
    close(administration, days=5000)
    assert days_of(administration) == [(None, "default")] * 2
    apply_retention()
    assert not Destruction.objects.exists() and not QueuedEmail.objects.exists()


def test_a_round_has_its_own_period_else_its_owners(administration, staff):
    settings_of(identities_days=100, answers_days=400)
    assert days_of(administration) == [(100, "state"), (400, "state")]
    administration.district = staff.riverside
    administration.save(update_fields=["district"])
    settings_of(staff.riverside, identities_days=50)
    assert days_of(administration) == [(50, "district"), (400, "state")]
    keep_for(administration, answers_days=10)
    assert days_of(administration) == [(50, "district"), (10, "own")]


def test_the_state_limits_periods(administration, staff):
    settings_of(answers_least_days=365, identities_most_days=90)
    settings_of(staff.riverside, answers_days=30, identities_days=500)
    administration.district = staff.riverside
    administration.save(update_fields=["district"])
    assert days_of(administration) == [(90, "district"), (365, "district")]
    with pytest.raises(ValidationError) as refused:
        change_retention(administration, {NAMES: 91, ANSWERS: 364}, by=staff.dana)
    assert refused.value.message_dict == {
        "identities_days": ["The state allows at most 90 days."],
        "answers_days": ["The state requires at least 365 days."],
    }
    assert change_retention(administration, {NAMES: 90, ANSWERS: None}, by=staff.dana)
    assert days_of(administration)[0] == (90, "own")
    assert AuditEntry.objects.filter(action="change retention").count() == 1


@pytest.mark.parametrize("name", ["dana", "chen", "analyst", "sam"])
def test_only_the_owner_changes_the_period_of_a_round(administration, staff, name):
    with pytest.raises(PermissionDenied):
        change_retention(
            administration, {NAMES: 90, ANSWERS: None}, by=getattr(staff, name)
        )


def test_the_owners_administrators_are_warned_once_a_month_before(
    administration, staff
):
    administration.district = staff.riverside
    administration.save(update_fields=["district"])
    close(administration, days=60)
    keep_for(administration, identities_days=100)
    apply_retention()
    assert not QueuedEmail.objects.exists()
    keep_for(administration, identities_days=80)
    apply_retention()
    apply_retention()
    [email] = QueuedEmail.objects.all()
    assert (email.to, email.kind) == ("dana@example.org", "retention warning")
    # The period would end in 20 days, and nothing is destroyed before a month.
    day = (timezone.localtime() + timedelta(days=30)).date()
    assert email.facts["day"] == day.isoformat()
    email_outbox.send(email.pk)
    [sent] = mail.outbox
    assert "names and access codes" in sent.body.lower()
    assert f"/console/administrations/{administration.pk}/retention/" in sent.body
    assert not Destruction.objects.exists()


def test_the_state_is_warned_of_its_own_rounds_and_where_a_district_has_nobody(
    administration, staff
):
    close(administration, days=60)
    keep_for(administration, identities_days=70)
    apply_retention()
    assert QueuedEmail.objects.get().to == "state@example.org"
    Membership.objects.filter(user=staff.dana).update(ended_at=NOW())
    administration.district = staff.riverside
    administration.save(update_fields=["district"])
    keep_for(administration, identities_days=70)
    apply_retention()
    assert QueuedEmail.objects.filter(to="state@example.org").count() == 2


def test_without_anybody_to_warn_nothing_is_destroyed(administration):
    close(administration, days=600)
    keep_for(administration, identities_days=70)
    apply_retention()
    assert Retention.objects.get().identities_warned_at is None
    apply_retention(NOW() + timedelta(days=100))
    assert not Destruction.objects.exists()


def test_what_is_due_is_destroyed_a_month_after_the_warning(administration, staff):
    close(administration, days=600)
    keep_for(administration, identities_days=70)
    apply_retention()
    apply_retention(NOW() + timedelta(days=29))
    assert not Destruction.objects.exists()
    Retention.objects.update(identities_warned_at=NOW() - timedelta(days=30))
    apply_retention()
    destruction = Destruction.objects.get()
    assert (destruction.kind, destruction.by) == (NAMES, None)


def test_a_shorter_period_moves_the_date_to_a_month_after_the_warning(
    administration, staff
):
    close(administration, days=60)
    row = keep_for(administration, identities_days=80)
    apply_retention()
    warned_at = Retention.objects.get().identities_warned_at
    change_retention(administration, {NAMES: 1, ANSWERS: None}, by=staff.state)
    apply_retention()
    row.refresh_from_db()
    assert row.identities_warned_at == warned_at
    administration.refresh_from_db()
    [term, _answers] = terms_of(administration)
    assert term.due_at(NOW()) == warned_at + timedelta(days=30)
    with pytest.raises(DestructionRefused, match="Nothing is destroyed before"):
        order_destruction(administration, NAMES, by=staff.state)


def test_without_the_wait_it_would_be_destroyed_at_once(
    administration, staff, monkeypatch
):
    """The twin: a period that is over, and a warning that nobody has read."""
    from survey.people.retention import terms

    monkeypatch.setattr(orders, "WARNING", timedelta())
    monkeypatch.setattr(terms, "WARNING", timedelta())
    close(administration, days=60)
    keep_for(administration, identities_days=20)
    apply_retention()
    apply_retention()
    assert Destruction.objects.exists()


@pytest.mark.parametrize("days", [200, None])
def test_a_longer_period_or_none_takes_the_warning_back(administration, staff, days):
    close(administration, days=60)
    warned_at = NOW() - timedelta(days=20)
    keep_for(administration, warned_at, identities_days=days)
    apply_retention()
    assert Retention.objects.get().identities_warned_at is None
    assert not QueuedEmail.objects.exists()


def test_one_round_that_fails_keeps_no_other_from_its_end(
    administration, staff, monkeypatch, publish
):
    fall = publish_round(administration, "fall")
    for each in (administration, fall):
        close(each, days=600)
        keep_for(each, NOW() - timedelta(days=31), identities_days=7)
    order = orders.order_destruction

    def fails_once(each, kind):
        if each.pk == administration.pk:
            raise ValueError("broken")
        return order(each, kind)

    monkeypatch.setattr(orders, "order_destruction", fails_once)
    apply_retention()
    assert Destruction.objects.get().administration == fall


def reopened_and_closed(administration, staff) -> None:
    """Open it again for a day, which is 45 days ago now."""
    later = NOW() + timedelta(days=1)
    reopen_administration(
        administration=administration, closes_at=later, seen=None, by=staff.state
    )
    administration.refresh_from_db()
    close(administration, days=45)


def test_a_warning_from_before_a_reopening_counts_for_nothing(administration, staff):
    close(administration, days=60)
    keep_for(administration, NOW() - timedelta(days=50), identities_days=7)
    reopened_and_closed(administration, staff)
    assert Retention.objects.get().identities_warned_at is None
    apply_retention()
    assert not Destruction.objects.exists()
    assert NOW() - Retention.objects.get().identities_warned_at < timedelta(minutes=1)
    with pytest.raises(DestructionRefused, match="Nothing is destroyed before"):
        order_destruction(administration, NAMES, by=staff.state)


def test_nor_where_only_the_dates_say_so(administration, staff):
    """As of a round that was opened again before warnings were forgotten."""
    close(administration, days=45)
    keep_for(administration, NOW() - timedelta(days=50), identities_days=7)
    with pytest.raises(DestructionRefused, match="have not been warned yet"):
        order_destruction(administration, NAMES, by=staff.state)
    apply_retention()
    assert not Destruction.objects.exists()
    assert QueuedEmail.objects.count() == 1
    assert NOW() - Retention.objects.get().identities_warned_at < timedelta(minutes=1)


def test_after_the_closing_the_same_warning_counts(administration, staff):
    """The twin: 50 days ago it had closed."""
    close(administration, days=60)
    keep_for(administration, NOW() - timedelta(days=50), identities_days=7)
    apply_retention()
    assert Destruction.objects.get().kind == NAMES


def test_a_later_end_forgets_warnings_also_of_modules(administration, staff):
    close(administration, days=60)
    module = publish_round(administration, "module")
    module.module_of, module.district = administration, staff.riverside
    module.save(update_fields=["module_of", "district"])
    for each in (administration, module):
        keep_for(each, NOW() - timedelta(days=50), answers_days=7)
    later = NOW() + timedelta(days=1)
    reopen_administration(
        administration=administration, closes_at=later, seen=None, by=staff.state
    )
    module.refresh_from_db()
    assert module.closes_at == later
    assert set(Retention.objects.values_list("answers_warned_at", flat=True)) == {None}


def stale_term(administration, days):
    """Return the term that a running task has read, and change the period."""
    close(administration, days=600)
    keep_for(administration, NOW() - timedelta(days=31), identities_days=7)
    [(stale, term)] = [pair for pair in orders._unended(NOW()) if pair[1].kind == NAMES]
    keep_for(administration, NOW() - timedelta(days=31), identities_days=days)
    return stale, term


@pytest.mark.parametrize(
    "days, reason", [(700, "The period ends on"), (None, "no period was set")]
)
def test_a_period_that_changes_while_the_task_runs_is_read_again(
    administration, staff, days, reason
):
    stale, term = stale_term(administration, days)
    assert term.is_due(NOW())
    with pytest.raises(DestructionRefused, match=reason):
        orders._apply(stale, term, NOW())
    with pytest.raises(DestructionRefused, match=reason):
        order_destruction(administration, NAMES, by=staff.state)
    assert not Destruction.objects.exists()


def test_without_reading_it_again_data_would_be_destroyed(
    administration, staff, monkeypatch
):
    monkeypatch.setattr(orders, "reason_not_due", lambda *_: "")
    stale, term = stale_term(administration, None)
    orders._apply(stale, term, NOW())
    assert Destruction.objects.exists()


def test_nobody_is_warned_of_a_round_that_was_opened_meanwhile(administration, staff):
    close(administration, days=60)
    keep_for(administration, identities_days=7)
    [(stale, term), _answers] = orders._unended(NOW())
    reopen_administration(
        administration=administration,
        closes_at=NOW() + timedelta(days=1),
        seen=None,
        by=staff.state,
    )
    orders._apply(stale, term, NOW())
    assert Retention.objects.get().identities_warned_at is None
    assert not QueuedEmail.objects.exists()
