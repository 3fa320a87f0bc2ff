"""The small set of components that the console's pages are made of.

Django loads the tags of every app wherever it renders anything, so also for
respondents: the console itself is imported by whoever uses them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import template
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString

if TYPE_CHECKING:
    from accounts.console.listing import Listing
    from accounts.console.navigation import Entry

register = template.Library()


@register.simple_tag(takes_context=True)
def navigation(context: dict[str, Any]) -> list[tuple[Entry, str]]:
    """Entries, and what `aria-current` says of each."""
    from accounts.console.navigation import entries_for

    request: HttpRequest = context["request"]
    entries = entries_for(request.permissions)  # type: ignore[attr-defined]
    return [(entry, _current(entry.address, request.path)) for entry in entries]


def _current(address: str, path: str) -> str:
    if path == address:
        return "page"
    return "true" if path.startswith(address) else ""


@register.simple_tag
def column(listing: Listing, name: str, title: str, kind: str = "") -> SafeString:
    """A header that sorts its column. `kind` is "number" or nothing."""
    if name != listing.sort:
        order = SafeString("")
    else:
        order = format_html(' aria-sort="{}"', listing.order)
    return format_html(
        '<th scope="col"{}{}><a class="sort" href="{}" hx-get="{}">{}</a></th>',
        format_html(' class="{}"', kind) if kind else "",
        order,
        listing.address_sorted_by(name),
        listing.address_sorted_by(name),
        title,
    )


@register.simple_tag
def address(listing: Listing, **changed: object) -> str:
    return listing.address(**changed)


@register.filter
def share(part: int | None, whole: int | None) -> str:
    """A rate in words: "63 %", and a dash where there is nothing to divide by."""
    if not whole or part is None:
        return "–"
    # Downwards: 49.6 % of a school is not yet half of it.
    return f"{100 * part // whole} %"


@register.filter
def grouped(number: int) -> str:
    """ "12,345"."""
    return f"{number:,}"
