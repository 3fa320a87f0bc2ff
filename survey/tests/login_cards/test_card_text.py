"""Words, dates, layout and order of login cards."""

from __future__ import annotations

from datetime import UTC, datetime
from unicodedata import normalize
from zoneinfo import ZoneInfo

import pypdfium2
import pytest
from django.conf import settings

from survey.fieldwork.login_cards import drawing
from survey.fieldwork.login_cards.card_text import (
    CARD_WORDS,
    card_language,
    window_in_words,
)
from survey.fieldwork.login_cards.layout import class_by_class
from survey.fieldwork.login_cards.pdf import CardSheet, LoginCard, draw_cards
from survey.tests.card_readers import read_pages
from survey.tests.conftest import enrol

HERE = ZoneInfo(settings.TIME_ZONE)
OPENS = datetime(2027, 3, 1, 8, tzinfo=HERE)


def test_dates_are_in_the_language_of_the_card():
    closes = datetime(2027, 3, 26, 16, tzinfo=HERE)
    assert [
        window_in_words(code, OPENS, closes, HERE) for code in ("en", "es", "ar")
    ] == [
        "Open from March 1, 2027 to March 26, 2027.",
        "Abierto del 1 de marzo de 2027 al 26 de marzo de 2027.",
        "متاح من 1 مارس، 2027 إلى 26 مارس، 2027.",
    ]


def test_closing_at_midnight_shows_the_day_before():
    midnight = datetime(2027, 3, 27, tzinfo=HERE).astimezone(UTC)
    assert "to March 26, 2027" in window_in_words("en", OPENS, midnight, HERE)


def test_a_single_day_is_named_once():
    closes = datetime(2027, 3, 1, 16, tzinfo=HERE)
    assert window_in_words("en", OPENS, closes, HERE) == "Open on March 1, 2027 only."


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [(["es-MX"], "es"), (["AR"], "ar"), (["fr", "es"], "es"), (["fr"], ""), ([""], "")],
)
def test_languages_without_card_words_are_skipped(wanted, expected):
    assert card_language(*wanted) == expected


def draw(cards, address="https://survey.example.org"):
    sheet = CardSheet(
        title="Login cards: Lincoln",
        address=address,
        first_language="en",
        titles={"en": "My School", "es": "Mi escuela", "ar": "مدرستي"},
        windows={
            code: window_in_words(code, OPENS, OPENS, HERE) for code in CARD_WORDS
        },
    )
    counted = []
    return bytes(draw_cards(cards, sheet, counted.append)), counted


def card(number: int, group: str, language: str = "") -> LoginCard:
    return LoginCard(group, group, "Ann", f"Smith{number}", "ABCD-EFGH-KLMN", language)


def test_a_card_has_the_surveys_title_in_its_languages():
    pdf, _counted = draw([card(1, "7A", "es")])
    [page] = read_pages(pdf)
    assert "My School · Mi escuela" in page.text
    pdf, _counted = draw([card(1, "7A")])
    [page] = read_pages(pdf)
    assert "My School" in page.text and "Mi escuela" not in page.text
    pdf, _counted = draw([card(1, "7A", "ar")])
    [page] = read_pages(pdf)
    assert "My School" in page.text and "مدرستي" in normalize("NFKC", page.text)
    assert page.links == ["https://survey.example.org/#ABCD-EFGH-KLMN"]


def test_each_class_has_numbered_pages_of_its_own():
    cards = [card(n, "Class 7B") for n in range(9)] + [card(9, "Class 8A")]
    pdf, counted = draw(cards)
    texts = [page.text for page in read_pages(pdf)]
    assert counted == [8, 1, 1]
    assert ["1 / 2" in texts[0], "2 / 2" in texts[1], "/ 1" in texts[2]] == [
        True,
        True,
        False,
    ]
    assert "Class 7B" not in texts[2]


def test_the_pdf_declares_language_and_title():
    pdf, _ = draw([card(1, "Class 7B")])
    assert b"/Lang (en)" in pdf
    assert b"/DisplayDocTitle true" in pdf


def test_long_addresses_are_shrunk_and_never_cut():
    host = "school-climate-survey.department-of-education.state.example.gov"
    [page] = read_pages(draw([card(1, "Class 7B")], f"https://{host}")[0])
    assert host in page.text
    assert page.links == [f"https://{host}/#ABCD-EFGH-KLMN"]


@pytest.mark.parametrize("language", ["en", "es", "ar"])
def test_instructions_fit_on_the_card(language):
    [page] = read_pages(draw([card(1, "Class 7B", language)])[0])
    assert "…" not in page.text


def test_cards_are_sorted_by_class(administration, lincoln):
    for number, (grade, room) in enumerate(
        [("10", "10A"), ("09", "9B"), ("11", ""), ("09", ""), ("09", "9b"), ("2", "")]
    ):
        enrol(
            administration,
            lincoln,
            grade=grade,
            classroom=room,
            attributes={"n": number},
        )
    people = class_by_class(administration.respondents.all(), "student")
    assert [person.classroom or person.grade for person in people] == [
        "9B",
        "9b",
        "10A",
        "2",
        "09",
        "11",
    ]


def test_a_file_names_the_program_that_made_it():
    document = pypdfium2.PdfDocument(draw([card(1, "Class 7B", "en")])[0])
    assert document.get_metadata_value("Producer") == f"Groundswell {settings.VERSION}"
    document.close()


def dark_columns(pdf: bytes) -> int:
    """Return the width of the Arabic lines of the first card, in dots."""
    document = pypdfium2.PdfDocument(pdf)
    image = document[0].render(scale=3, grayscale=True).to_pil()
    document.close()
    # In millimetres: beneath the first language, inside the first card.
    left, top, right, bottom = (round(n * 3 * 72 / 25.4) for n in (14, 65, 106, 75))
    return sum(
        any(image.getpixel((x, y)) < 128 for y in range(top, bottom))
        for x in range(left, right)
    )


def test_arabic_letters_are_joined(monkeypatch):
    """The twin: without shaping, letters are separate and take more space."""
    joined, _ = draw([card(1, "Class 7B", "ar")])
    monkeypatch.setattr(drawing, "_needs_shaping", lambda text: False)
    apart, _ = draw([card(1, "Class 7B", "ar")])
    assert dark_columns(joined) > 0
    assert dark_columns(apart) != dark_columns(joined)
    assert "رمزك" in read_pages(joined)[0].text
    assert "رمزك" not in read_pages(apart)[0].text
