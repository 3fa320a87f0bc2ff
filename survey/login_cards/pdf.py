"""Login cards as a PDF: eight on a page to cut apart, each class on its own pages.

Letter paper; everything fits on A4 as well. Vectors and text only: a page of
eight cards takes some 15 kB, and all printed text can be searched.
"""

from __future__ import annotations

import logging
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import qrcode
from django.conf import settings
from fpdf import FPDF
from fpdf.enums import Align, RenderStyle
from fpdf.prefs import ViewerPreferences

from survey.login_cards.card_text import CARD_WORDS, RIGHT_TO_LEFT

# Their warnings quote the characters of a name that a font lacks.
logging.getLogger("fpdf").setLevel(logging.ERROR)
logging.getLogger("fontTools").setLevel(logging.ERROR)

FONT_FOLDER = Path(settings.BASE_DIR) / "static" / "fonts"
FONTS = {
    ("sans", ""): "DejaVuSans.ttf",
    ("sans", "B"): "DejaVuSans-Bold.ttf",
    ("mono", "B"): "DejaVuSansMono-Bold.ttf",
}

# In millimetres.
COLUMNS, ROWS = 2, 4
CARDS_ON_PAGE = COLUMNS * ROWS
CARD_WIDTH, CARD_HEIGHT = 95.0, 61.0
LEFT, TOP, HEAD = 12.95, 20.0, 8.5
PADDING = 4.5
INSIDE = CARD_WIDTH - 2 * PADDING
QR_SIZE = 27.0
MARK = 3.0
LINE = 3.5
# A text that is too long is shrunk to this part of its size, then cut.
MIN_SCALE = 0.65
# In modules: the empty border that the standard requires around a QR code.
QUIET_ZONE = 4
MUTED = 80


@dataclass(frozen=True, slots=True)
class LoginCard:
    # Cards of one group share their pages, with this as the heading.
    group: str
    place: str
    given_name: str
    family_name: str
    # As people type it, in groups of four.
    code: str
    # The second language, or "".
    language: str


@dataclass(frozen=True, slots=True)
class CardSheet:
    """The parts that are the same on all cards."""

    title: str
    # The survey's address, without a slash at its end.
    address: str
    first_language: str
    # Language -> a sentence with the dates.
    windows: dict[str, str]
    # In place of the name, on cards to draw from.
    note: str = ""


def draw_cards(
    cards: Iterable[LoginCard], sheet: CardSheet, advance: Callable[[int], None]
) -> bytearray:
    """Return the PDF. `advance` is called with the number of each page's cards."""
    document = _CardDocument(sheet)
    for group, of_group in groupby(cards, key=lambda card: card.group):
        cards_of_group = list(of_group)
        starts = range(0, len(cards_of_group), CARDS_ON_PAGE)
        for number, start in enumerate(starts, start=1):
            document.begin_page(group, number, len(starts))
            page = cards_of_group[start : start + CARDS_ON_PAGE]
            for position, card in enumerate(page):
                document.draw(card, position)
            advance(len(page))
    return document.pdf.output()


class _CardDocument:
    def __init__(self, sheet: CardSheet) -> None:
        self.sheet = sheet
        # As people type it.
        self.host = sheet.address.removeprefix("https://").removeprefix("http://")
        self.pdf = pdf = FPDF(format="letter")
        pdf.set_auto_page_break(False)
        pdf.c_margin = 0
        pdf.set_title(sheet.title)
        pdf.set_lang(sheet.first_language)
        pdf.set_producer("Groundswell")
        pdf.viewer_preferences = ViewerPreferences(display_doc_title=True)
        for (family, style), file in FONTS.items():
            pdf.add_font(family, style, FONT_FOLDER / file)

    def begin_page(self, group: str, number: int, of: int) -> None:
        """Start a page with a heading and dashed lines to cut along."""
        pdf = self.pdf
        pdf.add_page()
        self._text(LEFT, HEAD, 2 * CARD_WIDTH - 20, group, size=11, style="B")
        if of > 1:
            self._font("sans", "", 8)
            pdf.set_xy(LEFT, HEAD)
            pdf.cell(2 * CARD_WIDTH, 5, f"{number} / {of}", align=Align.R)
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

    def draw(self, card: LoginCard, position: int) -> None:
        """Draw a card; `position` counts along the rows."""
        row, column = divmod(position, COLUMNS)
        x = LEFT + column * CARD_WIDTH + PADDING
        y = TOP + row * CARD_HEIGHT + PADDING
        width = INSIDE - QR_SIZE - 2
        first, second = self.sheet.first_language, card.language
        languages = [first, second] if second and second != first else [first]
        label = " · ".join(CARD_WORDS[language].code for language in languages)
        self._text(x, y, width, card.place, size=8, grey=MUTED)
        self._name(card, x, y + 4.5, width)
        self._text(x, y + 12.5, width, label, size=7, grey=MUTED)
        self._text(x, y + 16, width, card.code, size=17, family="mono", style="B")
        # Never cut, however long: half an address leads nowhere.
        self._text(x, y + 23.5, width, self.host, size=8.5, style="B", min_scale=0)
        self._qr_code(f"{self.sheet.address}/#{card.code}", x + INSIDE - QR_SIZE, y)
        y += QR_SIZE + 2
        for language in languages:
            words = CARD_WORDS[language]
            rtl = language in RIGHT_TO_LEFT
            for text in (words.open, words.type, self.sheet.windows[language]):
                self._text(x, y, INSIDE, text, size=7.4, rtl=rtl)
                y += LINE
            y += 1

    def _name(self, card: LoginCard, x: float, y: float, width: float) -> None:
        """Draw the name in one line, or in two if it is long."""
        if self.sheet.note:
            self._text(x, y, width, self.sheet.note, size=8, style="B")
            return
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
        rtl: bool = False,
        min_scale: float = MIN_SCALE,
    ) -> None:
        """Draw one line; shrink it, and in the end cut it, where it is too long."""
        # Shaping takes fifteen times as long, and Latin letters do not need it.
        needed = _needs_shaping(text)
        self.pdf.set_text_shaping(needed, direction="rtl" if rtl else None)
        self._font(family, style, size, grey)
        text_width = self.pdf.get_string_width(text)
        if text_width > width:
            self.pdf.set_font_size(size * max(0.97 * width / text_width, min_scale))
        if self.pdf.get_string_width(text) > width:
            while text and self.pdf.get_string_width(f"{text}…") > width:
                text = text[:-1].rstrip()
            text = f"{text}…"
        self.pdf.set_xy(x, y)
        self.pdf.cell(width, size * 0.45, text, align=Align.R if rtl else Align.L)
        self.pdf.set_text_shaping(False)

    def _font(self, family: str, style: str, size: float, grey: int = 0) -> None:
        self.pdf.set_font(family, style, size)
        self.pdf.set_text_color(grey)

    def _qr_code(self, link: str, x: float, y: float) -> None:
        """Draw a QR code, as one black bar for each run of modules."""
        code = qrcode.QRCode(error_correction=qrcode.ERROR_CORRECT_M, border=QUIET_ZONE)
        code.add_data(link)
        modules = code.get_matrix()
        module = QR_SIZE / len(modules)
        self.pdf.set_fill_color(0)
        for row, line in enumerate(modules):
            column = 0
            for dark, run in groupby(line):
                length = len(list(run))
                if dark:
                    # Slightly too high, so that no gap shows between two rows.
                    self.pdf.rect(
                        x + column * module,
                        y + row * module,
                        length * module,
                        module * 1.02,
                        style=RenderStyle.F,
                    )
                column += length


def _needs_shaping(text: str) -> bool:
    """Return whether letters are joined, run from right to left or carry marks."""
    return any(
        unicodedata.bidirectional(sign) in ("R", "AL", "NSM")
        for sign in text
        if sign > "\u02ff"
    )
