"""The accent color of the state or a district, and the style sheet made of it.

All shades are computed from the one color that a person chooses, so that text and
controls have the contrast of WCAG 2.1 AA on light and on dark pages.
"""

from __future__ import annotations

import colorsys
import re
from functools import lru_cache

from django.http import HttpResponse

HEX = re.compile(r"#[0-9a-f]{6}")
# Of static/css/tokens.css: the page, its cards, and both in the dark.
GROUND, SURFACE = "#f6f7f9", "#ffffff"
DARK_GROUND, DARK_SURFACE = "#0e161a", "#172127"
WHITE, BLACK = "#ffffff", "#000000"
# Of text, and of what is no text, such as the edge of a button.
TEXT_CONTRAST, SHAPE_CONTRAST = 4.5, 3.0
# Above what is needed, for links on tinted ground.
DARK_CONTRAST = 6.5
STEPS = 200
SHEET = """:root {{
  --accent: {accent};
  --accent-strong: {strong};
  --on-accent: {on_accent};
  --link: {link};
  --tint: {tint};
}}
@media screen and (prefers-color-scheme: dark) {{
  :root {{
    --accent: {dark};
    --accent-strong: {dark_strong};
    --on-accent: {black};
    --link: {dark};
    --tint: {dark_tint};
  }}
}}
"""


def contrast(color: str, ground: str) -> float:
    """Return the contrast ratio of WCAG 2.1, from 1 to 21."""
    darker, lighter = sorted((_luminance(color), _luminance(ground)))
    return (lighter + 0.05) / (darker + 0.05)


def text_on(color: str) -> str:
    """Return white or black, as can be read on a color; one of the two always can."""
    return WHITE if contrast(color, WHITE) >= TEXT_CONTRAST else BLACK


def is_visible(color: str) -> bool:
    """Return whether controls in this color have enough contrast on the page."""
    return contrast(color, GROUND) >= SHAPE_CONTRAST


def nearest_visible(color: str) -> str:
    """Return the color, darkened until it has enough contrast on the page."""
    return _darkened(color, SHAPE_CONTRAST)


@lru_cache(maxsize=256)
def accent_sheet(color: str) -> str:
    """Return the style sheet of a color such as "#0a6375"."""
    on_accent = text_on(color)
    dark = next(
        shade
        for part in range(STEPS + 1)
        if contrast(shade := _mixed(color, WHITE, part / STEPS), DARK_SURFACE)
        >= DARK_CONTRAST
    )
    return SHEET.format(
        accent=color,
        # Away from the text on it, which stays readable.
        strong=_mixed(color, BLACK if on_accent == WHITE else WHITE, 0.2),
        on_accent=on_accent,
        # Also on the tint, which is darker than the page for few colors.
        link=_darkened(color, TEXT_CONTRAST * 1.1),
        tint=_mixed(SURFACE, color, 0.08),
        dark=dark,
        dark_strong=_mixed(dark, WHITE, 0.25),
        black=BLACK,
        dark_tint=_mixed(DARK_SURFACE, dark, 0.15),
    )


def send_accent(digits: str) -> HttpResponse:
    """Answer with the style sheet of a color, which every cache may keep. 0 SQL."""
    response = HttpResponse(accent_sheet(f"#{digits}"), content_type="text/css")
    response["Cache-Control"] = "public, max-age=31536000, immutable"
    response["X-Content-Type-Options"] = "nosniff"
    return response


def _darkened(color: str, least: float) -> str:
    """Return the lightest shade of a color with at least this contrast to the page."""
    red, green, blue = _channels(color)
    hue, lightness, saturation = colorsys.rgb_to_hls(red, green, blue)
    for part in range(STEPS + 1):
        shade = _hex(
            colorsys.hls_to_rgb(hue, lightness * (1 - part / STEPS), saturation)
        )
        if contrast(shade, GROUND) >= least:
            return shade if part else color
    return BLACK


def _luminance(color: str) -> float:
    red, green, blue = (
        value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4
        for value in _channels(color)
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _mixed(color: str, added: str, part: float) -> str:
    pairs = zip(_channels(color), _channels(added), strict=True)
    return _hex(tuple(a + (b - a) * part for a, b in pairs))


def _channels(color: str) -> tuple[float, ...]:
    return tuple(int(color[at : at + 2], 16) / 255 for at in (1, 3, 5))


def _hex(channels: tuple[float, ...]) -> str:
    return "#" + "".join(f"{round(value * 255):02x}" for value in channels)
