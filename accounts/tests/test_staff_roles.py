"""Test appointing and dismissing staff, with refusals and audit entries."""

from __future__ import annotations

from io import StringIO
from threading import Barrier, Thread

import pytest
from django.core import mail
from django.core.exceptions import PermissionDenied, ValidationError
from django.core.management import CommandError, call_command
from django.db import connection, connections

from accounts import email_outbox
from accounts.models import AuditEntry, Membership, QueuedEmail, User
from accounts.permissions import Capability, Permissions
from accounts.staff import appoint, dismiss
from accounts.tests.conftest import member

pytestmark = pytest.mark.django_db
Role = Membership.Role


def test_a_district_appoints_a_coordinator_who_then_sees_the_school(staff):
    new = User.objects.create_user("new@example.org")
    appoint(user=new, role=Role.COORDINATOR, school=staff.washington, by=staff.dana)
    seen = Permissions(new).schools(Capability.SEE_RATES)
    assert [*seen] == [staff.washington]
    [entry] = AuditEntry.objects.all()
    assert (entry.action, entry.by) == ("appoint coordinator", "dana@example.org")
    assert (entry.subject, entry.school_id) == ("new@example.org", staff.washington.pk)


def test_appointing_outside_ones_places_is_refused(staff):
    for by in (staff.dana, staff.chen, staff.analyst):
        with pytest.raises(PermissionDenied):
            appoint(
                user=staff.chen, role=Role.COORDINATOR, school=staff.roosevelt, by=by
            )
    assert staff.chen.memberships.count() == 1
    assert not AuditEntry.objects.exists()


def test_a_role_in_an_unsuitable_place_is_refused_with_a_message(staff):
    with pytest.raises(ValidationError):
        appoint(user=staff.chen, role=Role.STATE, school=staff.lincoln, by="shell")
    with pytest.raises(ValidationError, match="one_current_membership"):
        appoint(
            user=staff.chen, role=Role.COORDINATOR, school=staff.lincoln, by="shell"
        )


def test_dismissal_removes_access_and_keeps_the_record(staff):
    [membership] = staff.chen.memberships.all()
    for _ in range(2):
        dismiss(membership=membership, by=staff.dana)
    assert not Permissions(staff.chen).has(Capability.SEE_RATES)
    assert Membership.objects.get(pk=membership.pk).ended_at is not None
    assert AuditEntry.objects.filter(action="dismiss coordinator").count() == 1


def test_dismissed_people_are_told_by_email(staff, django_capture_on_commit_callbacks):
    second = appoint(
        user=staff.chen, role=Role.COORDINATOR, school=staff.washington, by=staff.dana
    )
    [first] = staff.chen.memberships.exclude(pk=second.pk)
    for membership in (second, first, first):
        with django_capture_on_commit_callbacks(execute=True):
            dismiss(membership=membership, by=staff.dana)
    ended, dismissed = mail.outbox
    assert ended.to == dismissed.to == ["chen@example.org"]
    assert ended.subject == "Your role in Groundswell has ended"
    assert "dana@example.org ended your role school coordinator, Wash" in ended.body
    assert "Your other roles stay as they are" in ended.body
    assert "Lincoln" in dismissed.body and "You have no other role" in dismissed.body


def test_people_who_never_accepted_an_invitation_are_not_told(staff):
    new = User.objects.create_user("new@example.org")
    membership = appoint(
        user=new, role=Role.COORDINATOR, school=staff.lincoln, by=staff.dana
    )
    dismiss(membership=membership, by=staff.dana)
    assert not QueuedEmail.objects.exists()


@pytest.mark.parametrize("name", ["state administrator", "engineer", "nobody else"])
def test_dismissal_logs_out_only_people_without_other_rights(staff, name):
    person = {
        "state administrator": staff.state,
        "engineer": User.objects.create_superuser("e@x.org", "a long password"),
        "nobody else": User.objects.create_user("n@x.org"),
    }[name]
    series = person.session_series
    membership = appoint(
        user=person, role=Role.COORDINATOR, school=staff.lincoln, by=staff.dana
    )
    dismiss(membership=membership, by=staff.dana)
    person.refresh_from_db()
    assert (person.session_series == series) is (name != "nobody else")


def test_staff_of_other_places_cannot_be_dismissed(staff):
    [membership] = staff.sam.memberships.all()
    with pytest.raises(PermissionDenied):
        dismiss(membership=membership, by=staff.dana)
    assert Permissions(staff.sam).has(Capability.SEE_RATES)


def test_the_last_state_administrator_cannot_be_dismissed(staff):
    [membership] = staff.state.memberships.all()
    with pytest.raises(ValidationError, match="Appoint another one first"):
        dismiss(membership=membership, by=staff.state)
    member("second@example.org", Role.STATE)
    dismiss(membership=membership, by=staff.state)
    assert Membership.objects.current().filter(role=Role.STATE).count() == 1


if connection.vendor == "postgresql":

    @pytest.mark.django_db(transaction=True)
    def test_two_administrators_who_dismiss_each_other_leave_one(staff):
        second = member("second@example.org", Role.STATE)
        pairs = [(staff.state, second), (second, staff.state)]
        start, failed = Barrier(2), []

        def act(by, administrator):
            start.wait()
            try:
                dismiss(membership=administrator.memberships.get(), by=by)
            except (ValidationError, PermissionDenied):
                failed.append(by)
            finally:
                connections.close_all()

        threads = [Thread(target=act, args=pair) for pair in pairs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(failed) == 1
        assert Membership.objects.current().filter(role=Role.STATE).count() == 1


# The command


def appointed(*words: str) -> str:
    out = StringIO()
    call_command("appoint", *words, stdout=out)
    return out.getvalue()


def test_the_first_administrator_comes_from_a_command():
    output = appointed("first@example.org", "--role=state")
    assert output == (
        "first@example.org: state administrator, the state."
        " They are told by mail with a link to choose a password.\n"
    )
    first = User.objects.get()
    assert not first.has_usable_password()
    assert Permissions(first).has(Capability.MANAGE_STAFF)
    [entry] = AuditEntry.objects.all()
    assert (entry.by, entry.action) == ("appoint", "appoint state")


def send_queued_emails() -> None:
    for email in QueuedEmail.objects.all():
        email_outbox.send(email.pk)


def test_users_appointed_by_command_get_a_link_by_email(client):
    appointed("first@example.org", "--role=state")
    send_queued_emails()
    [message] = mail.outbox
    assert message.to == ["first@example.org"]
    assert "An engineer of this installation invites you" in message.body

    link = next(line for line in message.body.splitlines() if "://" in line)
    address = link.partition("://")[2].partition("/")[2]
    page = client.get(f"/{address}", follow=True)
    assert "first@example.org" in page.content.decode()


def test_existing_users_are_told_of_a_role_given_by_command(staff):
    output = appointed("chen@example.org", "--role=analyst", "--district=lakeside")
    assert output.endswith("They are told by mail.\n")
    send_queued_emails()
    assert "gave you the role analyst, Lakeside" in mail.outbox[0].body


def test_the_command_finds_users_in_any_case(staff):
    appointed("CHEN@example.org", "--role=analyst", "--district=lakeside")
    assert staff.chen.memberships.count() == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["no address", "--role=state"], "valid email"),
        (["a@x.org", "--role=coordinator", "--school=lincoln"], "requires --district"),
        (["a@x.org", "--role=district", "--district=moon"], "no district moon"),
        (
            [
                "a@x.org",
                "--role=coordinator",
                "--district=lakeside",
                "--school=lincoln",
            ],
            "no school lincoln in Lakeside",
        ),
        (["a@x.org", "--role=district"], "a_role_has_the_place"),
    ],
)
def test_invalid_arguments_are_refused_with_the_reason(staff, words, message):
    before = User.objects.count()
    with pytest.raises(CommandError, match=message):
        appointed(*words)
    assert User.objects.count() == before
