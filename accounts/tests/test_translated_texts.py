"""Texts of staff follow the language of the person who reads them."""

from __future__ import annotations

import pytest
from django.core import mail
from django.utils import timezone, translation
from django.utils.translation import trans_real

from accounts import email_outbox
from accounts.console.audit_sentences import Label, Line
from accounts.models import AuditEntry, User
from accounts.staff import dismiss
from accounts.tests.logging_in import log_in


@pytest.fixture
def spanish(settings, monkeypatch):
    """Offer Spanish, with a catalog that has few texts."""
    settings.LANGUAGES = [("en", "English"), ("es", "Español")]
    texts = {
        "school coordinator": "coordinador escolar",
        "Your role in Groundswell has ended": "Su función en Groundswell terminó",
        "%(by)s ended your role %(role)s, %(place)s.": (
            "%(by)s terminó su función de %(role)s, %(place)s."
        ),
        "Page not found": "Página no encontrada",
        "{who} renamed the school {subject}": (
            "{who} cambió el nombre de la escuela {subject}"
        ),
    }
    catalog = trans_real.translation("es")._catalog._catalogs[0]
    for english, spanish in texts.items():
        monkeypatch.setitem(catalog, english, spanish)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("language", "role_name"),
    [("", "ended your role school coordinator"), ("es", "función de coordinador")],
)
def test_an_email_names_the_role_in_the_recipients_language(
    staff, spanish, language, role_name
):
    User.objects.filter(pk=staff.chen.pk).update(language=language)
    [membership] = staff.chen.memberships.all()
    # The administrator works in the other language.
    with translation.override("en" if language else "es"):
        dismiss(membership=membership, by=staff.dana)
    email_outbox.send_waiting()

    [email] = mail.outbox
    assert role_name in email.body


@pytest.mark.django_db
def test_error_pages_of_staff_are_in_their_language(staff, client, spanish):
    User.objects.filter(pk=staff.chen.pk).update(language="es")
    page = log_in(client, User.objects.get(pk=staff.chen.pk)).get("/console/rats/")

    assert page.status_code == 404
    text = page.content.decode()
    assert '<html lang="es" dir="ltr">' in text
    assert "<h1>Página no encontrada</h1>" in text


def test_audit_sentences_are_translated_and_names_stay_escaped(spanish):
    entry = AuditEntry(action="rename school", by="x", at=timezone.now())
    line = Line([entry], "<b>Dana</b>", Label("Lincoln"), "")
    with translation.override("es"):
        assert line.sentence == (
            "<bdi>&lt;b&gt;Dana&lt;/b&gt;</bdi> cambió el nombre de la escuela"
            " <bdi>Lincoln</bdi>"
        )
