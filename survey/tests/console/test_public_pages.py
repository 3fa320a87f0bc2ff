"""The state's own texts on privacy and accessibility."""

from __future__ import annotations

import pytest
from django.test import Client

from accounts.models import AuditEntry, PublicText
from accounts.tests.logging_in import log_in
from survey.console.settings.public_texts import (
    Part,
    blanks_of,
    draft_of,
    parts_of,
)
from survey.taking.messages import MESSAGES

pytestmark = pytest.mark.django_db

PAGES = "/console/settings/state/pages/"
FINISHED = "# Who asks\nThe Ohio <Survey> Office: ask@ohio.example.\n\nBy law."


def ask(path: str, **headers: str):
    response = Client().get(path, headers=headers)
    assert not response.cookies
    assert "Cookie" not in response.headers.get("Vary", "")
    return response


@pytest.mark.sqlite
def test_an_administrator_fills_in_a_draft_and_it_becomes_public(staff):
    client = log_in(Client(), staff.state)
    editor = client.get(f"{PAGES}privacy/en/").text
    assert "Still to fill in" in editor and "[purpose, such as" in editor
    assert not PublicText.objects.exists()

    draft = draft_of("privacy", "en")
    reply = client.post(f"{PAGES}privacy/en/", {"text": draft}, follow=True)
    assert "It is not public yet" in reply.text
    assert ask("/privacy/?language=en")["Location"] == "/about/?language=en#privacy"
    assert "places still to fill in" in client.get(PAGES).text

    text = FINISHED.replace("\n", "\r\n")
    reply = client.post(f"{PAGES}privacy/en/", {"text": text}, follow=True)
    assert "is public" in reply.text and "Still to fill in" not in reply.text
    page = ask("/privacy/?language=en")
    assert "<h2>Who asks</h2>" in page.text
    assert "The Ohio &lt;Survey&gt; Office" in page.text
    assert 'href="mailto:ask@ohio.example"' in page.text
    assert page["Cache-Control"].startswith("s-maxage=")
    [first, second] = AuditEntry.objects.filter(action="change a public page").order_by(
        "pk"
    )
    assert first.after["public"] is False and second.after["public"] is True
    # Nothing of the text, which the log would keep for ever.
    assert "Ohio" not in str(second.after)

    client.post(f"{PAGES}privacy/en/", {"text": ""})
    assert ask("/privacy/?language=en").status_code == 302


def test_a_reader_gets_a_finished_language(db):
    for language in ("es", "ar"):
        PublicText.objects.create(
            kind="accessibility", language=language, text=f"Text {language}"
        )
    PublicText.objects.create(kind="accessibility", language="en", text="[Blank]")
    page = ask("/accessibility/?language=ar").text
    assert '<html lang="ar" dir="rtl"' in page and "Text ar" in page
    assert "?language=en" not in page.partition("<main")[0]
    # English is not finished.
    assert "Text es" in ask("/accessibility/?language=en").text
    by_browser = ask("/accessibility/", Accept_Language="ar")
    assert "Text ar" in by_browser.text
    assert "Accept-Language" in by_browser["Vary"]
    assert ask("/privacy/?language=xx")["Location"] == "/about/?language=en#privacy"


def test_reading_is_one_statement(django_assert_num_queries):
    PublicText.objects.create(kind="privacy", language="en", text="Text")
    ask("/privacy/?language=en")
    with django_assert_num_queries(1):
        ask("/privacy/?language=en")


def test_only_the_state_writes_them(staff):
    for user in (staff.dana, staff.chen, staff.analyst):
        client = log_in(Client(), user)
        reply = client.post(f"{PAGES}privacy/en/", {"text": "Mine"})
        assert reply.status_code == 404
    assert not PublicText.objects.exists()
    client = log_in(Client(), staff.state)
    for path in ("privacy/xx/", "terms/en/"):
        assert client.get(f"{PAGES}{path}").status_code == 404


@pytest.mark.parametrize("kind", ["privacy", "accessibility"])
@pytest.mark.parametrize("language", MESSAGES)
def test_every_draft_has_headings_and_blanks(kind, language):
    draft = draft_of(kind, language)
    assert len(blanks_of(draft)) > 3
    parts = parts_of(draft)
    assert sum(part.is_heading for part in parts) == draft.count("# ")
    assert not any("# " in part.text for part in parts)


def test_a_text_is_cut_into_headings_and_paragraphs():
    assert parts_of("One\ntwo\n\n# Title\nThree\n\n\n# Last") == [
        Part("One\ntwo"),
        Part("Title", is_heading=True),
        Part("Three"),
        Part("Last", is_heading=True),
    ]
    assert parts_of("") == []
