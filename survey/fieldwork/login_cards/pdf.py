"""Login cards as a PDF: eight on a page to cut apart, each class on its own pages.

Letter paper; everything fits on A4 as well. A page of eight cards takes some 15 kB.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import groupby

from fpdf.enums import Align

from accounts.place_settings import Brand
from survey.fieldwork.login_cards.card_text import CARD_WORDS
from survey.fieldwork.login_cards.drawing import Direction, Drawing
from survey.taking import messages

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
BRAND = 3.2
# In points.
TITLE = 6.5
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
    # No font has the letters of the name: the ID stands in its place.
    is_named_by_id: bool = False


@dataclass(frozen=True, slots=True)
class CardSheet:
    """The parts that are the same on all cards."""

    title: str
    # The survey's address, without a slash at its end.
    address: str
    first_language: str
    # Language of the survey -> its title, if there is a font for it, and a sentence
    # with the dates.
    titles: dict[str, str]
    windows: dict[str, str]
    # In place of the name, on cards to draw from.
    note: str = ""
    brand: Brand = Brand()


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


class _CardDocument(Drawing):
    def __init__(self, sheet: CardSheet) -> None:
        super().__init__(
            paper="letter", title=sheet.title, language=sheet.first_language
        )
        self.sheet = sheet
        # As people type it.
        self.host = sheet.address.removeprefix("https://").removeprefix("http://")

    def begin_page(self, group: str, number: int, of: int) -> None:
        """Start a page with a heading and dashed lines to cut along."""
        pdf = self.pdf
        pdf.add_page()
        self.text(LEFT, HEAD, 2 * CARD_WIDTH - 20, group, size=11, style="B")
        if of > 1:
            self.font("sans", "", 8)
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
        # In the margin: the card itself is full.
        above, half = y - BRAND - 0.4, INSIDE / 2
        self.brand(self.sheet.brand, x, above, half - 2, BRAND)
        titles = dict.fromkeys(self.sheet.titles[language] for language in languages)
        title = " · ".join(filter(None, titles))
        self.text(x + half, above + 0.5, half, title, size=TITLE, grey=MUTED)
        self.text(x, y, width, card.place, size=8, grey=MUTED)
        self._name(card, x, y + 4.5, width)
        self.text(x, y + 12.5, width, label, size=7, grey=MUTED)
        self.text(x, y + 16, width, card.code, size=17, family="mono", style="B")
        # Never cut, however long: half an address leads nowhere.
        self.text(x, y + 23.5, width, self.host, size=8.5, style="B", min_scale=0)
        link = f"{self.sheet.address}/#{card.code}"
        self.qr_code(link, x + INSIDE - QR_SIZE, y, QR_SIZE)
        y += QR_SIZE + 2
        for language in languages:
            words = CARD_WORDS[language]
            is_rtl = messages.direction(language) == "rtl"
            direction: Direction = "rtl" if is_rtl else None
            for text in (words.open, words.type, self.sheet.windows[language]):
                self.text(x, y, INSIDE, text, size=7.4, direction=direction)
                y += LINE
            y += 1

    def _name(self, card: LoginCard, x: float, y: float, width: float) -> None:
        """Draw the name in one line, or in two if it is long."""
        if self.sheet.note:
            self.text(x, y, width, self.sheet.note, size=8, style="B")
            return
        whole = f"{card.given_name} {card.family_name}".strip()
        self.add_fallbacks(whole)
        self.font("sans", "B", 12)
        if self.pdf.get_string_width(whole) * 0.75 <= width:
            self.text(x, y, width, whole, size=12, style="B")
            return
        self.text(x, y - 0.5, width, card.given_name, size=9.5, style="B")
        self.text(x, y + 3.3, width, card.family_name, size=9.5, style="B")
