"""Messages with their places filled, in the respondents' templates."""

from __future__ import annotations

import re
from datetime import datetime

from django import template
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

register = template.Library()
PLACE = re.compile(r"(\{\w+\})")


@register.simple_tag
def fill(text: str, **values: object) -> SafeString:
    """`text` with its `{name}` places filled; everything is escaped."""
    found = {"{" + name + "}": value for name, value in values.items()}
    pieces = (found.get(piece, piece) for piece in PLACE.split(text))
    return format_html_join("", "{}", ((piece,) for piece in pieces))


@register.filter
def time_element(moment: datetime) -> SafeString:
    """The time in the server's zone; JavaScript turns it into the reader's."""
    local = timezone.localtime(moment)
    return format_html(
        '<time datetime="{}">{}</time>',
        local.isoformat(timespec="seconds"),
        local.strftime("%H:%M"),
    )
