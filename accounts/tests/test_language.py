"""The console speaks the user's language; respondents' pages do not follow it."""

from __future__ import annotations

import pytest
from django.conf import settings
from django.core import mail
from django.test import Client, RequestFactory
from django.utils import translation
from django.utils.formats import get_format

from accounts import audit, email_outbox
from accounts.language import LanguageMiddleware
from accounts.models import User
from accounts.templatetags.console import language_name, own_language_name
from accounts.tests.logging_in import log_in


@pytest.mark.parametrize(("language", "_name"), settings.LANGUAGES)
def test_numbers_have_a_decimal_point_in_every_language(language, _name):
    """Charts and style attributes need it: see settings/formats/es."""
    with translation.override(language):
        assert get_format("DECIMAL_SEPARATOR") == "."


@pytest.mark.parametrize(
    ("code", "shown_name", "for_readers"),
    [
        ("es", "Español", "Spanish"),
        ("pt-BR", "Português (Brasil)", "Brazilian Portuguese"),
        ("ar", "العربية", "Arabic"),
        ("ht", "Kreyòl Ayisyen", "Haitian Creole"),
        ("hmn", "Hmong", "Hmong"),
        ("qqq", "Qqq", "qqq"),
    ],
)
def test_choices_of_languages_have_their_own_names(code, shown_name, for_readers):
    assert own_language_name(code) == shown_name
    with translation.override("en"):
        assert language_name(code) == for_readers


@pytest.fixture
def spanish(settings):
    settings.LANGUAGES = [("en", "English"), ("es", "Español")]


@pytest.mark.django_db
def test_a_user_chooses_the_language_in_the_account_menu(staff, spanish):
    client = log_in(Client(), staff.chen)
    home = client.get("/console/").content.decode()
    assert '<html lang="en"' in home
    assert 'name="language" value="es"' in home
    reply = client.post(
        "/console/me/language/", {"language": "es", "next": "/console/surveys/"}
    )
    assert reply.url == "/console/surveys/"
    assert User.objects.get(pk=staff.chen.pk).language == "es"
    page = client.get("/console/", headers={"Accept-Language": "en"})
    assert '<html lang="es"' in page.content.decode()
    assert page.headers["Content-Language"] == "es"


@pytest.mark.django_db
@pytest.mark.parametrize(
    "next_page", ["https://evil.example/", "//evil.example/", "javascript:alert(1)", ""]
)
def test_choosing_a_language_never_leads_to_another_site(staff, spanish, next_page):
    client = log_in(Client(), staff.chen)
    reply = client.post("/console/me/language/", {"language": "es", "next": next_page})
    assert reply.url == "/console/me/"


@pytest.mark.django_db
@pytest.mark.parametrize("language", ["", "xx", "fr", "es" * 50, "../es"])
def test_a_language_that_is_not_offered_is_refused(staff, spanish, language):
    client = log_in(Client(), staff.chen)
    reply = client.post("/console/me/language/", {"language": language})
    assert reply.status_code == 400
    assert User.objects.get(pk=staff.chen.pk).language == ""


@pytest.mark.django_db
def test_before_the_login_the_browser_decides(spanish):
    page = Client().get(
        "/console/account/login/", headers={"Accept-Language": "es-MX,en;q=0.5"}
    )
    assert '<html lang="es"' in page.content.decode()
    assert "Accept-Language" in page.headers["Vary"]


@pytest.mark.django_db
def test_a_language_whose_catalog_was_removed_falls_back(staff, settings):
    settings.LANGUAGES = [("en", "English")]
    User.objects.filter(pk=staff.chen.pk).update(language="es")
    page = log_in(Client(), User.objects.get(pk=staff.chen.pk)).get("/console/")
    assert '<html lang="en"' in page.content.decode()


@pytest.mark.django_db
def test_emails_are_in_the_recipients_language(staff, spanish):
    User.objects.filter(pk=staff.chen.pk).update(language="es")
    seen = []

    def note_language(email):
        seen.append((email.to, translation.get_language()))
        return {}

    email_outbox.WRITERS["role added"] = note_language
    try:
        for to in ("Chen@example.org", staff.dana.email, "nobody@example.org"):
            email_outbox.queue_email(
                "role added", to=to, by="Dana", role="r", place="p"
            )
        email_outbox.send_waiting()
    finally:
        del email_outbox.WRITERS["role added"]
    assert len(mail.outbox) == 3
    assert sorted(seen) == [
        ("Chen@example.org", "es"),
        (staff.dana.email, "en"),
        ("nobody@example.org", "en"),
    ]


@pytest.mark.django_db
def test_respondents_pages_do_not_follow_the_console(spanish):
    seen = []

    def note_language(request):
        seen.append(translation.get_language())
        raise AssertionError

    request = RequestFactory().get("/", headers={"Accept-Language": "es"})
    with pytest.raises(AssertionError):
        LanguageMiddleware(note_language)(request)
    assert seen == ["en-us"]


@pytest.mark.django_db
def test_the_audit_log_is_in_english_whoever_writes_it(staff):
    class Named(type(staff.lincoln)):
        class Meta:
            proxy = True
            app_label = "accounts"

        def __str__(self) -> str:
            return translation.get_language()

    with translation.override("es"):
        entry = audit.record("test", by=staff.chen, subject=Named(pk=1))
        assert translation.get_language() == "es"
    assert entry.subject == "en"
