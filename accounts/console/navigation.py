"""The console's navigation, limited to what a user's role may open."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from accounts.permissions import Capability as C
from accounts.permissions import Permissions

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise


# Every page of the console asks for each of them three times.
address_of = cache(reverse)


@dataclass(frozen=True, slots=True)
class NavigationEntry:
    name: StrOrPromise
    route: str
    # One of these capabilities is needed. The page itself checks it again.
    needs: frozenset[C]
    # Shown on the home page.
    purpose: StrOrPromise
    # Its name among static/vendor/lucide.
    icon: str
    # Addresses, below the console's, of pages that are reached from this one.
    holds: tuple[str, ...] = ()

    @property
    def address(self) -> str:
        return address_of(self.route)

    def current(self, path: str) -> str:
        """Return the value of `aria-current` on a page."""
        if path == self.address:
            return "page"
        below = [address_of(HOME) + prefix for prefix in self.holds]
        if self.route != HOME:
            below.append(self.address)
        return "true" if path.startswith(tuple(below)) else ""


HOME = "console_home"

ENTRIES = (
    NavigationEntry(
        _("Home"),
        HOME,
        frozenset(C),
        _("How your surveys are doing, and what to do next."),
        "house",
    ),
    NavigationEntry(
        _("Response rates"),
        "rates_board",
        frozenset((C.SEE_RATES,)),
        _("Follow starts and finishes, school by school."),
        "chart-column",
    ),
    NavigationEntry(
        _("Administrations"),
        "administration_list",
        frozenset((C.SEE_RATES,)),
        _(
            "Open surveys for an audience and period; find people and print login"
            " cards."
        ),
        "clipboard-list",
        holds=("waves/", "platforms/"),
    ),
    NavigationEntry(
        _("Rosters"),
        "roster_list",
        frozenset((C.MANAGE_ROSTERS,)),
        _("Upload the people to invite, and keep them up to date."),
        "users",
        holds=("merges/", "schools/import/"),
    ),
    NavigationEntry(
        _("Feeds"),
        "feed_list",
        frozenset((C.MANAGE_FEEDS,)),
        _("Fetch rosters from student information systems every night."),
        "refresh-cw",
    ),
    NavigationEntry(
        _("Surveys"),
        "survey_list",
        frozenset((C.MANAGE_SURVEYS,)),
        _("Upload a survey, preview it and publish it."),
        "list-checks",
    ),
    NavigationEntry(
        _("Results"),
        "results_list",
        frozenset((C.SEE_RESULTS,)),
        _("See how people answered, by place and group."),
        "chart-bar-stacked",
    ),
    NavigationEntry(
        _("Exports"),
        "export_list",
        frozenset((C.SEE_RESPONSES,)),
        _("Download responses with their codebook."),
        "download",
    ),
    NavigationEntry(
        _("Staff"),
        "staff_list",
        frozenset((C.MANAGE_STAFF,)),
        _("Invite colleagues and manage their roles."),
        "contact",
    ),
    NavigationEntry(
        _("Settings"),
        "settings_home",
        frozenset((C.MANAGE_ROSTERS,)),
        _("Choose contact persons, thresholds, names and logos; enter holidays."),
        "settings-2",
    ),
    NavigationEntry(
        _("Audit"),
        "audit_list",
        frozenset((C.SEE_AUDIT,)),
        _("Review changes, and views of names and codes."),
        "history",
    ),
)


def entries_for(permissions: Permissions) -> list[NavigationEntry]:
    return [entry for entry in ENTRIES if any(map(permissions.has, entry.needs))]
