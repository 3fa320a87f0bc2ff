"""Login cards as a PDF: eight on a page, to be cut apart, and a page per class.

Letter paper; what is drawn fits on A4 as well. Vectors and text only: a page
of eight cards takes some 15 kB, and everything printed can be searched.
"""

from __future__ import annotations

import logging
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import qrcode
from django.conf import settings
from fpdf import FPDF
from fpdf.enums import Align, RenderStyle
from fpdf.prefs import ViewerPreferences

from survey.login_cards.card_text import RIGHT_TO_LEFT, WORDS

# It would name the signs of a person's name that a font lacks.
logging.getLogger("fpdf").setLevel(logging.ERROR)
logging.getLogger("fontTools").setLevel(logging.ERROR)

FOLDER = Path(settings.BASE_DIR) / "static" / "fonts"
FONTS = {
    ("sans", ""): "DejaVuSans.ttf",
    ("sans", "B"): "DejaVuSans-Bold.ttf",
    ("mono", "B"): "DejaVuSansMono-Bold.ttf",
}

# In millimetres.
COLUMNS, ROWS = 2, 4
CARD_WIDTH, CARD_HEIGHT = 95.0, 61.0
LEFT, TOP, HEAD = 12.95, 20.0, 8.5
PADDING = 4.5
INSIDE = CARD_WIDTH - 2 * PADDING
SQUARE = 27.0
MARK = 3.0
LINE = 3.5
# How much of its size a name that is too long keeps.
SMALLEST = 0.65
# In modules: what the standard asks for around a QR code.
QUIET = 4
MUTED = 80


@dataclass(frozen=True, slots=True)
class Card:
    """`group` is whose page it is on; the rest is printed on the card."""

    group: str
    place: str
    given_name: str
    family_name: str
    # As people type it, in groups of four.
    code: str
    # Second language; empty: none.
    language: str


@dataclass(frozen=True, slots=True)
class Sheet:
    """What is the same on all cards."""

    title: str
    # The survey's address, without a slash at its end.
    address: str
    first_language: str
    # Language -> the window in words.
    windows: dict[str, str]

    @property
    def host(self) -> str:
        """As people type it."""
        return self.address.removeprefix("https://").removeprefix("http://")


def draw_cards(
    cards: Iterable[Card], sheet: Sheet, drawn: Callable[[int], None]
) -> bytearray:
    """The PDF. Cards of one group stand beside each other; `drawn` counts them."""
    pages = _Pages(sheet)
    for group, of_group in groupby(cards, key=lambda card: card.group):
        on_pages = list(_in_pages(list(of_group)))
        for number, page in enumerate(on_pages, start=1):
            pages.begin_page(group, number, len(on_pages))
            for position, card in enumerate(page):
                pages.draw(card, position)
            drawn(len(page))
    return pages.finished()


def _in_pages(cards: Sequence[Card]) -> Iterator[Sequence[Card]]:
    size = COLUMNS * ROWS
    for start in range(0, len(cards), size):
        yield cards[start : start + size]


class _Pages:
    def __init__(self, sheet: Sheet) -> None:
        self.sheet = sheet
        self.pdf = pdf = FPDF(format="letter")
        pdf.set_auto_page_break(False)
        pdf.c_margin = 0
        pdf.set_title(sheet.title)
        pdf.set_lang(sheet.first_language)
        pdf.set_producer("Groundswell")
        pdf.viewer_preferences = ViewerPreferences(display_doc_title=True)
        for (family, style), file in FONTS.items():
            pdf.add_font(family, style, FOLDER / file)

    def begin_page(self, group: str, number: int, of: int) -> None:
        self.pdf.add_page()
        self._text(LEFT, HEAD, 2 * CARD_WIDTH - 20, group, size=11, style="B")
        if of > 1:
            self._font("sans", "", 8)
            self.pdf.set_xy(LEFT, HEAD)
            self.pdf.cell(2 * CARD_WIDTH, 5, f"{number} / {of}", align=Align.R)
        self._draw_marks()

    def draw(self, card: Card, position: int) -> None:
        """`position` counts along the rows."""
        row, column = divmod(position, COLUMNS)
        x = LEFT + column * CARD_WIDTH + PADDING
        y = TOP + row * CARD_HEIGHT + PADDING
        width = INSIDE - SQUARE - 2
        self._text(x, y, width, card.place, size=8, grey=MUTED)
        self._name(card, x, y + 4.5, width)
        self._text(x, y + 12.5, width, self._label(card), size=7, grey=MUTED)
        self._text(x, y + 16, width, card.code, size=17, family="mono", style="B")
        # However long it is: whoever types half of it gets nowhere.
        self._text(x, y + 23.5, width, self.sheet.host, size=8.5, style="B", smallest=0)
        self._square(f"{self.sheet.address}/#{card.code}", x + INSIDE - SQUARE, y)
        below = y + SQUARE + 2
        for language in self._languages(card):
            below = self._instructions(language, x, below) + 1

    def finished(self) -> bytearray:
        return self.pdf.output()

    def _languages(self, card: Card) -> list[str]:
        first = self.sheet.first_language
        second = card.language if card.language != first else ""
        return [one for one in (first, second) if one]

    def _label(self, card: Card) -> str:
        return " · ".join(WORDS[one].code for one in self._languages(card))

    def _instructions(self, language: str, x: float, y: float) -> float:
        """Where the next ones may begin."""
        words = WORDS[language]
        for text in (words.open, words.type, self.sheet.windows[language]):
            self._text(
                x, y, INSIDE, text, size=7.4, backwards=language in RIGHT_TO_LEFT
            )
            y += LINE
        return y

    def _name(self, card: Card, x: float, y: float, width: float) -> None:
        """In one line, or in two where it is long."""
        whole = f"{card.given_name} {card.family_name}".strip()
        self._font("sans", "B", 12)
        if self.pdf.get_string_width(whole) * 0.75 <= width:
            self._text(x, y, width, whole, size=12, style="B")
            return
        self._text(x, y - 0.5, width, card.given_name, size=9.5, style="B")
        self._text(x, y + 3.3, width, card.family_name, size=9.5, style="B")

    def _text(
        self,
        x: float,
        y: float,
        width: float,
        text: str,
        *,
        size: float,
        style: str = "",
        family: str = "sans",
        grey: int = 0,
        backwards: bool = False,
        smallest: float = SMALLEST,
    ) -> None:
        """One line, smaller or in the end cut where it would not fit."""
        direction = "rtl" if backwards else None
        with self._shaping(direction, needed=_needs_shaping(text)):
            self._font(family, style, size, grey)
            wide = self.pdf.get_string_width(text)
            if wide > width:
                self.pdf.set_font_size(size * max(0.97 * width / wide, smallest))
                text = self._cut(text, width)
            self.pdf.set_xy(x, y)
            align = Align.R if backwards else Align.L
            self.pdf.cell(width, size * 0.45, text, align=align)

    def _cut(self, text: str, width: float) -> str:
        if self.pdf.get_string_width(text) <= width:
            return text
        while text and self.pdf.get_string_width(f"{text}…") > width:
            text = text[:-1].rstrip()
        return f"{text}…"

    def _font(self, family: str, style: str, size: float, grey: int = 0) -> None:
        self.pdf.set_font(family, style, size)
        self.pdf.set_text_color(grey)

    @contextmanager
    def _shaping(self, direction: str | None, *, needed: bool) -> Iterator[None]:
        # Fifteen times as slow as without, and Latin letters do not need it.
        self.pdf.set_text_shaping(needed, direction=direction)
        yield
        self.pdf.set_text_shaping(False)

    def _square(self, link: str, x: float, y: float) -> None:
        """The link's QR code, as one black bar for each run of modules."""
        code = qrcode.QRCode(error_correction=qrcode.ERROR_CORRECT_M, border=QUIET)
        code.add_data(link)
        modules = code.get_matrix()
        module = SQUARE / len(modules)
        self.pdf.set_fill_color(0)
        for row, line in enumerate(modules):
            column = 0
            for dark, run in groupby(line):
                length = len(list(run))
                if dark:
                    # Somewhat higher: no hair between one row and the next.
                    self.pdf.rect(
                        x + column * module,
                        y + row * module,
                        length * module,
                        module * 1.02,
                        style=RenderStyle.F,
                    )
                column += length

    def _draw_marks(self) -> None:
        """Where to cut: across the page, only between and beside the cards."""
        pdf = self.pdf
        pdf.set_draw_color(150)
        pdf.set_line_width(0.15)
        pdf.set_dash_pattern(dash=1, gap=1.5)
        for row in range(ROWS + 1):
            y = TOP + row * CARD_HEIGHT
            pdf.line(LEFT - MARK, y, LEFT + COLUMNS * CARD_WIDTH + MARK, y)
        for column in range(COLUMNS + 1):
            x = LEFT + column * CARD_WIDTH
            pdf.line(x, TOP - MARK, x, TOP + ROWS * CARD_HEIGHT + MARK)
        pdf.set_dash_pattern()


def _needs_shaping(text: str) -> bool:
    """Letters that are joined, run from right to left, or carry marks."""
    return any(
        unicodedata.bidirectional(sign) in ("R", "AL", "NSM")
        for sign in text
        if sign > "\u02ff"
    )
