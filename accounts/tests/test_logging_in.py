"""Log in by password and second factor, and throttle guesses."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from threading import Barrier, Thread
from types import SimpleNamespace
from urllib.parse import urlsplit

import pytest
from django.contrib.auth import hashers
from django.core import mail
from django.core.management import call_command
from django.db import connection, connections
from django.db.models import DateTimeField, Value
from django.test import Client
from django.utils import timezone

from accounts import adapter, login_throttle, passwords
from accounts.login_throttle import Purpose
from accounts.models import AuditEntry, FailedTries, QueuedEmail, User
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

RESET = "/console/account/password/reset/"
CHOOSE = "/console/account/password/reset/new/"
NOBODY = "nobody@example.org"


def words(response) -> str:
    """Return the page's error message."""
    errors = re.findall(r'<p class="error"[^>]*>(.*?)</p>', response.content.decode())
    return " ".join(errors)


def later(seconds: float) -> None:
    """Move the stored times back, as if this much time had passed."""
    for row in FailedTries.objects.all():
        row.last_at -= timedelta(seconds=seconds)
        row.save()


def actions() -> list[str]:
    return [*AuditEntry.objects.order_by("pk").values_list("action", flat=True)]


def test_staff_log_in_with_password_and_code(staff, client):
    secret = give_app(staff.dana)

    first = type_password(client, "Dana@Example.ORG", next="/console/me/")
    assert first["Location"] == "/console/account/login/code/"
    assert not is_inside(client)
    assert client.get(first["Location"]).status_code == 200

    second = type_code(client, code_of(secret))

    assert second["Location"] == "/console/me/"
    assert client.get("/console/").status_code == 200
    assert actions() == ["log in"]
    [entry] = AuditEntry.objects.all()
    assert (entry.by, entry.district_id) == ("dana@example.org", staff.riverside.pk)


def test_staff_without_an_app_set_one_up_first(staff, client):
    assert type_password(client, "dana@example.org")["Location"] == "/console/"
    assert client.get("/console/")["Location"] == "/console/second-factor/set-up/"


def test_there_is_no_sign_up(client):
    for path in ("account/signup/", "account/email/", "second-factor/"):
        assert client.get(f"/console/{path}").status_code == 404, path


def test_users_without_a_role_see_an_explanation(client):
    User.objects.create_user("new@example.org", PASSWORD)
    response = type_password(client, "new@example.org")
    assert response["Location"] == "/console/me/"
    assert "no role at the moment" in client.get("/console/me/").content.decode()


def test_login_does_not_redirect_to_other_sites(staff, client):
    response = type_password(client, "chen@example.org", next="https://evil.example/")
    assert response["Location"] == "/console/"


def test_logout_ends_the_session(staff, client):
    type_password(client, "chen@example.org")
    assert is_inside(client)
    client.get("/console/account/logout/")
    assert is_inside(client)
    assert client.post("/console/account/logout/")["Location"] == (
        "/console/account/login/"
    )
    assert not is_inside(client)


# The same answer in the same time


@pytest.mark.parametrize("email", ["dana@example.org", NOBODY, "invited@x.org"])
def test_unknown_addresses_get_the_same_answer(
    staff, client, monkeypatch, email, django_assert_num_queries
):
    User.objects.create_user("invited@x.org")
    hashed = []
    encode = hashers.MD5PasswordHasher.encode
    monkeypatch.setattr(
        hashers.MD5PasswordHasher,
        "encode",
        lambda *given: hashed.append(1) or encode(*given),
    )
    # A SAVEPOINT and its release; four for the delay; one user and allauth's
    # table of further addresses.
    with django_assert_num_queries(8):
        response = type_password(client, email, "wrong")

    assert response.status_code == 200
    assert words(response) == (
        "The e-mail address or password is wrong. Wait 1 second, then try again."
    )
    assert len(hashed) == 1


def test_deactivated_users_get_the_same_answer(staff, client):
    User.objects.filter(pk=staff.dana.pk).update(is_active=False)
    assert "is wrong" in words(type_password(client, "dana@example.org"))


@pytest.mark.parametrize("email", ["dana@example.org", NOBODY])
def test_a_reset_request_does_not_reveal_accounts(
    staff, client, email, django_assert_num_queries
):
    """The request writes one row for any address; the worker looks the user up."""
    with django_assert_num_queries(6):
        response = client.post(RESET, {"email": email})
    assert response["Location"] == RESET + "done/"
    [queued] = QueuedEmail.objects.all()
    assert (queued.kind, queued.to) == ("password reset", email)
    repeated = client.post(RESET, {"email": email})
    assert "already requested" in words(repeated)
    assert QueuedEmail.objects.count() == 1


# The delay


@pytest.mark.parametrize("email", ["dana@example.org", NOBODY])
def test_each_failure_doubles_the_delay(staff, client, email):
    for wait in ("1 second", "2 seconds", "4 seconds", "8 seconds"):
        assert f"Wait {wait}, then" in words(type_password(client, email, "wrong"))
        assert f"Wait {wait}, then try" in words(type_password(client, email))
        later(1000)
    FailedTries.objects.update(failures=40)
    assert "Wait 15 minutes, then" in words(type_password(client, email, "wrong"))
    assert not is_inside(client)


def test_the_correct_password_is_not_checked_during_a_delay(staff, client):
    type_password(client, "dana@example.org", "wrong")
    refused = type_password(client, "dana@example.org")
    assert "was not checked" in words(refused)
    assert not is_inside(client)

    later(1)
    assert type_password(client, "dana@example.org").status_code == 302
    assert not FailedTries.objects.exists()


def test_without_throttling_guesses_are_unlimited(staff, client, monkeypatch):
    monkeypatch.setattr(login_throttle, "wait_after", lambda failures: timedelta(0))
    for guess in ("wrong", "wronger", "wrongest"):
        assert "is wrong" in words(type_password(client, "dana@example.org", guess))
    assert type_password(client, "dana@example.org").status_code == 302


def test_users_behind_one_address_do_not_delay_each_other(staff, client):
    for _ in range(3):
        type_password(client, "dana@example.org", "wrong")
    assert type_password(client, "chen@example.org").status_code == 302


@pytest.mark.parametrize("is_known", [True, False])
def test_guesses_from_elsewhere_do_not_keep_a_known_device_out(staff, client, is_known):
    type_password(client, "dana@example.org")
    client.post("/console/account/logout/")
    if not is_known:
        del client.cookies["staff_device"]
    for _ in range(5):
        type_password(Client(), "dana@example.org", "guess")
        later(3600)
    type_password(Client(), "dana@example.org", "guess")
    status = type_password(client, "dana@example.org").status_code
    assert status == (302 if is_known else 200)


def test_guesses_on_a_known_device_are_throttled_too(staff, client):
    type_password(client, "dana@example.org")
    client.post("/console/account/logout/")
    type_password(client, "dana@example.org", "guess")
    assert "was not checked" in words(type_password(client, "dana@example.org"))


def test_a_device_is_known_only_for_its_own_user(staff, client):
    type_password(client, "dana@example.org")
    client.post("/console/account/logout/")
    type_password(Client(), "chen@example.org", "guess")
    assert "was not checked" in words(type_password(client, "chen@example.org"))
    client.cookies["staff_device"] = client.cookies["staff_device"].value[:-1]
    type_password(Client(), "dana@example.org", "guess")
    assert "was not checked" in words(type_password(client, "dana@example.org"))


def test_an_attempt_survives_a_success_between_its_statements(monkeypatch):
    create = FailedTries.objects.bulk_create
    deleted = []

    def create_and_lose_once(rows, **options):
        create(rows, **options)
        if not deleted:
            deleted.append(FailedTries.objects.all().delete())

    monkeypatch.setattr(FailedTries.objects, "bulk_create", create_and_lose_once)
    attempt = login_throttle.start_attempt(Purpose.PASSWORD, NOBODY)
    assert (attempt.failures, len(deleted)) == (1, 1)


def test_a_day_without_attempts_clears_the_delay(staff, client):
    FailedTries.objects.all()
    type_password(client, "dana@example.org", "wrong")
    FailedTries.objects.update(failures=12)
    later(25 * 3600)
    assert "Wait 1 second" in words(type_password(client, "dana@example.org", "wrong"))
    later(25 * 3600)
    login_throttle.forget_old()
    assert not FailedTries.objects.exists()


@contextmanager
def shifted_clock(monkeypatch, hours: int) -> Iterator[None]:
    """Shift the clock of this web host by some hours."""
    real = timezone.now
    with monkeypatch.context() as patched:
        patched.setattr(timezone, "now", lambda: real() + timedelta(hours=hours))
        yield


@pytest.mark.parametrize("hours", [1, -1])
def test_a_host_with_a_wrong_clock_changes_no_delay(staff, client, monkeypatch, hours):
    with shifted_clock(monkeypatch, hours):
        type_password(client, "dana@example.org", "wrong")
    page = words(type_password(client, "dana@example.org"))
    assert "was not checked. Wait 1 second" in page
    with shifted_clock(monkeypatch, hours):
        page = words(type_password(client, "dana@example.org"))
    assert "was not checked. Wait 1 second" in page


def test_the_clock_of_a_host_would_keep_an_owner_out(staff, client, monkeypatch):
    """The twin: with its own clock, as before."""
    monkeypatch.setattr(
        login_throttle, "Now", lambda: Value(timezone.now(), DateTimeField())
    )
    with shifted_clock(monkeypatch, 1):
        type_password(client, "dana@example.org", "wrong")
    page = words(type_password(client, "dana@example.org"))
    assert re.search("was not checked. Wait 6[01] minutes", page)


def test_stored_attempts_are_limited_in_number(monkeypatch):
    monkeypatch.setattr(login_throttle, "MOST_KEPT", 2)
    now = timezone.now()
    for number in range(5):
        FailedTries.objects.create(
            key=str(number),
            last_at=now - timedelta(minutes=number),
            failures=9 if number == 4 else 1,
        )
    login_throttle.forget_old()
    assert {failed_try.key for failed_try in FailedTries.objects.all()} == {"0", "4"}


def test_typed_addresses_are_stored_as_hashes(client):
    type_password(client, NOBODY, "wrong")
    [row] = FailedTries.objects.all()
    assert "nobody" not in row.key
    assert len(row.key) == 64


def test_wrong_codes_are_throttled_independently_of_the_password(staff, client):
    secret = give_app(staff.dana)
    for wait in ("1 second", "2 seconds"):
        type_password(client, "dana@example.org")
        assert f"Wait {wait}," in words(type_code(client, "000000"))
        later(1 if wait == "1 second" else 0)
    assert "was not checked" in words(type_code(client, code_of(secret)))
    assert not is_inside(client)
    later(2)
    assert type_code(client, code_of(secret)).status_code == 302
    assert is_inside(client)


def test_consecutive_failures_are_recorded(staff, client):
    for email in ("dana@example.org", NOBODY):
        for _ in range(3):
            type_password(client, email, "wrong")
            later(1000)
    [entry] = AuditEntry.objects.all()
    assert (entry.action, entry.by) == ("refuse password", "nobody")
    assert (entry.subject, entry.after) == ("dana@example.org", {"in a row": 3})
    assert entry.district_id == staff.riverside.pk


if connection.vendor == "postgresql":

    @pytest.mark.django_db(transaction=True)
    def test_only_one_of_many_simultaneous_guesses_is_checked():
        start, made = Barrier(8), []

        def guess():
            start.wait()
            try:
                is_checked = not login_throttle.start_attempt(
                    Purpose.PASSWORD, NOBODY
                ).wait
                made.append(is_checked)
                if is_checked:
                    login_throttle.failed(Purpose.PASSWORD, NOBODY)
            finally:
                connections.close_all()

        threads = [Thread(target=guess) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sum(made) == 1

    def log_in_together(monkeypatch, passwords: list[str], **cookies) -> list[bool]:
        """Type these passwords for Dana at the same moment, each in a browser."""
        check, start = adapter.authenticate, Barrier(len(passwords))

        def check_slowly(*args, **credentials):
            # As long as a real hash takes.
            time.sleep(0.2)
            return check(*args, **credentials)

        def log_in_once(password: str) -> bool:
            browser = Client()
            browser.cookies.update(cookies)
            start.wait()
            try:
                reply = type_password(browser, "dana@example.org", password)
                return reply.status_code == 302 and is_inside(browser)
            finally:
                connections.close_all()

        monkeypatch.setattr(adapter, "authenticate", check_slowly)
        with ThreadPoolExecutor(len(passwords)) as threads:
            return list(threads.map(log_in_once, passwords))

    @pytest.mark.django_db(transaction=True)
    @pytest.mark.parametrize("is_one_browser", [False, True])
    def test_simultaneous_logins_of_one_user_all_succeed(
        staff, client, monkeypatch, is_one_browser
    ):
        client.get("/console/account/login/")
        cookies = client.cookies if is_one_browser else {}
        assert log_in_together(monkeypatch, [PASSWORD] * 4, **cookies) == [True] * 4
        assert not FailedTries.objects.exists()

    @pytest.mark.django_db(transaction=True)
    def test_without_waiting_simultaneous_logins_are_refused(staff, monkeypatch):
        monkeypatch.setattr(login_throttle, "LONGEST_CHECK", timedelta(0))
        assert log_in_together(monkeypatch, [PASSWORD] * 4).count(True) == 1

    @pytest.mark.django_db(transaction=True)
    def test_simultaneous_wrong_passwords_are_checked_once(staff, monkeypatch):
        assert not any(log_in_together(monkeypatch, ["wrong"] * 4))
        [row] = FailedTries.objects.all()
        assert (row.failures, row.in_progress) == (1, False)


def test_an_attempt_whose_host_died_is_waited_for_five_seconds(monkeypatch):
    pauses = []
    # Not in the module `time` itself, where threads of other tests sleep as well.
    clock = SimpleNamespace(sleep=pauses.append, monotonic=time.monotonic)
    monkeypatch.setattr(login_throttle, "time", clock)
    login_throttle.start_attempt(Purpose.PASSWORD, NOBODY)
    FailedTries.objects.update(failures=9)
    later(5)
    assert login_throttle.start_attempt(Purpose.PASSWORD, NOBODY).wait
    assert not pauses


@pytest.mark.parametrize(
    ("failures", "seconds"), [(0, 0), (1, 1), (5, 16), (10, 512), (11, 900), (99, 900)]
)
def test_delays_double_up_to_15_minutes(failures, seconds):
    assert login_throttle.wait_after(failures).total_seconds() == seconds


@pytest.mark.parametrize(
    ("seconds", "delay"),
    [(0.2, "1 second"), (1.1, "2 seconds"), (90, "90 seconds"), (91, "2 minutes")],
)
def test_delays_are_formatted_for_people(seconds, delay):
    assert login_throttle.in_words(timedelta(seconds=seconds)) == delay


# A forgotten password


def link_in(message) -> str:
    [address] = re.findall(r"https?://\S+", message.body.split("Open this link")[1])
    return address


def test_a_reset_link_sets_a_password_and_logs_in(
    staff, client, django_capture_on_commit_callbacks
):
    """The Host header is forged, and must not change the link."""
    elsewhere = log_in(Client(), staff.dana)
    for _ in range(5):
        type_password(client, "dana@example.org", "wrong")
        later(100)
    type_password(client, "dana@example.org", "wrong")

    with django_capture_on_commit_callbacks(execute=True):
        client.post(
            RESET,
            {"email": "Dana@example.org"},
            headers={"host": "testserver", "x-forwarded-host": "evil.example"},
        )
    [message] = mail.outbox
    assert message.to == ["dana@example.org"]
    assert not QueuedEmail.objects.exists()
    link = urlsplit(link_in(message))
    assert link[:3] == ("https", "survey.example.org", CHOOSE)
    asked = f"{CHOOSE}?{link.query}"
    assert client.get(asked).status_code == 200

    new = {"password1": "long-quiet-river", "password2": "long-quiet-river"}
    response = client.post(CHOOSE, {"key": link.query.removeprefix("key="), **new})

    assert response["Location"] == "/console/"
    assert is_inside(client)
    assert not is_inside(elsewhere)
    assert actions()[-2:] == ["reset password", "log in"]
    # It was good once.
    assert client.get(asked).status_code == 410
    client.logout()
    assert type_password(client, "dana@example.org", "long-quiet-river")["Location"]


@pytest.mark.parametrize("host", ["evil.example", "evil.example:443"])
def test_a_forged_host_header_is_refused(staff, client, host):
    response = client.post(RESET, {"email": "dana@example.org"}, headers={"host": host})
    assert response.status_code == 400
    assert not QueuedEmail.objects.exists()


def test_links_ignore_the_host_header(
    staff, client, settings, django_capture_on_commit_callbacks
):
    settings.ALLOWED_HOSTS = ["*"]
    with django_capture_on_commit_callbacks(execute=True):
        client.post(
            RESET, {"email": "dana@example.org"}, headers={"host": "evil.example"}
        )
    [message] = mail.outbox
    assert "evil" not in message.body
    assert link_in(message).startswith("https://survey.example.org/console/")


def test_no_email_is_sent_to_unknown_addresses(
    staff, client, django_capture_on_commit_callbacks
):
    User.objects.filter(pk=staff.sam.pk).update(is_active=False)
    with django_capture_on_commit_callbacks(execute=True):
        client.post(RESET, {"email": NOBODY})
        client.post(RESET, {"email": "sam@example.org"})
    assert mail.outbox == []
    assert not QueuedEmail.objects.exists()


def test_a_second_factor_is_asked_for_after_a_reset_too(staff, client):
    give_app(staff.dana)
    key = passwords.reset_key(staff.dana)
    new = {"password1": "long-quiet-river", "password2": "long-quiet-river"}
    response = client.post(CHOOSE, {"key": key, **new})
    assert response["Location"] == "/console/account/login/code/"
    assert not is_inside(client)


@pytest.mark.parametrize(
    "key", ["", "1", "1-", "x-y", "99999999999999999999-a", "1-\x00", "٣-abc"]
)
def test_a_forged_link_is_refused(staff, client, key):
    assert client.get(CHOOSE, {"key": key}).status_code == 410
    new = {"password1": "long-quiet-river", "password2": "long-quiet-river"}
    assert client.post(CHOOSE, {"key": key, **new}).status_code == 410


@pytest.mark.parametrize(
    ("first", "second", "error"),
    [
        ("short", "short", "too short"),
        ("password123", "password123", "too common"),
        ("dana@example.org", "dana@example.org", "too similar"),
        ("long-quiet-river", "long-quiet-rider", "two passwords differ"),
    ],
)
def test_a_weak_password_is_refused_with_a_reason(staff, client, first, second, error):
    key = passwords.reset_key(staff.dana)
    response = client.post(
        CHOOSE, {"key": key, "password1": first, "password2": second}
    )
    assert error in words(response)
    staff.dana.refresh_from_db()
    assert staff.dana.check_password(PASSWORD)


# Changing it


def test_a_new_password_needs_the_old_one_and_ends_other_sessions(staff, client):
    other_browser = log_in(Client(), staff.dana)
    log_in(client, staff.dana)
    new = {"password1": "long-quiet-river", "password2": "long-quiet-river"}
    path = "/console/account/password/change/"

    wrong = client.post(path, {"oldpassword": "guess", **new})
    assert "This is not your current password" in words(wrong)
    waits = client.post(path, {"oldpassword": PASSWORD, **new})
    assert "was not checked" in words(waits)
    later(1)
    right = client.post(path, {"oldpassword": PASSWORD, **new})

    assert right["Location"] == "/console/me/"
    assert is_inside(client)
    assert not is_inside(other_browser)
    assert actions() == ["change password"]
    [queued] = QueuedEmail.objects.all()
    assert (queued.kind, queued.to) == ("password changed", "dana@example.org")


# Engineers


@pytest.mark.parametrize("page", ["login", "password_change"])
def test_the_admins_password_forms_redirect_to_the_console(staff, client, page):
    engineer = User.objects.create_superuser("e@example.org", PASSWORD)
    typed = {"username": "dana@example.org", "password": PASSWORD}
    outside = client.post(f"/engineers/{page}/", typed)
    assert outside["Location"].startswith("/console/account/login/")
    assert not is_inside(client)
    inside = log_in(Client(), engineer)
    away = {"login": "/engineers/", "password_change": "/console/account/password/"}
    assert inside.post(f"/engineers/{page}/", typed)["Location"].startswith(away[page])
    assert str(engineer) in inside.get("/console/me/").content.decode()
    password_page = f"/engineers/accounts/user/{staff.dana.pk}/password/"
    assert log_in(Client(), engineer).get(password_page).status_code in (302, 404)
    staff.dana.refresh_from_db()
    assert staff.dana.check_password(PASSWORD)


def test_a_superuser_from_the_command_logs_in(client, monkeypatch):
    monkeypatch.setenv("DJANGO_SUPERUSER_PASSWORD", PASSWORD)
    call_command("createsuperuser", "--noinput", "--email=Eng@Example.org")
    engineer = User.objects.get(email="eng@example.org")
    secret = give_app(engineer)
    type_password(client, "Eng@Example.org", next="/engineers/")
    assert type_code(client, code_of(secret))["Location"] == "/engineers/"
    assert client.get("/engineers/").status_code == 200


def test_user_changes_by_engineers_are_recorded(staff, client):
    log_in(client, User.objects.create_superuser("e@example.org", PASSWORD))
    page = f"/engineers/accounts/user/{staff.dana.pk}/change/"
    shown = client.get(page).context["adminform"].form.initial
    form = {
        "email": "dana@example.org",
        "first_name": "Dana",
        "last_name": "",
        "last_login_0": "",
        "last_login_1": "",
        "date_joined_0": shown["date_joined"].date().isoformat(),
        "date_joined_1": "00:00:00",
    }
    assert client.post(page, form).status_code == 302
    entry = AuditEntry.objects.get(action="change user")
    assert entry.before["is_active"] == "True"
    assert entry.after["is_active"] == "False"
    assert type_password(Client(), "dana@example.org").status_code == 200
