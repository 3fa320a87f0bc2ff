"""Texts of e-mails: their variables are checked, and filled in."""

from __future__ import annotations

import pytest
from django.core.exceptions import ValidationError

from survey.fieldwork.emails import schedules
from survey.fieldwork.emails.default_texts import DEFAULT_TEXTS, EMAIL_WORDS
from survey.fieldwork.emails.templates import (
    VARIABLES,
    check_template,
    choose_language,
    fill_in,
    fill_in_subject,
)
from survey.models import EmailTemplate

VALUES = {name: f"<{name}>" for name in VARIABLES}


def errors_of(subject: str, body: str, kind: str = "invitation") -> dict:
    with pytest.raises(ValidationError) as refused:
        check_template(kind=kind, subject=subject, body=body)
    return refused.value.message_dict


def test_variables_are_filled_in():
    check_template(kind="invitation", subject="{survey}", body="Hello {name}: {link}")
    assert fill_in("Hello {name}: {link}", VALUES) == "Hello <name>: <link>"


@pytest.mark.parametrize(
    "unknown", ["nmae", "", "name.__class__", "name!r", "name:>99", "0", " name"]
)
def test_an_unknown_variable_is_refused_by_name(unknown):
    errors = errors_of("Now", f"{{link}} {{{unknown}}}")
    assert list(errors) == ["body"]
    assert f"{{{unknown}}} is not a variable. Use these: {{name}}," in errors["body"][0]


@pytest.mark.parametrize("text", ["{link} {name", "{link} name}", "{link} {{name}}"])
def test_stray_braces_are_refused(text):
    assert errors_of("Now", text)["body"] == [
        "Use { and } only around variables, such as {name}."
    ]


@pytest.mark.parametrize(
    "subject", ["Now\nBcc: all@example.org", "Now\r", "Now\x0b!", "Now\u2028!", "\nNow"]
)
def test_a_line_break_in_a_subject_is_refused(subject):
    assert errors_of(subject, "{link}")["subject"] == ["Write the subject in one line."]


def test_a_value_brings_neither_lines_nor_variables_into_a_subject():
    values = {**VALUES, "survey": "Our\r\nBcc: all@example.org {code}"}
    filled = fill_in_subject("{survey} now", values)
    assert filled == "Our Bcc: all@example.org {code} now"


@pytest.mark.parametrize("secret", ["link", "code"])
def test_a_subject_holds_no_secret(secret):
    assert "others can see" in errors_of(f"{{{secret}}}", "{link}")["subject"][0]


@pytest.mark.parametrize(
    ("kind", "body", "message"),
    [
        ("reminder", "Come back.", "Add {link}"),
        ("thanks", "Thanks: {link}", "The survey is closed"),
        ("invitation", " ", "Write a text."),
        ("invitation", "{link}" + "x" * 10_000, "at most 10,000"),
    ],
)
def test_a_text_fits_its_step(kind, body, message):
    assert message in errors_of("Now", body, kind)["body"][0]


@pytest.mark.django_db
def test_a_refused_text_is_not_stored(plan, staff):
    step = plan().steps.get(days=3)
    before = list(EmailTemplate.objects.order_by("pk").values())
    with pytest.raises(ValidationError):
        schedules.write_template(
            step=step, language="en", subject="Now", body="{lnik}", by=staff.state
        )
    assert list(EmailTemplate.objects.order_by("pk").values()) == before
    schedules.write_template(
        step=step, language="en", subject="Now", body="{link}", by=staff.state
    )
    assert step.templates.get(language="en").body == "{link}"


@pytest.mark.parametrize("language", DEFAULT_TEXTS)
def test_the_texts_to_begin_with_are_complete(language):
    assert language in EMAIL_WORDS
    for kind, text in DEFAULT_TEXTS[language].items():
        check_template(kind=kind, subject=text.subject, body=text.body)
        nameless = fill_in(text.body, {**VALUES, "name": ""}).splitlines()[0]
        assert nameless in ("Hello,", "Hola:", "مرحبًا،")


@pytest.mark.parametrize(
    ("wanted", "first", "chosen"),
    [
        ("es", "en", "es"),
        ("es-MX", "en", "es"),
        ("es_MX", "en", "es"),
        ("so", "ar", "ar"),
        ("so", "hmn", "en"),
        ("", "es-US", "es"),
    ],
)
def test_a_person_gets_the_text_in_the_nearest_language(wanted, first, chosen):
    assert choose_language(wanted, DEFAULT_TEXTS, first) == chosen
