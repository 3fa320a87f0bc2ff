"""The tabs at the top of a page: the steps of a survey round, or pages of a section."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django import template
from django.db.models import prefetch_related_objects
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from survey.models import Administration

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django_stubs_ext import StrOrPromise

    from accounts.http import StaffRequest
    from reports.console.home import HomeTask

register = template.Library()


@dataclass(frozen=True, slots=True)
class Tab:
    name: StrOrPromise
    address: str
    # The value of `aria-current`.
    current: str


@dataclass(frozen=True, slots=True)
class Tabs:
    label: StrOrPromise
    tabs: Sequence[Tab]


@register.simple_tag(takes_context=True)
def page_tabs(context: template.Context) -> Tabs | None:
    """Return the tabs of this page, or None. At most 1 statement.

    On pages about one survey round, these are its steps.
    """
    request: StaffRequest | None = context.get("request")
    if request is None or not request.user.is_authenticated:
        return None
    administration = _administration_of(context)
    match = request.resolver_match
    tabs = None
    if isinstance(administration, Administration) and match is not None:
        tabs = _steps(request, administration, match.url_name or "")
    return tabs or _pages(request)


def _administration_of(context: template.Context) -> object:
    """Return the survey round that a page is about, itself or of what it shows."""
    if "administration" in context:
        return context["administration"]
    for name in ("page", "report"):
        if administration := getattr(context.get(name), "administration", None):
            return administration
    return None


def _steps(
    request: StaffRequest, administration: Administration, route: str
) -> Tabs | None:
    from reports.console.workspace import RESULTS, STEPS, pages_of

    current = next((step for step in STEPS if route.startswith(step.routes)), None)
    if current is None and not route.startswith("administration_"):
        return None
    address = reverse("administration_detail", args=[administration.pk])
    is_first = "page" if route == "administration_detail" else ""
    tabs = [Tab(_("Overview"), address, is_first)]
    is_open = administration.closes_at > timezone.now()
    for step in STEPS:
        # Before the closing there is only a form for exports, which the first page
        # leads to.
        if step is RESULTS and is_open and step is not current:
            continue
        if pages := pages_of(request.permissions, administration, step):
            address = pages[0].address
            is_here = "page" if address == request.get_full_path() else "true"
            tabs.append(Tab(step.name, address, is_here if step is current else ""))
    return Tabs(_("Steps"), tabs)


def _pages(request: StaffRequest) -> Tabs | None:
    from accounts.console.navigation import current_page, sections_for

    for section in sections_for(request.permissions):
        here = current_page(section, request.path)
        if here is None:
            continue
        # Pages below one of the section have breadcrumbs instead.
        if len(section.pages) == 1 or here.current(request.path) != "page":
            return None
        tabs = [
            Tab(
                page.name,
                page.address,
                here.current(request.path) if page is here else "",
            )
            for page in section.pages
        ]
        return Tabs(_("Pages"), tabs)
    return None


@register.simple_tag(takes_context=True)
def survey_rounds(
    context: template.Context, rows: Sequence[Administration]
) -> list[HomeTask]:
    """Return the rates and next steps of a list. At most 8 statements."""
    from reports.console.home import have_people_in_own_schools, home_tasks

    permissions, now = context["request"].permissions, timezone.now()
    administrations = list(rows)
    prefetch_related_objects(administrations, "roll_up", "results_roll_up")
    by_state: dict[str, list[Administration]] = {
        "open": [],
        "planned": [],
        "closed": [],
    }
    for administration in administrations:
        if administration.closes_at <= now:
            by_state["closed"].append(administration)
        elif administration.opens_at > now:
            by_state["planned"].append(administration)
        else:
            by_state["open"].append(administration)
    current = [*by_state["open"], *by_state["planned"]]
    have_people = have_people_in_own_schools(permissions, current)
    invited = {
        administration.pk: has_people
        for administration, has_people in zip(current, have_people, strict=True)
    }
    tasks = home_tasks(permissions, by_state, invited, now)
    task_of = {
        task.administration.pk: task for of_state in tasks.values() for task in of_state
    }
    return [task_of[administration.pk] for administration in administrations]
