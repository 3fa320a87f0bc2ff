"""Tags that fill messages with values, for the respondents' templates."""

from __future__ import annotations

import re
from datetime import datetime

from django import template
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from survey.taking.review import ReviewedPage

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


ANSWERED = '<div><dt id="question-{}"{}>{}</dt><dd><bdi{}>{}</bdi></dd></div>'
BLANK = (
    '<div><dt id="question-{0}"{1}>{2}</dt>'
    '<dd><a href="{3}#page-{4}/{0}" aria-describedby="question-{0}">{5}</a></dd></div>'
)


@register.simple_tag
def reviewed_items(
    page: ReviewedPage, take: str, blank: str, attributes: str
) -> SafeString:
    """Return the questions of a page with their answers, or links to the blank ones.

    Not a template, which took four times as long: most of the review's time.
    `attributes` say which language labels and answers are in.
    """
    lines = (
        format_html(
            ANSWERED, item.name, attributes, item.label, attributes, item.answer
        )
        if item.answer
        else format_html(
            BLANK, item.name, attributes, item.label, take, page.number, blank
        )
        for item in page.items
    )
    return format_html_join("", "{}", ((line,) for line in lines))


@register.filter
def time_element(moment: datetime) -> SafeString:
    """Return a <time> in the server's zone; JavaScript converts it to the reader's."""
    local = timezone.localtime(moment)
    return format_html(
        '<time datetime="{}">{}</time>',
        local.isoformat(timespec="seconds"),
        local.strftime("%H:%M"),
    )
