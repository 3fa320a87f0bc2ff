"""Tags that fill messages with values, for the respondents' templates."""

from __future__ import annotations

import re
from datetime import datetime

from django import template
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

register = template.Library()
PLACEHOLDER = re.compile(r"(\{\w+\})")


@register.simple_tag
def fill(text: str, **values: object) -> SafeString:
    """Replace each `{name}` in the text with its value; escape everything."""
    pieces = (
        values.get(piece[1:-1], piece) if PLACEHOLDER.fullmatch(piece) else piece
        for piece in PLACEHOLDER.split(text)
    )
    return format_html_join("", "{}", ((piece,) for piece in pieces))


@register.filter
def time_element(moment: datetime) -> SafeString:
    """Return a <time> in the server's zone; JavaScript converts it to the reader's."""
    local = timezone.localtime(moment)
    return format_html(
        '<time datetime="{}">{}</time>',
        local.isoformat(timespec="seconds"),
        local.strftime("%H:%M"),
    )
