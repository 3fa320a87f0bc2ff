"""An invitation's link logs a new user in, once and for seven days."""

from __future__ import annotations

import re
from datetime import timedelta
from io import StringIO
from urllib.parse import parse_qs, urlsplit

import pytest
from django.core import mail, signing
from django.core.exceptions import PermissionDenied, ValidationError
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from accounts import email_outbox, invitations
from accounts.models import AuditEntry, Invitation, Membership, QueuedEmail, User
from accounts.tests.logging_in import is_inside, log_in, type_password
from accounts.tests.test_second_factor import set_up

pytestmark = pytest.mark.django_db

INVITE = "/console/staff/invite/"
OPEN = "/console/invitation/"
NEW = {"password1": "long-quiet-river", "password2": "long-quiet-river"}
Role = Membership.Role


@pytest.fixture
def dana(staff, client) -> Client:
    return log_in(client, staff.dana)


def key_in(message) -> str:
    link = urlsplit(re.findall(r"https://\S+", message.body)[0])
    assert (link.netloc, link.path) == ("survey.example.org", OPEN)
    return link.query.removeprefix("key=").replace("%3A", ":")


def invited(staff, email: str = "new@example.org") -> Membership:
    return invitations.invite(
        email=email, role=Role.COORDINATOR, school=staff.lincoln, by=staff.dana
    )


def test_an_invited_user_sets_a_password_and_logs_in(
    staff, dana, django_capture_on_commit_callbacks
):
    form = {
        "email": "New@Example.org",
        "first_name": "Noor",
        "last_name": "Haddad",
        "role": "coordinator",
        "district": staff.riverside.pk,
        "school": staff.washington.pk,
    }
    with django_capture_on_commit_callbacks(execute=True):
        response = dana.post(INVITE, form, headers={"host": "localhost"})
    assert response["Location"] == "/console/staff/"
    [message] = mail.outbox
    assert message.to == ["new@example.org"]
    assert "dana@example.org invites you" in message.body
    assert "school coordinator, Washington" in message.body
    assert not QueuedEmail.objects.exists()

    browser, key = Client(), key_in(message)
    page = browser.get(OPEN, {"key": key}).content.decode()
    assert "school coordinator, Washington" in page
    assert browser.post(OPEN, {"key": key, **NEW})["Location"] == "/console/"
    assert browser.get("/console/")["Location"] == "/console/second-factor/set-up/"
    set_up(browser)
    assert browser.get("/console/").status_code == 200

    noor = User.objects.get(email="new@example.org")
    assert noor.get_full_name() == "Noor Haddad"
    assert noor.check_password("long-quiet-river")
    assert not Invitation.objects.exists()
    # Once.
    assert Client().get(OPEN, {"key": key}).status_code == 410
    assert Client().post(OPEN, {"key": key, **NEW}).status_code == 410
    actions = AuditEntry.objects.order_by("pk").values_list("action", flat=True)
    assert [*actions] == [
        "appoint coordinator",
        "accept invitation",
        "log in",
        "set up second factor",
    ]


def test_existing_users_get_the_role_and_an_email(
    staff, dana, django_capture_on_commit_callbacks
):
    with django_capture_on_commit_callbacks(execute=True):
        invitations.invite(
            email="CHEN@example.org",
            role=Role.COORDINATOR,
            school=staff.washington,
            by=staff.dana,
        )
    [message] = mail.outbox
    assert message.subject == "You have a new role in Groundswell"
    assert staff.chen.memberships.count() == 2
    assert User.objects.filter(email__iexact="chen@example.org").count() == 1
    assert not Invitation.objects.exists()


def test_a_duplicate_role_is_refused_with_a_message(staff, dana):
    form = {
        "email": "chen@example.org",
        "role": "coordinator",
        "district": staff.riverside.pk,
        "school": staff.lincoln.pk,
    }
    page = dana.post(INVITE, form).content.decode()
    assert "This person already has this role there." in page
    assert 'value="chen@example.org"' in page
    assert not QueuedEmail.objects.exists()


@pytest.mark.parametrize(
    ("role", "place", "error"),
    [
        ("coordinator", {}, "Choose a district, then the school"),
        ("coordinator", {"district": "riverside"}, "Choose the school."),
        ("district", {}, "Choose the district to administer"),
        ("coordinator", {"district": "lakeside"}, "Choose a district from the list"),
        ("coordinator", {"school": "roosevelt"}, "Choose a school of this district"),
        ("district", {"district": "riverside", "school": "lincoln"}, "Choose none"),
        ("analyst", {}, "Choose one of your districts"),
        ("state", {}, "Choose a role from the list"),
        ("director", {"district": "riverside"}, "Choose a role from the list"),
        ("", {"district": "riverside"}, "Choose a role."),
    ],
)
def test_invalid_roles_and_places_are_refused(staff, dana, role, place, error):
    form = {"email": "new@example.org", "role": role}
    form |= {name: getattr(staff, value).pk for name, value in place.items()}
    page = dana.post(INVITE, form).content.decode()
    assert error in page
    assert not User.objects.filter(email="new@example.org").exists()
    assert not QueuedEmail.objects.exists()


@pytest.mark.parametrize(
    "nonsense", ["", "x", "a@b", "a@b.c\nBcc: d@e.f", "\x00@x.org"]
)
def test_an_invalid_email_address_is_refused(staff, dana, nonsense):
    form = {"email": nonsense, "role": "district", "district": staff.riverside.pk}
    assert dana.post(INVITE, form).context["form"].errors["email"]


def test_all_that_is_wrong_is_said_at_once(dana):
    text = dana.post(INVITE, {"email": "name", "role": "coordinator"}).text
    assert "such as name@example.org" in text
    assert "Choose a district, then the school to coordinate." in text


def test_a_second_invitation_to_the_same_role_is_refused_at_the_address(staff, dana):
    form = {"email": staff.chen.email, "role": "coordinator"}
    form |= {"district": staff.riverside.pk, "school": staff.lincoln.pk}
    errors = dana.post(INVITE, form).context["form"].errors
    assert errors == {"email": ["This person already has this role there."]}


@pytest.mark.parametrize("district", ["", "x", "9" * 30, "-1", "٣"])
def test_choosing_a_district_offers_its_schools(staff, dana, district):
    part = {"headers": {"HX-Request": "true"}}
    shown = dana.get(INVITE, {"district": staff.riverside.pk}, **part).content.decode()
    assert "Lincoln" in shown
    assert "Washington" in shown
    assert "<html" not in shown
    page = dana.get(INVITE, {"district": staff.lakeside.pk}, **part).content.decode()
    assert "Roosevelt" not in page
    assert dana.get(INVITE, {"district": district}, **part).status_code == 200


def test_only_roles_that_may_have_one_are_offered_a_whole_district(staff, dana):
    part = {"headers": {"HX-Request": "true"}}
    chosen = {"district": staff.riverside.pk, "school": staff.lincoln.pk}
    analyst = dana.get(INVITE, {**chosen, "role": "analyst"}, **part).text
    assert "Whole district" in analyst
    coordinator = dana.get(INVITE, {**chosen, "role": "coordinator"}, **part).text
    assert "Whole district" not in coordinator
    assert "Choose a school" in coordinator
    # The school that was chosen stays so.
    assert f'value="{staff.lincoln.pk}" selected' in coordinator


def test_the_state_may_appoint_an_analyst_of_the_whole_state(staff, client):
    log_in(client, staff.state)
    client.post(INVITE, {"email": "new@example.org", "role": "analyst"})
    [membership] = Membership.objects.filter(user__email="new@example.org")
    assert membership.place == "the state"


def test_an_invitation_link_works_for_seven_days(staff, monkeypatch):
    invited(staff)
    key = invitations.key_of(Invitation.objects.get())
    now = signing.time.time()
    monkeypatch.setattr(signing.time, "time", lambda: now + 7 * 86400 - 60)
    assert invitations.invited_by_key(key)
    monkeypatch.setattr(signing.time, "time", lambda: now + 7 * 86400 + 60)
    assert invitations.invited_by_key(key) is None


@pytest.mark.parametrize("key", ["", "x", "a:b:c", "\x00"])
def test_a_forged_link_is_refused(staff, client, key):
    invited(staff)
    assert client.get(OPEN, {"key": key}).status_code == 410
    assert client.post(OPEN, {"key": key, **NEW}).status_code == 410
    assert not User.objects.get(email="new@example.org").has_usable_password()


def test_resending_replaces_the_link(staff, dana, django_capture_on_commit_callbacks):
    membership = invited(staff)
    old = invitations.key_of(Invitation.objects.get())
    Invitation.objects.update(sent_at=timezone.now() - timedelta(days=9))
    assert "run out" in dana.get(f"/console/staff/{membership.pk}/").content.decode()
    with django_capture_on_commit_callbacks(execute=True):
        dana.post(f"/console/staff/{membership.pk}/resend/")
    email_outbox.send_waiting()
    # The first e-mail was still waiting: it is not sent any more.
    [message] = mail.outbox
    assert Client().get(OPEN, {"key": old}).status_code == 410
    assert Client().get(OPEN, {"key": key_in(message)}).status_code == 200


def test_a_withdrawn_link_is_refused(staff, dana):
    membership = invited(staff)
    key = invitations.key_of(Invitation.objects.get())
    response = dana.post(f"/console/staff/{membership.pk}/withdraw/")
    assert response["Location"] == "/console/staff/"
    assert Client().get(OPEN, {"key": key}).status_code == 410
    membership.refresh_from_db()
    assert membership.ended_at is not None
    email_outbox.send_waiting()
    assert mail.outbox == []


def test_accepted_invitations_cannot_be_withdrawn(staff, dana):
    [membership] = staff.chen.memberships.all()
    dana.post(f"/console/staff/{membership.pk}/withdraw/")
    membership.refresh_from_db()
    assert membership.ended_at is None
    with pytest.raises(ValidationError, match="accepted"):
        invitations.resend(membership=membership, by=staff.dana)


def test_invitations_of_other_places_cannot_be_resent_or_withdrawn(staff, dana):
    membership = invitations.invite(
        email="new@example.org",
        role=Role.COORDINATOR,
        school=staff.roosevelt,
        by=staff.state,
    )
    for act in ("resend", "withdraw", "dismiss", "second-factor"):
        assert dana.post(f"/console/staff/{membership.pk}/{act}/").status_code == 404
    for act in (invitations.resend, invitations.withdraw):
        with pytest.raises(PermissionDenied):
            act(membership=membership, by=staff.dana)


def test_deactivated_users_cannot_be_invited(staff, dana):
    User.objects.filter(pk=staff.sam.pk).update(is_active=False)
    form = {"email": "sam@example.org", "role": "district"}
    page = dana.post(INVITE, {**form, "district": staff.riverside.pk})
    assert "is deactivated" in page.content.decode()


def test_accepting_ends_another_users_session_in_the_browser(staff, client):
    """The link is opened on a shared computer."""
    invited(staff)
    type_password(client, "analyst@example.org")
    key = invitations.key_of(Invitation.objects.get())
    client.post(OPEN, {"key": key, **NEW})
    assert is_inside(client)
    assert "new@example.org" in client.get("/console/me/").content.decode()


def test_a_rolled_back_invitation_sends_no_email(staff):
    from django.db import transaction

    with pytest.raises(ZeroDivisionError), transaction.atomic():
        invited(staff)
        raise ZeroDivisionError
    assert not User.objects.filter(email="new@example.org").exists()
    assert not QueuedEmail.objects.exists()


def test_the_form_says_which_roles_need_a_place(dana):
    page = dana.get("/console/staff/invite/").text
    assert "District administrator: everything, in one district" in page
    assert "School coordinators need one." in page
    # Only names are optional whatever the role.
    assert page.count("(optional)") == 2


def first_link(email: str = "it@example.org") -> str:
    printed = StringIO()
    call_command("appoint", email, role="state", first=True, stdout=printed)
    return printed.getvalue().strip()


def key_of_link(link: str) -> str:
    return parse_qs(urlsplit(link).query)["key"][0]


def test_the_first_administrator_gets_a_printed_link_for_a_day(db, monkeypatch):
    link = first_link()
    assert link.startswith("https://survey.example.org/console/invitation/?key=")
    # Nothing is sent: the mail server may not work yet.
    assert not QueuedEmail.objects.exists()
    key, now = key_of_link(link), timezone.now()
    for hours, works in ((23, True), (25, False)):
        later = now + timedelta(hours=hours)
        monkeypatch.setattr(invitations.timezone, "now", lambda later=later: later)
        assert (invitations.invited_by_key(key) is not None) == works
    monkeypatch.undo()
    browser = Client()
    assert browser.post(OPEN, {"key": key, **NEW})["Location"] == "/console/"
    [membership] = Membership.objects.current().filter(role=Role.STATE)
    assert membership.user.email == "it@example.org"


def test_a_new_first_link_ends_the_one_before(db):
    before = key_of_link(first_link())
    now = key_of_link(first_link())
    assert invitations.invited_by_key(before) is None
    assert invitations.invited_by_key(now) is not None
    assert Membership.objects.current().filter(role=Role.STATE).count() == 1


def test_no_first_link_once_a_state_administrator_has_a_password(staff):
    assert Membership.objects.current().filter(role=Role.STATE).exists()
    assert first_link() == ""
    assert not User.objects.filter(email="it@example.org").exists()


def test_a_first_link_is_for_the_state_only(db):
    with pytest.raises(CommandError):
        call_command("appoint", "it@example.org", role="district", first=True)
