"""Posters and letters with an open code: one A4 page for each code.

A poster is read from some metres away: the square, the address and the code are
large. A letter has one or two languages side by side above them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo

from accounts.place_settings import Brand
from survey.fieldwork.login_cards.card_text import window_in_words
from survey.fieldwork.login_cards.drawing import LINE_HEIGHT, Direction, Drawing, rgb
from survey.fieldwork.open_codes.paper_text import PAPER_WORDS
from survey.models import Role
from survey.taking.messages import direction, messages_in

# In millimetres.
WIDTH, MARGIN = 210.0, 18.0
INSIDE = WIDTH - 2 * MARGIN
GAP = 8.0
LETTER_QR = 58.0
# Where the foot begins, unless the texts above are longer, and its height.
FOOT, LOWEST_FOOT, FOOT_HEIGHT = 279.0, 281.0, 8.0
MUTED = 70


@dataclass(frozen=True, slots=True)
class CodePage:
    school: str
    # The district that runs the survey; empty: the state.
    owner: str
    role: str
    # Language -> title of the survey; the languages of the page, in their order.
    titles: dict[str, str]
    # As people type it, and with what the square leads to.
    code: str
    link: str
    # The address to type.
    address: str
    opens_at: datetime
    closes_at: datetime
    # Where the school's clocks are.
    zone: tzinfo
    limit: int | None
    brand: Brand = Brand()

    def invitation(self, language: str) -> list[str]:
        """Return who asks, who sees the answers, and that it is voluntary."""
        words, paper = messages_in(language, self.role), PAPER_WORDS[language]
        run_by = paper.run_by.format(name=self.owner)
        return [
            words["start_asks"].format(school=self.school),
            run_by if self.owner else paper.run_by_state,
            words["start_who_sees"],
            f"{words['start_voluntary']} {words['start_no_name']}",
        ]

    def dates(self, language: str) -> list[str]:
        """Return when people can begin, and what else they have to know."""
        paper = PAPER_WORDS[language]
        notes = [window_in_words(language, self.opens_at, self.closes_at, self.zone)]
        if self.limit:
            notes.append(paper.limited.format(n=self.limit))
        if self.role == Role.PARENT:
            notes.append(paper.children)
        return notes


def draw_pages(
    pages: Iterable[CodePage],
    *,
    title: str,
    languages: Sequence[str],
    is_poster: bool,
    advance: Callable[[], None],
) -> bytearray:
    """Return the PDF. `advance` is called after each page."""
    document = _Paper(paper="A4", title=title, language=languages[0])
    draw = document.poster if is_poster else document.letter
    for page in pages:
        document.pdf.add_page()
        draw(page)
        advance()
    return document.pdf.output()


class _Paper(Drawing):
    def poster(self, page: CodePage) -> None:
        many = len(page.titles) > 1
        y = self._centred(10, page.school, size=22, most_lines=1, grey=MUTED)
        for language, title in page.titles.items():
            y = self._centred(
                y + 3,
                title,
                language,
                size=24 if many else 40,
                most_lines=2,
                style="B",
                color=page.brand.accent,
            )
        if not many:
            [language] = page.titles
            asks = page.invitation(language)[0]
            y = self._centred(y + 2, asks, language, size=15, most_lines=2)
        # Below the longest heading, so that all posters of a state look alike.
        y, size = (max(y, 72.0), 78.0) if many else (max(y, 80.0), 100.0)
        self.qr_code(page.link, (WIDTH - size) / 2, y, size)
        y += size
        for language in page.titles:
            scan = PAPER_WORDS[language].scan
            y = self._centred(y + 1, scan, language, size=15, most_lines=1, style="B")
        y = self._typed(page, MARGIN, y + 3, INSIDE, sizes=(13, 26, 42), centred=True)
        ends = []
        for language, x, width in _columns(page):
            below = self._paragraphs(
                page.dates(language), language, x, y + 2, width, size=12 - many
            )
            small = page.invitation(language)[0 if many else 1 :]
            size = 10 - many
            ends.append(
                self.paragraph(
                    x,
                    below + 1.5,
                    width,
                    " ".join(small),
                    size=size,
                    # Above the foot, in smaller letters if there are many words.
                    most_lines=max(5, int((LOWEST_FOOT - below) / size / LINE_HEIGHT)),
                    direction=_direction(language),
                )
            )
        self._foot(page.brand, max(ends))

    def letter(self, page: CodePage) -> None:
        y = self.paragraph(MARGIN, 18, INSIDE, page.school, size=20, most_lines=2)
        if page.owner:
            y = self.paragraph(
                MARGIN, y, INSIDE, page.owner, size=12, most_lines=1, grey=MUTED
            )
        size = 11 if len(page.titles) > 1 else 13
        below = []
        for language, x, width in _columns(page):
            end = y + 10
            if page.role == Role.PARENT:
                greeting = [PAPER_WORDS[language].greeting]
                end = self._paragraphs(greeting, language, x, end, width, size=size)
            end = self.paragraph(
                x,
                end + 4,
                width,
                page.titles[language],
                size=size * 1.4,
                most_lines=3,
                style="B",
                direction=_direction(language),
            )
            texts = [*page.invitation(language), *page.dates(language)]
            below.append(
                self._paragraphs(texts, language, x, end + 1, width, size=size, gap=2.5)
            )
        # In the lower third, where the page is not folded.
        y = max(*below, 186.0) + 4
        self.pdf.set_draw_color(150)
        self.pdf.line(MARGIN, y, WIDTH - MARGIN, y)
        self.qr_code(page.link, MARGIN - 4, y + 6, LETTER_QR)
        x, width = MARGIN + LETTER_QR + 2, INSIDE - LETTER_QR - 2
        y += 12
        for language in page.titles:
            scan = PAPER_WORDS[language].scan
            direction = _direction(language)
            y = self.paragraph(
                x, y, width, scan, size=11, most_lines=2, style="B", direction=direction
            )
        self._typed(page, x, y + 3, width, sizes=(11, 18, 30))
        self._foot(page.brand, 0)

    def _foot(self, brand: Brand, above: float) -> None:
        """Draw who asks, and whom to ask, below a line; `above` is the end of texts."""
        if not (brand.name or brand.logo or brand.contact):
            return
        y = min(max(FOOT, above + 1), LOWEST_FOOT)
        self.pdf.set_draw_color(*rgb(brand.accent) if brand.accent else (150,))
        self.pdf.line(MARGIN, y, WIDTH - MARGIN, y)
        half = INSIDE / 2
        self.brand(brand, MARGIN, y + 2, half, FOOT_HEIGHT)
        self.paragraph(
            MARGIN + half + 4,
            y + 2,
            half - 4,
            brand.contact,
            size=9,
            most_lines=2,
        )

    def _paragraphs(
        self,
        texts: Sequence[str],
        language: str,
        x: float,
        y: float,
        width: float,
        *,
        size: float,
        gap: float = 0,
    ) -> float:
        for text in texts:
            y = self.paragraph(
                x,
                y + gap,
                width,
                text,
                size=size,
                most_lines=9,
                direction=_direction(language),
            )
        return y

    def _typed(
        self,
        page: CodePage,
        x: float,
        y: float,
        width: float,
        *,
        sizes: tuple[float, float, float],
        centred: bool = False,
    ) -> float:
        """Draw the address and the code for people who type them; return y below."""
        small, address, code = sizes
        for language in page.titles:
            y = self.paragraph(
                x,
                y,
                width,
                PAPER_WORDS[language].type,
                size=small,
                most_lines=1,
                direction=_direction(language),
                centred=centred,
            )
        # Never cut, however long: half an address leads nowhere.
        self.text(
            x,
            y + 1,
            width,
            page.address,
            size=address,
            style="B",
            centred=centred,
            min_scale=0,
        )
        y += 1 + address * 0.5
        self.text(
            x, y, width, page.code, size=code, family="mono", style="B", centred=centred
        )
        return y + code * 0.5

    def _centred(
        self,
        y: float,
        text: str,
        language: str = "",
        *,
        size: float,
        most_lines: int,
        style: str = "",
        grey: int = 0,
        color: str = "",
    ) -> float:
        return self.paragraph(
            MARGIN,
            y,
            INSIDE,
            text,
            size=size,
            most_lines=most_lines,
            style=style,
            grey=grey,
            color=color,
            direction=_direction(language) if language else None,
            centred=True,
        )


def _columns(page: CodePage) -> Iterator[tuple[str, float, float]]:
    """Yield each language with x and width of its column, side by side."""
    width = (INSIDE - GAP * (len(page.titles) - 1)) / len(page.titles)
    for number, language in enumerate(page.titles):
        yield language, MARGIN + number * (width + GAP), width


def _direction(language: str) -> Direction:
    return "rtl" if direction(language) == "rtl" else "ltr"
