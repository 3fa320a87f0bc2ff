"""Text and QR codes on PDF pages, for login cards, posters and letters.

Vectors and text only, so that pages are small and all printed text can be searched.
"""

from __future__ import annotations

import logging
import unicodedata
from io import BytesIO
from itertools import groupby
from typing import Literal

import qrcode
from django.conf import settings
from fpdf import FPDF
from fpdf.enums import Align, RenderStyle
from fpdf.prefs import ViewerPreferences

from accounts.place_settings import Brand
from survey.fieldwork.login_cards.fonts import FONT_FOLDER, fallback_font

# Their warnings quote the characters of a name that a font lacks.
logging.getLogger("fpdf").setLevel(logging.ERROR)
logging.getLogger("fontTools").setLevel(logging.ERROR)

FONTS = {
    ("sans", ""): "DejaVuSans.ttf",
    ("sans", "B"): "DejaVuSans-Bold.ttf",
    ("mono", "B"): "DejaVuSansMono-Bold.ttf",
}
# Of a line; None: as its first letters.
Direction = Literal["ltr", "rtl"] | None
# A text that is too long is shrunk to this part of its size, then cut.
MIN_SCALE = 0.65
# In points; longer texts are cut.
SMALLEST_TEXT = 7.0
# In millimetres for each point.
LINE_HEIGHT = 0.47
# In modules: the empty border that the standard requires around a QR code.
QUIET_ZONE = 4


class Drawing:
    """A PDF document, and what its pages are drawn with; lengths in millimetres."""

    def __init__(self, *, paper: str, title: str, language: str) -> None:
        self.pdf = pdf = FPDF(format=paper)
        pdf.set_auto_page_break(False)
        pdf.c_margin = 0
        pdf.set_title(title)
        pdf.set_lang(language)
        pdf.set_producer(f"Groundswell {settings.VERSION}")
        pdf.viewer_preferences = ViewerPreferences(display_doc_title=True)
        for (family, style), file in FONTS.items():
            pdf.add_font(family, style, FONT_FOLDER / file)
        self.fallbacks: list[str] = []

    def add_fallbacks(self, text: str) -> None:
        """Add the fonts of the system for letters of a text that these fonts lack."""
        for character in text:
            # Nearly all letters are Latin.
            path = fallback_font(character) if character > "\u02ff" else None
            if path is not None and path.stem not in self.fallbacks:
                self.fallbacks.append(path.stem)
                self.pdf.add_font(path.stem, "", path)
                self.pdf.set_fallback_fonts(self.fallbacks, exact_match=False)

    def text(
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
        color: str = "",
        direction: Direction = None,
        centred: bool = False,
        min_scale: float = MIN_SCALE,
    ) -> None:
        """Draw one line; shrink it, and in the end cut it, where it is too long."""
        self.add_fallbacks(text)
        # Shaping takes fifteen times as long, and Latin letters do not need it.
        needed = _needs_shaping(text)
        self.pdf.set_text_shaping(needed, direction=direction)
        self.font(family, style, size, grey, color)
        text_width = self.pdf.get_string_width(text)
        if text_width > width:
            self.pdf.set_font_size(size * max(0.97 * width / text_width, min_scale))
        if self.pdf.get_string_width(text) > width:
            while text and self.pdf.get_string_width(f"{text}…") > width:
                text = text[:-1].rstrip()
            text = f"{text}…"
        self.pdf.set_xy(x, y)
        align = Align.C if centred else Align.R if direction == "rtl" else Align.L
        self.pdf.cell(width, size * 0.45, text, align=align)
        self.pdf.set_text_shaping(False)

    def paragraph(
        self,
        x: float,
        y: float,
        width: float,
        text: str,
        *,
        size: float,
        most_lines: int,
        style: str = "",
        grey: int = 0,
        color: str = "",
        direction: Direction = None,
        centred: bool = False,
    ) -> float:
        """Draw lines of words, smaller if there are too many; return y below them."""
        lines = self._lines(text, width, size, style, direction)
        while len(lines) > most_lines and size > SMALLEST_TEXT:
            size *= 0.95
            lines = self._lines(text, width, size, style, direction)
        # `text` cuts what does not fit into the last line.
        lines[most_lines - 1 :] = [" ".join(lines[most_lines - 1 :])]
        for line in filter(None, lines):
            self.text(
                x,
                y,
                width,
                line,
                size=size,
                style=style,
                grey=grey,
                color=color,
                direction=direction,
                centred=centred,
            )
            y += size * LINE_HEIGHT
        return y

    def _lines(
        self, text: str, width: float, size: float, style: str, direction: Direction
    ) -> list[str]:
        self.add_fallbacks(text)
        # In the order in which they are read: each line is turned by itself.
        self.pdf.set_text_shaping(_needs_shaping(text), direction=direction)
        self.font("sans", style, size)
        lines = [""]
        for word in text.split():
            longer = f"{lines[-1]} {word}".strip()
            if lines[-1] and self.pdf.get_string_width(longer) > width:
                lines.append(word)
            else:
                lines[-1] = longer
        self.pdf.set_text_shaping(False)
        return lines

    def font(
        self, family: str, style: str, size: float, grey: int = 0, color: str = ""
    ) -> None:
        self.pdf.set_font(family, style, size)
        self.pdf.set_text_color(*rgb(color) if color else (grey,))

    def brand(
        self, brand: Brand, x: float, y: float, width: float, size: float
    ) -> None:
        """Draw a logo and a name in one line, `size` millimetres high."""
        if brand.logo:
            picture = self.pdf.image(BytesIO(brand.logo), x=x, y=y, h=size)
            taken = picture.rendered_width + size / 4
            x, width = x + taken, width - taken
        if brand.name and width > 0:
            # Points are 0.35 mm; letters fill two thirds of the line.
            points = size / 0.35 * 0.66
            y += (size - points * 0.45) / 2
            self.text(x, y, width, brand.name, size=points, color=brand.accent)

    def qr_code(self, link: str, x: float, y: float, size: float) -> None:
        """Draw a QR code, as one black bar for each run of modules."""
        code = qrcode.QRCode(error_correction=qrcode.ERROR_CORRECT_M, border=QUIET_ZONE)
        code.add_data(link)
        modules = code.get_matrix()
        module = size / len(modules)
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


def rgb(color: str) -> tuple[int, int, int]:
    """Return the parts of a color such as "#0a6375"."""
    red, green, blue = bytes.fromhex(color.removeprefix("#"))
    return red, green, blue


def _needs_shaping(text: str) -> bool:
    """Return whether letters are joined, run from right to left or carry marks."""
    return any(
        unicodedata.bidirectional(sign) in ("R", "AL", "NSM")
        or unicodedata.category(sign) == "Mc"
        for sign in text
        if sign > "\u02ff"
    )
