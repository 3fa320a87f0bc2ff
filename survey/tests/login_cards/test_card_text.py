"""What a card says: in whose language, until when, in which order."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pypdfium2
import pytest
from django.conf import settings

from survey.login_cards import pdf
from survey.login_cards.card_text import CARD_WORDS, card_language, window_in_words
from survey.login_cards.layout import class_by_class
from survey.login_cards.pdf import CardSheet, LoginCard, draw_cards
from survey.tests.card_readers import read_pages
from survey.tests.conftest import enrol

HERE = ZoneInfo(settings.TIME_ZONE)
OPENS = datetime(2027, 3, 1, 8, tzinfo=HERE)


def test_the_window_is_said_in_the_language_of_the_card():
    closes = datetime(2027, 3, 26, 16, tzinfo=HERE)
    assert [window_in_words(one, OPENS, closes) for one in ("en", "es", "ar")] == [
        "Open from March 1, 2027 to March 26, 2027.",
        "Abierto del 1 de marzo de 2027 al 26 de marzo de 2027.",
        "متاح من 1 مارس، 2027 إلى 26 مارس، 2027.",
    ]


def test_what_closes_at_midnight_is_open_until_the_day_before():
    midnight = datetime(2027, 3, 27, tzinfo=HERE).astimezone(UTC)
    assert "to March 26, 2027" in window_in_words("en", OPENS, midnight)


def test_a_window_of_one_day_names_it_once():
    closes = datetime(2027, 3, 1, 16, tzinfo=HERE)
    assert window_in_words("en", OPENS, closes) == "Open on March 1, 2027 only."


@pytest.mark.parametrize(
    ("wanted", "found"),
    [(["es-MX"], "es"), (["AR"], "ar"), (["fr", "es"], "es"), (["fr"], ""), ([""], "")],
)
def test_a_language_without_words_is_passed_over(wanted, found):
    assert card_language(*wanted) == found


def drawn(cards, address="https://survey.example.org"):
    sheet = CardSheet(
        title="Login cards: Lincoln",
        address=address,
        first_language="en",
        windows={one: window_in_words(one, OPENS, OPENS) for one in CARD_WORDS},
    )
    counted = []
    return bytes(draw_cards(cards, sheet, counted.append)), counted


def card(number: int, group: str, language: str = "") -> LoginCard:
    return LoginCard(group, group, "Ann", f"Smith{number}", "ABCD-EFGH-KLMN", language)


def test_a_page_belongs_to_one_class_and_says_which_of_how_many_it_is():
    cards = [card(n, "Class 7B") for n in range(9)] + [card(9, "Class 8A")]
    pdf, counted = drawn(cards)
    texts = [page.text for page in read_pages(pdf)]
    assert counted == [8, 1, 1]
    assert ["1 / 2" in texts[0], "2 / 2" in texts[1], "/ 1" in texts[2]] == [
        True,
        True,
        False,
    ]
    assert "Class 7B" not in texts[2]


def test_the_file_says_its_language_and_its_title():
    pdf, _ = drawn([card(1, "Class 7B")])
    assert b"/Lang (en)" in pdf
    assert b"/DisplayDocTitle true" in pdf


def test_a_long_address_is_small_and_whole():
    host = "school-climate-survey.department-of-education.state.example.gov"
    [page] = read_pages(drawn([card(1, "Class 7B")], f"https://{host}")[0])
    assert host in page.text
    assert page.links == [f"https://{host}/#ABCD-EFGH-KLMN"]


@pytest.mark.parametrize("language", ["en", "es", "ar"])
def test_no_line_of_the_instructions_is_cut(language):
    [page] = read_pages(drawn([card(1, "Class 7B", language)])[0])
    assert "…" not in page.text


def test_cards_come_in_the_order_of_classes(administration, lincoln):
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
    assert [one.classroom or one.grade for one in people] == [
        "9B",
        "9b",
        "10A",
        "2",
        "09",
        "11",
    ]


def dark_columns(pdf: bytes) -> int:
    """How wide the Arabic lines of the first card are, in dots."""
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
    """The twin: without shaping each letter stands alone, which takes more room."""
    joined, _ = drawn([card(1, "Class 7B", "ar")])
    monkeypatch.setattr(pdf, "_needs_shaping", lambda text: False)
    apart, _ = drawn([card(1, "Class 7B", "ar")])
    assert dark_columns(joined) > 0
    assert dark_columns(apart) != dark_columns(joined)
    assert "رمزك" in read_pages(joined)[0].text
    assert "رمزك" not in read_pages(apart)[0].text
