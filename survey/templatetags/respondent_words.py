"""Tags that fill messages with values, for the respondents' templates."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from html import escape

from django import template
from django.template import Context
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from survey.taking.review import ReviewedItem, ReviewedPage

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


# Strings and not a template, which took twenty times as long: most of the
# review's time.
UNOPENED = (
    '<section class="unopened" aria-labelledby="page-{number}-title">'
    '<h3 id="page-{number}-title"{heading_in}>'
    '<a href="{link}">{title}</a></h3>'
    '<p class="caution">{text}</p></section>'
)


def question_pattern(addresses: Mapping[str, str] | None) -> str:
    """Return the address of a question, with places {n} and {item}."""
    known = addresses or {"take": "/take/"}
    return known.get("question") or known["take"] + "#page-{n}/{item}"


@register.simple_tag(takes_context=True)
def question_link(context: Context, page: int, item: str) -> str:
    pattern = question_pattern(context.get("addresses"))
    return pattern.replace("{n}", str(page)).replace("{item}", item)


@register.simple_tag(takes_context=True)
def reviewed_pages(
    context: Context,
    pages: Sequence[ReviewedPage],
    words: Mapping[str, str],
    attributes: str,
) -> SafeString:
    """Return each page with its answers, or with links to what is missing.

    `attributes` say which language titles, labels and answers are in.
    """
    keys = ("page_n", "page_unseen", "page_unseen_one", "page_unpassed")
    texts = {key: escape(words[key]) for key in (*keys, "open_page", "answer_question")}
    pattern = escape(question_pattern(context.get("addresses")))
    fresh = [item for page in pages for item in page.items if not item.line]
    names = [item.name for item in fresh]
    escaped = dict(zip(names, escape_all(fresh), strict=True))
    return mark_safe(  # noqa: S308
        "".join(
            [
                _reviewed_page(page, escaped, texts, pattern, attributes)
                for page in pages
            ]
        )
    )


def _reviewed_page(
    page: ReviewedPage,
    escaped: Mapping[str, tuple[str, str, str]],
    texts: Mapping[str, str],
    pattern: str,
    attributes: str,
) -> str:
    """Return a page. `escaped` has the texts of items that have no line yet."""
    n, count = page.number, len(page.names)
    pattern = pattern.replace("{n}", str(n))
    title = escape(page.title) or texts["page_n"].replace("{n}", str(page.place))
    heading_in = attributes if page.title else ""
    if page.is_unopened:
        text = texts["page_unseen_one" if count == 1 else "page_unseen"]
        return UNOPENED.format(
            number=n,
            heading_in=heading_in,
            link=pattern.replace("{item}", escape(page.names[0])),
            title=title,
            text=text.replace("{n}", str(count)),
        )
    body = ""
    if page.items:
        lines = []
        for item in page.items:
            if item.line:
                lines.append(item.line)
                continue
            name, label, answer = escaped[item.name]
            if answer:
                answer = f"<bdi{attributes}>{answer}</bdi>"
            else:
                link = pattern.replace("{item}", name)
                answer = (
                    f'<a href="{link}" aria-describedby="question-{name}">'
                    f"{texts['answer_question']}</a>"
                )
            lines.append(
                f'<div><dt id="question-{name}"{attributes}>{label}</dt>'
                f"<dd>{answer}</dd></div>"
            )
            if item.answer:
                item.line = lines[-1]
        unpassed = f'<p class="caution">{texts["page_unpassed"]}</p>'
        caution = "" if page.is_stored else unpassed
        first = pattern.replace("{item}", escape(page.names[0]))
        body = (
            f"{caution}<dl>{''.join(lines)}</dl>"
            f'<p><a href="{first}" aria-describedby="page-{n}-title">'
            f"{texts['open_page']}</a></p>"
        )
    return (
        f'<section aria-labelledby="page-{n}-title">'
        f'<h3 id="page-{n}-title"{heading_in}>{title}</h3>{body}</section>'
    )


def escape_all(items: Iterable[ReviewedItem]) -> Iterator[tuple[str, str, str]]:
    """Escape all texts in one call, in a third of the time of many."""
    texts = [text for item in items for text in (item.name, item.label, item.answer)]
    escaped = escape("\0".join(texts)).split("\0")
    # No text has a NUL: neither PostgreSQL nor a workbook can store one. One by one,
    # should there be one all the same: it would move all texts behind it.
    if len(escaped) != len(texts):
        escaped = [escape(text) for text in texts]
    pieces = iter(escaped)
    return zip(pieces, pieces, pieces, strict=True)


def saved_text(
    words: Mapping[str, str], *, pages: int, stored: int, moment: datetime
) -> SafeString:
    """Say when a person finished, and how many of the pages are stored."""
    key = "all_saved_at_one" if pages == 1 else "all_saved_at"
    if stored < pages:
        key = "some_saved_at"
    return fill(words[key], n=stored, total=pages, time=time_element(moment))


def time_element(moment: datetime) -> SafeString:
    """Return a <time> in the server's zone; JavaScript converts it to the reader's."""
    local = timezone.localtime(moment)
    return format_html(
        '<time datetime="{}">{}</time>',
        local.isoformat(timespec="seconds"),
        local.strftime("%H:%M"),
    )
