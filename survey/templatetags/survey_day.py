"""The end of the survey day, for pages of the console. No statement."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django import template
from django.utils.formats import date_format
from django.utils.timezone import localdate, localtime

if TYPE_CHECKING:
    from accounts.http import StaffRequest

register = template.Library()


@register.simple_tag
def survey_day_end() -> str:
    """Return "4:00 PM CST" by the reader's clocks, with the day if it is another one.

    Blank if no survey day is on.
    """
    # Imported here: the respondents' pool loads the tags too.
    from survey.work.survey_day import shown_end

    if (ends_at := shown_end()) is None:
        return ""
    local = localtime(ends_at)
    is_today = local.date() == localdate()
    style = "TIME_FORMAT" if is_today else "SHORT_DATETIME_FORMAT"
    return f"{date_format(local, style)} {local:%Z}"


@register.simple_tag(takes_context=True)
def survey_day_banner(context: template.Context) -> str:
    """Return the same for administrators and analysts, whose work waits."""
    from accounts.permissions import Capability

    request: StaffRequest | None = context.get("request")
    permissions = getattr(request, "permissions", None)
    if permissions is None or not permissions.has(Capability.SEE_RESPONSES):
        return ""
    return survey_day_end()
