"""Template tags and filters of the console.

Django loads the tags of every app in every process, also in the respondents'
pool, so modules of the console are imported inside the tags.
"""

from __future__ import annotations

import re
from datetime import date, datetime
from functools import cache
from typing import TYPE_CHECKING

from django import template
from django.conf import settings
from django.template import TemplateDoesNotExist
from django.template.loader import select_template
from django.template.loader_tags import BLOCK_CONTEXT_KEY
from django.utils.formats import date_format
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import capfirst
from django.utils.timezone import localdate, localtime
from django.utils.translation import get_language
from django.utils.translation import gettext as _

from accounts.time_zones import differs, zone_label, zone_of

if TYPE_CHECKING:
    from django.forms import BoundField

    from accounts.console.listing import BaseListing
    from accounts.console.navigation import Section
    from accounts.http import StaffRequest
    from accounts.models import District, User

register = template.Library()


@register.filter
def language_name(code: str) -> str:
    """Return the name of a language in the reader's language."""
    from babel import Locale

    reader = Locale.parse(get_language() or "en", sep="-")
    return str(reader.languages.get(code.replace("-", "_"), code))


@register.filter
def own_language_name(code: str) -> str:
    """Return the name of a language in this language, where it is known.

    For choices: people look for the name that they know.
    """
    from babel import Locale, UnknownLocaleError

    try:
        name = Locale.parse(code, sep="-").get_display_name()
    except (UnknownLocaleError, ValueError):
        name = None
    return capfirst(name or language_name(code))


@register.filter
def actor(by: User | str) -> str:
    """Return the address of a user, or the command that ran."""
    from accounts.console import audit_sentences

    return audit_sentences.actor(by)


@register.simple_tag(takes_context=True)
def navigation(context: template.Context) -> list[tuple[Section, str]]:
    """Return the sections of the side bar, each with its value of `aria-current`."""
    from accounts.console.navigation import sections_for

    request: StaffRequest = context["request"]
    return [
        (section, section.current(request.path))
        for section in sections_for(
            request.permissions, is_engineer=request.user.is_superuser
        )
    ]


@cache
def _icon(name: str) -> SafeString:
    file = settings.BASE_DIR / "static" / "vendor" / "lucide" / f"{name}.svg"
    shapes = re.sub(
        r"^.*?<svg[^>]*>|</svg>|\n *", "", file.read_text(), flags=re.DOTALL
    )
    return SafeString(
        f'<svg class="icon" viewBox="0 0 24 24" aria-hidden="true">{shapes}</svg>'
    )


@register.simple_tag
def icon(name: str) -> SafeString:
    """Render a decorative icon of static/vendor/lucide into the page."""
    return _icon(name)


@register.simple_tag(takes_context=True)
def help_page(context: template.Context) -> object:
    """Return the template that explains this page, or the console as a whole.

    None for pages before the login and for errors.
    """
    request = context.get("request")
    match = getattr(request, "resolver_match", None)
    if request is None or match is None:
        return None
    page_template = f"console/help/{match.url_name}.html"
    names = [page_template, "console/_help_default.html"]
    if not request.user.is_authenticated:
        names = [page_template]
    try:
        return select_template(names)
    except TemplateDoesNotExist:
        return None


@register.simple_tag(takes_context=True)
def help_address(context: template.Context) -> str:
    """Return the address of the help page that explains this screen."""
    from accounts.console.help_site import help_of_screen

    return help_of_screen(context["request"].resolver_match.url_name or "")


@register.simple_tag
def column(listing: BaseListing, name: str, title: str, kind: str = "") -> SafeString:
    """Render a column header that sorts. `kind` is "number", "seldom", both or ""."""
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


@register.simple_tag(takes_context=True)
def other_parameters(context: template.Context) -> list[tuple[str, str]]:
    """Return the parameters of the address that no field of the search form has."""
    filters = context.get("filter_form")
    parameters = {"q", "page", "sort", *(filters.fields if filters else ())}
    return [
        pair for pair in context["request"].GET.items() if pair[0] not in parameters
    ]


@register.simple_tag
def address(listing: BaseListing, **changed: object) -> str:
    return listing.address(**changed)


@register.simple_block_tag
def crumbs(content: str) -> SafeString:
    """Put list items, of which the last one is this page, into the breadcrumbs."""
    return format_html(
        '<nav class="crumbs" aria-label="{}"><ol>{}</ol></nav>',
        _("Where you are"),
        content,
    )


@register.simple_tag(takes_context=True)
def heading_text(context: template.Context) -> SafeString:
    """Render the block `heading` once more, as the title of a page without its own."""
    blocks = context.render_context[BLOCK_CONTEXT_KEY]
    with context.push():
        return blocks.get_block("heading").nodelist.render(context)


@register.simple_tag
def product_version() -> str:
    return settings.VERSION


@register.simple_tag
def source_address() -> str:
    """Return where the source of a changed installation is; blank for others."""
    return settings.SOURCE_URL


@register.simple_tag
def time_zone() -> str:
    """Return "Central Time (America/Chicago)": where the reader's clocks are."""
    return zone_label()


@register.filter
def clock(moment: datetime) -> str:
    """Return "3:00 PM CST", where the day is said beside it."""
    local = localtime(moment)
    return f"{date_format(local, 'TIME_FORMAT')} {local:%Z}"


@register.filter
def also_in(moment: datetime, district: District | None) -> str:
    """Return " (8:00 AM CST)" where the owner's clocks show another time.

    For windows: the state's people read when a district begins, and the reverse.
    """
    zone = zone_of(district)
    if not differs(moment, zone):
        return ""
    local = moment.astimezone(zone)
    style = "TIME_FORMAT"
    if local.date() != localtime(moment).date():
        style = "SHORT_DATETIME_FORMAT"
    # Without an abbreviation, as in Brazil, it is the difference to UTC.
    return f" ({date_format(local, style)} {local:%Z})"


@register.filter
def short_date(day: date | None) -> SafeString:
    """Render a date in a table: the year only if it is not this one."""
    return _short(day, "DATE_FORMAT")


@register.filter
def short_moment(moment: datetime | None) -> SafeString:
    """Render a date and time in a table: the year only if it is not this one."""
    return _short(moment, "DATETIME_FORMAT")


def _short(moment: date | None, style: str) -> SafeString:
    if moment is None:
        return SafeString("–")
    local = localtime(moment) if isinstance(moment, datetime) else moment
    is_this_year = local.year == localdate().year
    text = date_format(local, _("N j") if is_this_year else _("N j, Y"))
    if style == "DATETIME_FORMAT":
        text = f"{text}, {date_format(local, 'TIME_FORMAT')}"
    return format_html(
        '<time datetime="{}" title="{}">{}</time>',
        local.isoformat(),
        date_format(local, style),
        text,
    )


@register.filter
def first_input(field: BoundField) -> str:
    """Return the id of a field's input; of several, as radio buttons, the first."""
    return field.id_for_label or f"{field.auto_id}_0"


@register.filter
def share(part: int | None, whole: int | None) -> str:
    """Format a rate as "63 %", or a dash if there is nothing to divide by."""
    if not whole or part is None:
        return "–"
    # Rounded down, because 49.6 % has not yet reached half.
    return f"{100 * part // whole} %"


@register.filter
def grouped(number: int) -> str:
    """Format a number with thousands separators."""
    return f"{number:,}"
