"""All shades of an accent color have enough contrast, whatever color it is."""

from __future__ import annotations

import colorsys
import re

import pytest
from django.conf import settings

from accounts.accent_color import (
    DARK_GROUND,
    DARK_SURFACE,
    GROUND,
    SURFACE,
    accent_sheet,
    contrast,
    is_visible,
    nearest_visible,
    text_on,
)

# The text of static/css/tokens.css, light and dark.
INK, DARK_INK = "#15222a", "#e8eef1"
COLORS = [
    "#" + "".join(f"{round(255 * part):02x}" for part in colorsys.hls_to_rgb(h, li, s))
    for h in (0, 0.08, 0.16, 0.33, 0.5, 0.66, 0.83)
    for li in (0, 0.1, 0.25, 0.4, 0.5, 0.6, 0.8, 1)
    for s in (0, 0.5, 1)
]


def shades_of(color: str) -> tuple[dict[str, str], dict[str, str]]:
    light, dark = accent_sheet(color).split("@media")
    pattern = r"--([a-z-]+): (#[0-9a-f]{6});"
    return dict(re.findall(pattern, light)), dict(re.findall(pattern, dark))


def test_shades_are_computed_for_the_grounds_of_the_pages():
    tokens = (settings.BASE_DIR / "static" / "css" / "tokens.css").read_text()
    light, dark, *_ = tokens.replace("#fff;", "#ffffff;").split("@media")
    for sheet, ground, surface, ink in (
        (light, GROUND, SURFACE, INK),
        (dark, DARK_GROUND, DARK_SURFACE, DARK_INK),
    ):
        shades = dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6});", sheet))
        of_pages = (shades["ground"], shades["surface"], shades["ink"])
        assert of_pages == (ground, surface, ink)


def test_contrast_is_that_of_wcag():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#ffffff", "#767676") == pytest.approx(4.54, abs=0.01)
    assert contrast("#777777", "#ffffff") < 4.5


@pytest.mark.parametrize("chosen", COLORS)
def test_each_shade_can_be_seen_and_read(chosen):
    assert contrast(chosen, text_on(chosen)) >= 4.5
    color = nearest_visible(chosen)
    assert is_visible(color)
    assert (color == chosen) == is_visible(chosen)
    light, dark = shades_of(color)
    assert light["accent"] == color and contrast(color, GROUND) >= 3
    for shades, grounds, ink in (
        (light, (GROUND, SURFACE, light["tint"]), INK),
        (dark, (DARK_GROUND, DARK_SURFACE, dark["tint"]), DARK_INK),
    ):
        for ground in grounds:
            assert contrast(shades["link"], ground) >= 4.5
            assert contrast(ink, ground) >= 4.5
        for fill in ("accent", "accent-strong"):
            assert contrast(shades["on-accent"], shades[fill]) >= 4.5
    assert contrast(dark["accent"], DARK_GROUND) >= 3


def test_a_color_that_is_too_light_is_darkened_no_more_than_needed():
    nearest = nearest_visible("#f5c400")
    assert nearest == "#ae8b00"
    assert 3 <= contrast(nearest, GROUND) < 3.1
