"""People opt out with one click, in their mail program or on a page."""

from __future__ import annotations

import pytest
from django.core import mail
from django.test import Client

from survey.fieldwork.emails.suppression import is_suppressed
from survey.models import SuppressedAddress

pytestmark = pytest.mark.django_db

ONE_CLICK = {"List-Unsubscribe": "One-Click"}


@pytest.fixture
def paths(confirmed, people, send) -> list[str]:
    """Return the paths of the links of Maya, Ana and Noor."""
    send(confirmed)
    links = [message.extra_headers["List-Unsubscribe"] for message in mail.outbox]
    return [link[1:-1].removeprefix("https://survey.example.org") for link in links]


@pytest.fixture
def program() -> Client:
    """Return a mail program: without cookies, so without a CSRF token."""
    return Client(enforce_csrf_checks=True)


def test_a_mail_program_opts_out_with_one_click(paths, program, confirmed, send):
    message = mail.outbox[0]
    assert message.extra_headers["List-Unsubscribe-Post"] == (
        "List-Unsubscribe=One-Click"
    )
    assert paths[0] in message.body
    response = program.post(
        paths[0],
        "List-Unsubscribe=One-Click",
        content_type="application/x-www-form-urlencoded",
    )
    assert response.status_code == 200
    assert is_suppressed("maya@example.org")
    assert not is_suppressed("ana@example.org")
    row = SuppressedAddress.objects.get()
    program.post(paths[0], ONE_CLICK)
    assert SuppressedAddress.objects.get().at == row.at


def test_a_person_opts_out_on_the_page(paths, program):
    page = program.get(paths[0])
    assert "Stop e-mails about surveys?" in page.content.decode()
    # Scanners of mail servers open every link.
    assert not SuppressedAddress.objects.exists()
    assert 'name="List-Unsubscribe" value="One-Click"' in page.content.decode()
    done = program.post(paths[0], ONE_CLICK)
    assert "No more e-mails will come" in done.content.decode()
    assert page["Referrer-Policy"] == "no-referrer"
    assert "no-store" in page["Cache-Control"]


@pytest.mark.parametrize(
    ("number", "language", "direction"), [(1, "es", "ltr"), (2, "ar", "rtl")]
)
def test_the_page_is_in_the_persons_language(
    paths, program, number, language, direction
):
    page = program.get(paths[number]).content.decode()
    assert f'<html lang="{language}" dir="{direction}"' in page


@pytest.mark.parametrize(
    "body", [{}, {"List-Unsubscribe": "yes"}, {"List-Unsubscribe-Post": "One-Click"}]
)
def test_another_body_changes_nothing(paths, program, body):
    assert program.post(paths[0], body).status_code == 400
    assert not SuppressedAddress.objects.exists()


def test_a_forged_link_changes_nothing(paths, program):
    number, _, signature = paths[0].split("/")[2].partition(":")
    for token in (
        *(f"{int(number) + 1}:{signature}", f"{number}:x", number, "x", "1:2:3"),
        "9" * 5000,
    ):
        for response in (
            program.get(f"/unsubscribe/{token}/"),
            program.post(f"/unsubscribe/{token}/", ONE_CLICK),
        ):
            assert response.status_code == 404
    assert not SuppressedAddress.objects.exists()


def test_a_link_holds_nothing_about_the_person(paths, people):
    for path, person in zip(paths, people, strict=True):
        assert person.identity.email.split("@")[0] not in path
        assert f"/{person.pk}:" not in path or person.pk < 10


@pytest.mark.parametrize("method", ["put", "patch", "delete"])
def test_other_methods_are_refused(paths, program, method):
    assert getattr(program, method)(paths[0]).status_code == 405
