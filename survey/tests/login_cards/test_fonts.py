"""Names in scripts that the repository's fonts lack: printed, or the ID instead."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from fontTools.fontBuilder import FontBuilder
from fontTools.pens.ttGlyphPen import TTGlyphPen

from survey.fieldwork.login_cards import fonts
from survey.fieldwork.login_cards.fonts import printable
from survey.fieldwork.login_cards.pdf import LoginCard
from survey.tests.card_readers import read_pages
from survey.tests.login_cards.test_card_text import draw
from survey.tests.login_cards.test_cards import (
    administration,  # noqa: F401
    download,
    invite,
    log_in,
    order,  # noqa: F401
    text_of,
    url_of,
)

pytestmark = pytest.mark.django_db

THAI = "สมชาย"


def make_font(path: Path, letters: str) -> None:
    """Write a font in which each letter is a square."""
    pen = TTGlyphPen(None)
    for at, point in enumerate([(0, 0), (0, 700), (700, 700), (700, 0)]):
        (pen.lineTo if at else pen.moveTo)(point)
    pen.closePath()
    names = {ord(letter): f"letter{ord(letter)}" for letter in letters}
    glyphs = [".notdef", *names.values()]
    builder = FontBuilder(1000)
    builder.setupGlyphOrder(glyphs)
    builder.setupCharacterMap(names)
    builder.setupGlyf(dict.fromkeys(glyphs, pen.glyph()))
    builder.setupHorizontalMetrics(dict.fromkeys(glyphs, (800, 0)))
    builder.setupHorizontalHeader(ascent=800, descent=-200)
    builder.setupNameTable({"familyName": path.stem, "styleName": "Bold"})
    builder.setupOS2(sTypoAscender=800)
    builder.setupPost()
    builder.save(path)


def forget_fonts() -> None:
    for function in (fonts.fallback_font, fonts.system_fonts, fonts.characters_of):
        function.cache_clear()


@pytest.fixture
def install(monkeypatch, tmp_path) -> Callable[[str, str], None]:
    """Return a function that installs a font; without a call there is none."""
    monkeypatch.setattr(fonts, "SYSTEM_FOLDERS", (tmp_path,))
    forget_fonts()

    def install(name: str, letters: str) -> None:
        make_font(tmp_path / f"{name}.ttf", letters)
        forget_fonts()

    yield install
    forget_fonts()


@pytest.mark.parametrize(
    ("name", "printed"),
    [
        ("Łukasz Żółć", "Łukasz Żółć"),
        ("Ђорђевић", "Ђорђевић"),
        ("שרה כהן", "שרה כהן"),
        ("Zoe\u0308", "Zoe\u0308"),
        # Signs are left out, letters never.
        ("Ana \U0001f9ff", "Ana "),
        ("小明", None),
        (THAI, None),
        ("अनिल Smith", None),
        ("", ""),
    ],
)
def test_names_are_printed_whole_or_not_at_all(install, name, printed):
    assert printable(name) == printed


def test_a_font_of_the_system_prints_its_script(install):
    install("NotoSansThai-Bold", THAI)
    install("NotoSansCJK-Regular", "小明")
    assert printable(f"{THAI} 小明 Smith") == f"{THAI} 小明 Smith"
    assert printable(f"{THAI}ก") is None
    card = LoginCard("7A", "7A", THAI, "小明 Smith", "ABCD-EFGH-KLMN", "")
    pdf, _ = draw([card])
    text = read_pages(pdf)[0].text
    assert THAI in text and "小明" in text and "Smith" in text


def test_cards_show_the_id_in_place_of_a_name_without_a_font(
    client,
    staff,
    administration,  # noqa: F811
    order,  # noqa: F811
    install,
):
    invite(administration, staff.lincoln, "PUPIL-1", f"{THAI} Smith", classroom="7A")
    invite(administration, staff.lincoln, "PUPIL-2", "Ann Lee", classroom="7A")
    log_in(client, staff.chen)
    card_set = order(staff.lincoln)
    [page] = read_pages(download(client, card_set))
    assert "PUPIL-1" in page.text and "Smith" not in page.text
    assert "Ann Lee" in page.text and "PUPIL-2" not in page.text
    shown = text_of(client.get(url_of(card_set)))
    assert "1 card shows the ID in place of a name" in shown
    assert "fonts-noto-core" in shown
    # With the font, nothing has to be said.
    install("NotoSansThai-Bold", THAI)
    card_set = order(staff.lincoln)
    [page] = read_pages(download(client, card_set))
    assert f"{THAI} Smith" in page.text and "PUPIL-1" not in page.text
    assert "in place of a name" not in text_of(client.get(url_of(card_set)))


@pytest.mark.parametrize(
    ("font", "title"),
    [
        ("NotoSansCJK-Bold", "学校调查"),
        ("NotoSansCJK-Bold", "학교 설문조사"),
        ("NotoSansBengali-Bold", "আমার"),
    ],
)
def test_a_title_in_another_script_is_printed_where_it_has_a_font(
    client,
    staff,
    administration,  # noqa: F811
    order,  # noqa: F811
    install,
    monkeypatch,
    font,
    title,
):
    monkeypatch.setattr(
        "survey.taking.published.Published.title_in", lambda self, language: title
    )
    invite(administration, staff.lincoln, "PUPIL-2", "Ann Lee", classroom="7A")
    log_in(client, staff.chen)
    [page] = read_pages(download(client, order(staff.lincoln)))
    assert "Ann Lee" in page.text and title not in page.text
    install(font, title)
    [page] = read_pages(download(client, order(staff.lincoln)))
    assert title in page.text
