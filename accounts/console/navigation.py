"""The console's navigation, limited to what a user's role may open.

The side bar has a few sections. A section has pages, shown as tabs at its top.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from accounts.permissions import Capability as C
from accounts.permissions import Permissions

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise


# Every page of the console asks for each of them several times.
address_of = cache(reverse)
HOME = "console_home"


@dataclass(frozen=True, slots=True)
class SectionPage:
    """A page of a section, with what it is for."""

    name: StrOrPromise
    route: str
    # The page itself checks it again. None: for everybody who has logged in.
    needs: C | None
    purpose: StrOrPromise
    # Addresses, below the console's, of pages that are reached from this one.
    holds: tuple[str, ...] = ()
    # What people call it who do not know its name, for the search.
    synonyms: StrOrPromise = ""

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


@dataclass(frozen=True, slots=True)
class Section:
    """An entry of the side bar; its first page is the one that it opens."""

    name: StrOrPromise
    # Its name among static/vendor/lucide.
    icon: str
    pages: tuple[SectionPage, ...]

    @property
    def address(self) -> str:
        return self.pages[0].address

    def current(self, path: str) -> str:
        if path == self.address:
            return "page"
        return "true" if any(page.current(path) for page in self.pages) else ""


ENGINEERS = Section(
    _("Engineers"),
    "monitor",
    (
        SectionPage(
            _("Engineers"),
            "admin:index",
            None,
            _("See how the servers, queues and backups are doing."),
            synonyms=_("health, grafana, versions, admin"),
        ),
    ),
)
SECTIONS = (
    Section(
        _("Home"),
        "house",
        (
            SectionPage(
                _("Home"),
                HOME,
                None,
                _("How your surveys are doing, and what to do next."),
            ),
        ),
    ),
    Section(
        _("Surveys"),
        "clipboard-list",
        (
            SectionPage(
                _("Survey rounds"),
                "administration_list",
                C.SEE_RATES,
                _("Ask an audience in a period: questions, people, cards, results."),
                holds=("platforms/",),
                synonyms=_("administrations, open, close, schedule"),
            ),
            SectionPage(
                _("Questionnaires"),
                "survey_list",
                C.MANAGE_SURVEYS,
                _("Upload questions, preview them and publish them."),
            ),
            SectionPage(
                _("Response rates"),
                "rates_board",
                C.SEE_RATES,
                _("Follow starts and finishes, school by school."),
            ),
            SectionPage(
                _("Results"),
                "results_list",
                C.SEE_RESULTS,
                _("See how people answered, by place and group."),
            ),
            SectionPage(
                _("Exports"),
                "export_list",
                C.SEE_RESPONSES,
                _("Download responses with their codebook."),
                synonyms=_("csv, spss, data, files"),
            ),
            SectionPage(
                _("Seasons"),
                "wave_list",
                C.MANAGE_SURVEYS,
                _("Keep rounds of the same time together, to compare them later."),
                synonyms=_("waves, periods"),
            ),
        ),
    ),
    Section(
        _("Schools"),
        "school",
        (
            SectionPage(
                _("Schools"),
                "school_list",
                C.SEE_RATES,
                _("See the schools of your places, and their coordinators."),
                holds=("schools/",),
            ),
            SectionPage(
                _("Rosters"),
                "roster_list",
                C.MANAGE_ROSTERS,
                _("Upload the people to invite, and keep them up to date."),
                holds=("merges/",),
            ),
            SectionPage(
                _("Roster syncs"),
                "feed_list",
                C.MANAGE_FEEDS,
                _("Fetch rosters from student information systems every night."),
                synonyms=_("oneroster, clever, powerschool, feeds"),
            ),
        ),
    ),
    Section(
        _("Staff"),
        "contact",
        (
            SectionPage(
                _("Staff"),
                "staff_list",
                C.MANAGE_STAFF,
                _("Invite colleagues and manage their roles."),
                synonyms=_("users, coordinators, administrators, passwords"),
            ),
        ),
    ),
    Section(
        _("Settings"),
        "settings-2",
        (
            SectionPage(
                _("Settings"),
                "settings_home",
                C.MANAGE_ROSTERS,
                _("Choose contact persons, thresholds, names and logos."),
            ),
            SectionPage(
                _("Calendar"),
                "calendar_list",
                C.MANAGE_SURVEYS,
                _("Enter holidays, on which nobody is reminded."),
            ),
            SectionPage(
                _("Survey day"),
                "survey_day",
                C.MANAGE_SURVEYS,
                _("Let exports, scores and syncs wait while very many people answer."),
                synonyms=_("pause jobs, wait, busy day"),
            ),
        ),
    ),
    Section(
        _("Activity"),
        "history",
        (
            SectionPage(
                _("Activity"),
                "audit_list",
                C.SEE_AUDIT,
                _("Review changes, and views of names and codes."),
                synonyms=_("audit, log, history"),
            ),
        ),
    ),
)


def sections_for(
    permissions: Permissions, *, is_engineer: bool = False
) -> list[Section]:
    """Return the sections with pages that the user may open, and only these."""
    sections = []
    for section in SECTIONS:
        pages = tuple(
            page
            for page in section.pages
            if (permissions.has(page.needs) if page.needs else permissions.memberships)
        )
        if pages:
            sections.append(replace(section, pages=pages))
    return [*sections, ENGINEERS] if is_engineer else sections


def current_page(section: Section, path: str) -> SectionPage | None:
    """Return the page of a section that an address is on or below: the longest."""
    pages = [page for page in section.pages if page.current(path)]
    return max(pages, key=lambda page: len(page.address), default=None)
