"""Translations go through a file: download, check, save or drop, undo."""

from __future__ import annotations

import html
import re

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from accounts.models import Membership
from accounts.tests.conftest import member
from accounts.tests.logging_in import log_in
from survey.console.surveys import text_files
from survey.instrument.drafts.commands import languages_of
from survey.instrument.drafts.store import load_book
from survey.models import Survey
from survey.tests.console.test_surveys import ROWS, draft_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def draft(staff):
    return draft_of()


@pytest.fixture
def client(staff):
    return log_in(Client(), staff.state)


def at(draft, rest="") -> str:
    return f"/console/surveys/{draft.pk}/edit/texts/{rest}"


def downloaded(client, draft, kind="csv", language="es") -> bytes:
    reply = client.get(at(draft, "file/"), {"kind": kind, "language": language})
    assert reply.status_code == 200
    return reply.content


def uploaded(client, draft, content, name="pets.csv"):
    file = SimpleUploadedFile(name, content)
    return client.post(at(draft, "upload/"), {"file": file})


def texts(client, draft, code="es"):
    rows = client.get(at(draft), {"language": code}).context["rows"]
    return {row.name: row.text for row in rows}


def codes(draft):
    return [language.code for language in languages_of(load_book(draft))]


@pytest.mark.parametrize("kind", ["csv", "xliff-1.2", "xliff-2.0"])
def test_a_translator_fills_a_file_that_is_checked_saved_and_undone(
    client, draft, kind
):
    content = downloaded(client, draft, kind)
    changed = content.replace(b"Gato", b"Gatito")
    page = uploaded(client, draft, changed, "pets.xlf" if "xl" in kind else "pets.csv")
    text = page.content.decode()
    assert "Gatito" in text and "Nothing has changed yet." in text
    assert "Page 1: Which pet?, option" in text and "Save 1 translation" in text
    # Dropped by leaving the page.
    assert texts(client, draft)["pets cat"] == "Gato"

    signed = {"checked": page.context["checked"]}
    reply = client.post(at(draft, "upload/save/"), signed, follow=True)
    assert "1 translation was saved. You can undo this." in reply.content.decode()
    assert texts(client, draft)["pets cat"] == "Gatito"
    # A second click changes nothing.
    client.post(at(draft, "upload/save/"), signed)
    assert draft.changes.count() == 1

    reply = client.post(at(draft, "undo/"), follow=True)
    assert "Your last change was undone." in reply.content.decode()
    assert texts(client, draft)["pets cat"] == "Gato"


def test_the_original_is_beside_what_changes(client, draft):
    content = downloaded(client, draft).replace(b"Gato", b"Gatito")
    page = uploaded(client, draft, content).content.decode()
    [table] = re.findall(r"<table.*?</table>", page, re.S)
    headers = re.findall(r'<th scope="col">(.*?)</th>', table)
    cells = [cell.strip() for cell in re.findall(r"<td[^>]*>(.*?)</td>", table, re.S)]
    assert dict(zip(headers[1:], cells, strict=True)) == {
        "Original": "Cat",
        "Language": "Español",
        "Now": "Gato",
        "New": "Gatito",
    }


def test_a_file_without_changes_offers_nothing_to_save(client, draft):
    page = uploaded(client, draft, downloaded(client, draft, "xlsx"), "pets.xlsx")
    text = page.content.decode()
    assert "5 translations are as they are in the survey." in text
    assert "upload/save/" not in text


def test_refused_texts_are_listed_beside_those_that_are_saved(client, draft):
    content = downloaded(client, draft).decode("utf-8-sig")
    content = content.replace("Gato", "Gatito").replace("Its age?", "Age?")
    page = uploaded(client, draft, content.encode())
    text = page.content.decode()
    assert "It is now: Its age?" in text and "1 problem: it is not saved." in text
    client.post(at(draft, "upload/save/"), {"checked": page.context["checked"]})
    assert texts(client, draft)["pets cat"] == "Gatito"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"%PDF-1.7", "This is a PDF."),
        (b"<!DOCTYPE a [<!ENTITY b 'c'>]><xliff>&b;</xliff>", "document type"),
        (b"", "empty"),
        (b"x" * (text_files.LARGEST + 1), "larger than 8 MB"),
    ],
    ids=["pdf", "entity", "empty", "large"],
)
def test_files_that_are_no_texts_are_refused(client, draft, content, reason):
    page = uploaded(client, draft, content)
    assert reason in page.content.decode()
    assert page.context["form"].errors


def test_too_many_changes_at_once_are_refused(client, draft, monkeypatch):
    monkeypatch.setattr(text_files, "LONGEST_SIGNED", 10)
    content = downloaded(client, draft).replace(b"Gato", b"Gatito")
    assert (
        "Upload one language at a time"
        in uploaded(client, draft, content).content.decode()
    )


def test_what_was_checked_by_another_or_for_another_draft_is_not_saved(
    client, draft, staff
):
    content = downloaded(client, draft).replace(b"Gato", b"Gatito")
    checked = uploaded(client, draft, content).context["checked"]
    second = draft_of(version="2")
    colleague = log_in(Client(), member("kim@example.org", Membership.Role.STATE))
    for person, target in ((client, second), (colleague, draft)):
        reply = person.post(at(target, "upload/save/"), {"checked": checked})
        assert reply.status_code == 302
    client.post(at(draft, "upload/save/"), {"checked": checked + "x"})
    client.post(at(draft, "upload/save/"))
    assert texts(client, draft)["pets cat"] == "Gato"


def test_a_text_that_changed_meanwhile_is_not_overwritten(client, draft):
    content = downloaded(client, draft)
    first = uploaded(client, draft, content.replace(b"Gato", b"Gatito"))
    second = uploaded(client, draft, content.replace(b"Gato", b"Minino"))
    for page in (first, second):
        signed = {"checked": page.context["checked"]}
        reply = client.post(at(draft, "upload/save/"), signed, follow=True)
    assert "Somebody has changed these texts meanwhile" in reply.content.decode()
    assert texts(client, draft)["pets cat"] == "Gatito"


def test_an_xliff_2_file_has_one_language(client, draft):
    client.post(at(draft, "languages/"), {"token": "fr"})
    asked = {"kind": "xliff-2.0", "language": "all"}
    reply = client.get(at(draft, "file/"), asked, follow=True)
    assert "An XLIFF 2.0 file has one language" in reply.content.decode()
    assert b"fran" in downloaded(client, draft, "csv", "all")


@pytest.mark.parametrize(
    "query", [{"kind": "csv", "language": "de"}, {"kind": "pdf", "language": "es"}]
)
def test_only_files_that_exist_are_downloaded(client, draft, query):
    assert client.get(at(draft, "file/"), query).status_code == 404


def test_a_language_is_added_and_removed_after_a_question(client, draft):
    reply = client.post(at(draft, "languages/"), {"token": "fr"}, follow=True)
    assert "français was added." in reply.content.decode()
    assert reply.context["language"].code == "fr"
    reply = client.post(at(draft, "languages/"), {"token": "Klingonese"}, follow=True)
    assert "This language is not known." in reply.content.decode()

    page = client.get(at(draft, "languages/es/remove/")).content.decode()
    assert "5 texts in this language are deleted." in page
    assert codes(draft) == ["en", "es", "fr"]
    client.post(at(draft, "languages/es/remove/"))
    assert codes(draft) == ["en", "fr"]
    client.post(at(draft, "undo/"))
    assert codes(draft) == ["en", "es", "fr"]
    assert texts(client, draft)["pets cat"] == "Gato"


@pytest.mark.parametrize("code", ["en", "de"])
def test_the_first_language_and_unknown_ones_are_not_removed(client, draft, code):
    assert client.post(at(draft, f"languages/{code}/remove/")).status_code == 404
    assert codes(draft) == ["en", "es"]


def test_buttons_are_there_only_where_they_do_something(client, draft):
    page = client.get(at(draft)).content.decode()
    assert "Still right" not in page and 'id="texts-undo" hidden' in page
    [row] = [
        row
        for row in client.get(at(draft), {"language": "en"}).context["rows"]
        if row.name == "pet"
    ]
    form = {"text_id": row.id, "language": "en", "seen": row.text, "text": "Which?"}
    client.post(at(draft), form)
    page = client.get(at(draft), {"language": "es"}).content.decode()
    assert page.count("Still right") == 1 and "Undo" in page
    # Scripts save by themselves.
    assert page.count(">Save</button></noscript>") == page.count(">Save</button>")


def test_undo_leaves_the_list_as_it_is_shown(client, draft):
    query = {"language": "es", "show": "missing"}
    [row] = [
        row
        for row in client.get(at(draft), {"language": "es"}).context["rows"]
        if row.name == "pets cat"
    ]
    form = {"text_id": row.id, "language": "es", "seen": "Gato", "text": ""}
    client.post(at(draft), form)
    page = client.get(at(draft), query)
    assert [row.name for row in page.context["rows"]] == ["", "pets cat"]
    [action] = re.findall(
        r'id="texts-undo" method="post" action="([^"]*)"', page.content.decode()
    )
    reply = client.post(html.unescape(action), follow=True)
    assert [row.name for row in reply.context["rows"]] == [""]
    assert texts(client, draft)["pets cat"] == "Gato"
    # A list of all texts has a row that is translated.
    assert len(texts(client, draft)) > 1


def test_others_change_nothing(staff, draft):
    for user in (staff.dana, staff.chen, staff.analyst):
        person = log_in(Client(), user)
        for rest in ("upload/", "file/?kind=csv&language=es", "languages/es/remove/"):
            assert person.get(at(draft, rest)).status_code in (403, 404)
        for rest in ("upload/save/", "undo/", "languages/", "languages/es/remove/"):
            assert person.post(at(draft, rest)).status_code in (403, 404)
    assert codes(draft) == ["en", "es"]


def test_a_published_survey_has_no_such_pages(client, draft):
    Survey.objects.filter(pk=draft.pk).update(published_at="2027-01-01T00:00Z")
    for rest in ("upload/", "file/?kind=csv&language=es", "languages/es/remove/"):
        assert client.get(at(draft, rest)).status_code == 404


@pytest.mark.parametrize("questions", [1, 3])
def test_a_file_costs_the_same_for_one_and_three_questions(
    client, questions, django_assert_num_queries
):
    rows = [*ROWS[:2], *([ROWS[2][0], f"p{n}", *ROWS[2][2:]] for n in range(questions))]
    draft = draft_of(rows=[*rows, ROWS[4]])
    content = downloaded(client, draft).replace(b"Gato", b"Gatito")
    # Nothing is committed in a test, so the rows are not read from memory.
    with django_assert_num_queries(7):
        page = uploaded(client, draft, content)
    with django_assert_num_queries(20):
        client.post(at(draft, "upload/save/"), {"checked": page.context["checked"]})
