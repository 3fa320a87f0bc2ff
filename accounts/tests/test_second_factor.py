"""Set up, use, replace and lose a second factor."""

from __future__ import annotations

import re

import pytest
from allauth.mfa.models import Authenticator
from django.core import mail
from django.core.exceptions import PermissionDenied, ValidationError
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client

from accounts import second_factor
from accounts.adapter import _cipher
from accounts.models import AuditEntry, FailedTries, Membership, QueuedEmail, User
from accounts.tests.conftest import member
from accounts.tests.logging_in import (
    PASSWORD,
    code_of,
    give_app,
    is_inside,
    log_in,
    type_code,
    type_password,
)

pytestmark = pytest.mark.django_db

SET_UP = "/console/second-factor/set-up/"
NEW_CODES = "/console/second-factor/recovery-codes/"
AGAIN = "/console/account/again/code/"


def shown_secret(page: str) -> str:
    [secret] = re.findall(r'<code class="key">([A-Z2-7 ]+)</code>', page)
    return secret.replace(" ", "")


def shown_codes(response) -> list[str]:
    page = response.content.decode()
    return re.findall(r"<li><code>(\d{4} \d{4})</code></li>", page)


def set_up(client: Client) -> tuple[str, list[str], str]:
    """Set it up; return the secret, the recovery codes and the code used for it."""
    page = client.get(SET_UP)
    key = page.context["form"].draft.key
    secret = shown_secret(page.content.decode())
    code = code_of(secret)
    done = client.post(SET_UP, {"key": key, "code": code})
    assert done.status_code == 200
    return secret, shown_codes(done), code


def test_setting_up_counts_for_this_session_and_the_next_login_asks(staff, client):
    type_password(client, "dana@example.org")
    assert client.get("/console/")["Location"] == SET_UP

    secret, codes, used = set_up(client)

    assert len(set(codes)) == 10
    assert client.get("/console/").status_code == 200
    assert AuditEntry.objects.filter(action="set up second factor").count() == 1
    assert QueuedEmail.objects.get().kind == "second factor changed"
    other_browser = Client()
    type_password(other_browser, "dana@example.org")
    assert not is_inside(other_browser)
    # Each code is good once: that of the setting up is used.
    assert type_code(other_browser, used).status_code == 200
    FailedTries.objects.all().delete()
    assert type_code(other_browser, code_of(secret, later=1)).status_code == 302
    assert other_browser.get("/console/").status_code == 200


def test_a_wrong_code_keeps_the_key_on_the_page(staff, client):
    type_password(client, "dana@example.org")
    first = client.get(SET_UP)
    key = first.context["form"].draft.key
    for nonsense in ("", "000000", "abc", "١٢٣٤٥٦", "x" * 40):
        repeated = client.post(SET_UP, {"key": key, "code": nonsense})
        assert repeated.context["form"].errors["code"]
        assert shown_secret(repeated.content.decode()) == shown_secret(
            first.content.decode()
        )
    assert not Authenticator.objects.exists()


@pytest.mark.parametrize("key", ["", "made:up:key", "\x00"])
def test_a_forged_key_is_replaced_by_a_new_one(staff, client, key):
    type_password(client, "dana@example.org")
    page = client.post(SET_UP, {"key": key, "code": "123456"})
    assert "open for too long" in page.content.decode()
    assert not Authenticator.objects.exists()


def test_another_users_key_is_refused(staff, client):
    type_password(client, "dana@example.org")
    theirs = second_factor.new_draft(staff.chen)
    page = client.post(SET_UP, {"key": theirs.key, "code": code_of(theirs.secret)})
    assert "open for too long" in page.content.decode()


def test_viewing_the_page_stores_nothing(staff, client, django_assert_num_queries):
    log_in(client, staff.dana, second_factor=False)
    before = dict(client.session)
    client.get(SET_UP)
    assert dict(client.session) == before
    assert not Authenticator.objects.exists()


def test_a_recovery_code_works_once(staff, client):
    type_password(client, "dana@example.org")
    _, codes, _ = set_up(client)
    for status in (302, 200):
        other_browser = Client()
        type_password(other_browser, "dana@example.org")
        assert type_code(other_browser, codes[3]).status_code == status
    assert "9 left" in client.get("/console/me/").content.decode()


def test_new_recovery_codes_replace_the_old_ones(staff, client):
    type_password(client, "dana@example.org")
    _, old, *_ = set_up(client)
    assert client.get(NEW_CODES).status_code == 200
    new = shown_codes(client.post(NEW_CODES))
    assert len(set(new) - set(old)) == 10
    type_password(other_browser := Client(), "dana@example.org")
    assert type_code(other_browser, old[0]).status_code == 200
    FailedTries.objects.all().delete()
    assert type_code(other_browser, new[0]).status_code == 302


def test_without_an_app_there_are_no_recovery_codes(staff, client):
    log_in(client, staff.dana)
    assert client.post(NEW_CODES).status_code == 404


# Another device


def test_another_device_replaces_the_first(staff, client):
    type_password(client, "dana@example.org")
    old, *_ = set_up(client)
    new, *_ = set_up(client)
    assert Authenticator.objects.filter(type="totp").count() == 1
    type_password(other_browser := Client(), "dana@example.org")
    assert type_code(other_browser, code_of(old, later=1)).status_code == 200
    FailedTries.objects.all().delete()
    assert type_code(other_browser, code_of(new, later=1)).status_code == 302


def test_a_stolen_session_and_password_cannot_replace_the_second_factor(staff, client):
    secret = give_app(staff.dana)
    log_in(client, staff.dana)
    session = client.session
    client.cookies["sessionid"] = client.cookies["staff_sessionid"].value
    session = client.session
    for record in session["account_authentication_methods"]:
        record["at"] -= 3600
    session.save()
    del client.cookies["sessionid"]

    asked = client.get(SET_UP)
    assert asked["Location"].startswith(AGAIN)
    by_password = client.get("/console/account/again/")
    assert by_password["Location"].startswith(AGAIN)
    assert client.post(NEW_CODES)["Location"].startswith(AGAIN)

    shown = client.post(asked["Location"], {"code": code_of(secret)})
    assert shown["Location"] == SET_UP
    assert client.get(SET_UP).status_code == 200


def test_a_session_without_second_factor_is_asked_for_a_code(staff, client):
    """The session began before the app was set up in another browser."""
    log_in(client, staff.dana, second_factor=False)
    secret = give_app(staff.dana)
    first = client.get("/console/", follow=True)
    assert first.redirect_chain[-1][0].startswith(AGAIN)
    client.post(first.redirect_chain[-1][0], {"code": code_of(secret)})
    assert client.get("/console/").status_code == 200


# Lost


def test_administrators_may_reset_the_second_factor(
    staff, client, django_capture_on_commit_callbacks
):
    secret = give_app(staff.chen)
    hers = log_in(Client(), staff.chen)
    log_in(client, staff.dana)
    [membership] = staff.chen.memberships.all()

    with django_capture_on_commit_callbacks(execute=True):
        client.post(f"/console/staff/{membership.pk}/second-factor/")

    assert not Authenticator.objects.exists()
    assert not is_inside(hers)
    entry = AuditEntry.objects.get(action="reset second factor")
    assert (entry.by, entry.subject) == ("dana@example.org", "chen@example.org")
    [message] = mail.outbox
    assert message.to == ["chen@example.org"]
    assert "dana@example.org" in message.body
    type_password(hers, "chen@example.org")
    assert type_code(hers, code_of(secret)).status_code == 302
    assert hers.get("/console/")["Location"] == SET_UP


def test_the_second_factor_cannot_be_reset_in_other_places(staff, client):
    give_app(staff.sam)
    [membership] = staff.sam.memberships.all()
    log_in(client, staff.dana)
    path = f"/console/staff/{membership.pk}/second-factor/"
    assert client.post(path).status_code == 404
    assert log_in(Client(), staff.chen).post(path).status_code == 404
    assert Authenticator.objects.exists()


def test_users_of_two_districts_are_reset_by_the_state(staff):
    give_app(staff.chen)
    role = Membership.Role.ANALYST
    Membership.objects.create(user=staff.chen, role=role, school=staff.roosevelt)
    with pytest.raises(PermissionDenied):
        second_factor.reset(user=staff.chen, by=staff.dana)
    second_factor.reset(user=staff.chen, by=staff.state)
    assert not Authenticator.objects.exists()


def test_engineers_are_reset_by_engineers_only(staff):
    engineer = User.objects.create_superuser("e@example.org", PASSWORD)
    give_app(engineer)
    with pytest.raises(ValidationError, match="another engineer"):
        second_factor.reset(user=engineer, by=staff.state)
    call_command("reset_second_factor", "E@example.org")
    assert not Authenticator.objects.exists()
    assert AuditEntry.objects.get().by == "reset_second_factor"


def test_the_command_names_an_unknown_user():
    with pytest.raises(CommandError, match="no user nobody@example.org"):
        call_command("reset_second_factor", "nobody@example.org")


# In the database


def raw() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT data FROM mfa_authenticator")
        return " ".join(str(row[0]) for row in cursor.fetchall())


def test_secrets_are_encrypted_in_the_database(staff, client):
    type_password(client, "dana@example.org")
    secret, *_ = set_up(client)
    assert secret not in raw()
    assert "gAAAA" in raw()


def test_without_encryption_secrets_would_be_readable(staff, client, monkeypatch):
    monkeypatch.setattr("accounts.adapter.SecondFactorAdapter.encrypt", lambda s, t: t)
    monkeypatch.setattr("accounts.adapter.SecondFactorAdapter.decrypt", lambda s, t: t)
    type_password(client, "dana@example.org")
    secret, *_ = set_up(client)
    assert secret in raw()


def test_a_new_key_encrypts_and_the_old_key_still_decrypts(staff, client, settings):
    settings.SECOND_FACTOR_KEYS = ["old"]
    secret = give_app(staff.dana)
    settings.SECOND_FACTOR_KEYS = ["new", "old"]
    assert second_factor.accepts(staff.dana, code_of(secret))
    give_app(staff.chen)
    settings.SECOND_FACTOR_KEYS = ["old"]
    with pytest.raises(Exception):  # noqa: B017, PT011
        newest = Authenticator.objects.get(user=staff.chen)
        _cipher(("old",)).decrypt(newest.data["secret"].encode())


def test_without_the_key_codes_are_refused_without_an_error(staff, client, settings):
    secret = give_app(staff.dana)
    settings.SECOND_FACTOR_KEYS = ["another"]
    type_password(client, "dana@example.org")
    response = type_code(client, code_of(secret))
    assert "wrong" in response.content.decode()
    assert log_in(Client(), staff.dana).get("/console/me/").status_code == 200


def test_every_role_and_engineers_need_the_second_factor(staff):
    for user in (
        staff.state,
        staff.dana,
        staff.chen,
        staff.analyst,
        member("two@example.org", "analyst"),
    ):
        inside = log_in(Client(), user, second_factor=False)
        assert inside.get("/console/")["Location"] == SET_UP
