"""The console's navigation, limited to what a user's role may open."""

from __future__ import annotations

from dataclasses import dataclass

from django.urls import reverse

from accounts.permissions import Capability as C
from accounts.permissions import Permissions


@dataclass(frozen=True, slots=True)
class NavigationEntry:
    name: str
    route: str
    # One of these capabilities is needed. The page itself checks it again.
    needs: frozenset[C]
    # Shown on the home page.
    purpose: str
    # Its name among static/vendor/lucide.
    icon: str

    @property
    def address(self) -> str:
        return reverse(self.route)


ENTRIES = (
    NavigationEntry(
        "Response rates",
        "rates_board",
        frozenset((C.SEE_RATES,)),
        "Follow starts and finishes, school by school.",
        "chart-column",
    ),
    NavigationEntry(
        "Administrations",
        "administration_list",
        frozenset((C.SEE_RATES,)),
        "Open surveys for an audience and period; find people and print login cards.",
        "clipboard-list",
    ),
    NavigationEntry(
        "Rosters",
        "roster_list",
        frozenset((C.MANAGE_ROSTERS,)),
        "Upload the people to invite, and keep them up to date.",
        "users",
    ),
    NavigationEntry(
        "Feeds",
        "feed_list",
        frozenset((C.MANAGE_FEEDS,)),
        "Fetch rosters from student information systems every night.",
        "refresh-cw",
    ),
    NavigationEntry(
        "Surveys",
        "survey_list",
        frozenset((C.MANAGE_SURVEYS,)),
        "Upload a survey, preview it and publish it.",
        "list-checks",
    ),
    NavigationEntry(
        "Exports",
        "export_list",
        frozenset((C.SEE_RESPONSES,)),
        "Download responses with their codebook.",
        "download",
    ),
    NavigationEntry(
        "Staff",
        "staff_list",
        frozenset((C.MANAGE_STAFF,)),
        "Invite colleagues and manage their roles.",
        "contact",
    ),
    NavigationEntry(
        "Settings",
        "settings_home",
        frozenset((C.MANAGE_ROSTERS,)),
        "Choose contact persons, thresholds, names and logos; enter holidays.",
        "settings-2",
    ),
    NavigationEntry(
        "Audit",
        "audit_list",
        frozenset((C.SEE_AUDIT,)),
        "Review changes, and views of names and codes.",
        "history",
    ),
)


def entries_for(permissions: Permissions) -> list[NavigationEntry]:
    return [entry for entry in ENTRIES if any(map(permissions.has, entry.needs))]
