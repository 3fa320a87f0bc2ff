"""The page of components is accessible, and looks as it did when it was photographed.

After a change that is meant, `PHOTOGRAPH=1 provisioning/test` with this file takes
the photographs again: look at them before they are committed.
"""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest
from django.conf import settings
from django.test import Client
from PIL import Image, ImageChops

from accounts.models import User
from accounts.staff_cookies import PREFIX
from accounts.tests.logging_in import log_in
from survey.tests.browser.accessibility import violations

pytestmark = pytest.mark.django_db(transaction=True)

NAME = PREFIX + settings.SESSION_COOKIE_NAME
PHOTOGRAPHS = Path(__file__).parent / "photographs"
# A pixel differs if a channel does by more than this, of 255: smoothing of letters
# differs between machines.
MAX_SHADE = 64
# The share of pixels that may differ: a hundredth of a percent is a small word.
MAX_SHARE = 0.0005


def share_of_different_pixels(before: Image.Image, now: Image.Image) -> float:
    if before.size != now.size:
        return 1.0
    difference = ImageChops.difference(before, now)
    channels = (
        channel.point(lambda n: 255 * (n > MAX_SHADE)) for channel in difference.split()
    )
    changed = next(channels)
    for channel in channels:
        changed = ImageChops.lighter(changed, channel)
    return changed.histogram()[255] / (now.width * now.height)


@pytest.fixture
def components(device, server, transactional_db):
    """Open the page for an engineer."""
    engineer = User.objects.create_superuser("eng@example.org", "long-quiet-river")

    def opened(query: str, scheme: str):
        context = device(viewport={"width": 1000, "height": 800}, color_scheme=scheme)
        value = log_in(Client(), engineer).cookies[NAME].value
        context.add_cookies([{"name": NAME, "value": value, "url": server.url}])
        page = context.new_page()
        page.goto(f"/engineers/components/{query}")
        page.evaluate("document.activeElement.blur()")
        page.evaluate("document.fonts.ready")
        return page

    return opened


@pytest.mark.parametrize(
    ("name", "query", "scheme"),
    [
        ("light", "", "light"),
        ("dark", "", "dark"),
        ("right-to-left", "?direction=rtl", "light"),
    ],
)
def test_components_look_as_photographed(components, name, query, scheme):
    page = components(query, scheme)
    assert violations(page) == []
    file = PHOTOGRAPHS / f"{name}.png"
    taken = page.locator(".components").screenshot(animations="disabled")
    now = Image.open(io.BytesIO(taken)).convert("RGB")
    if os.environ.get("PHOTOGRAPH"):
        PHOTOGRAPHS.mkdir(exist_ok=True)
        now.quantize(128).save(file, optimize=True)
    share = share_of_different_pixels(Image.open(file).convert("RGB"), now)
    assert share <= MAX_SHARE, f"{share:.2%} of the pixels of {name} differ"


def test_a_missing_button_is_noticed(components):
    page = components("", "light")
    before = Image.open(PHOTOGRAPHS / "light.png").convert("RGB")
    page.locator(".button.primary").first.evaluate("button => button.remove()")
    taken = page.locator(".components").screenshot(animations="disabled")
    now = Image.open(io.BytesIO(taken)).convert("RGB")
    assert share_of_different_pixels(before, now) > MAX_SHARE
