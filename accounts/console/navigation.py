"""What the console offers to whom; each page asks its own rule again."""

from __future__ import annotations

from dataclasses import dataclass

from django.urls import reverse

from accounts.permissions import Capability as C
from accounts.permissions import Permissions


@dataclass(frozen=True, slots=True)
class Entry:
    name: str
    # The route, and the capabilities of which one is needed.
    route: str
    needs: frozenset[C]
    # What it is for: shown on the first page.
    purpose: str

    @property
    def address(self) -> str:
        return reverse(self.route)


ENTRIES = (
    Entry(
        "Response rates",
        "rates_board",
        frozenset((C.SEE_RATES,)),
        "Who has started and finished, school by school, while it happens.",
    ),
    Entry(
        "Administrations",
        "administration_list",
        frozenset((C.SEE_RATES,)),
        "Which survey is offered to whom, and when; its people and their login cards.",
    ),
    Entry(
        "Rosters",
        "roster_list",
        frozenset((C.MANAGE_ROSTERS,)),
        "Upload who is invited, and bring it up to date.",
    ),
    Entry(
        "Surveys",
        "survey_list",
        frozenset((C.MANAGE_SURVEYS,)),
        "Upload a survey, look at it as a respondent will, and publish it.",
    ),
    Entry(
        "Exports",
        "export_list",
        frozenset((C.SEE_RESPONSES,)),
        "Download the responses, with the codebook that explains them.",
    ),
    Entry(
        "Staff",
        "staff_list",
        frozenset((C.MANAGE_STAFF,)),
        "Invite the people who work with you, and end what they may do.",
    ),
    Entry(
        "Audit",
        "audit_list",
        frozenset((C.SEE_AUDIT,)),
        "Who changed what, and who looked at whose names.",
    ),
)


def entries_for(permissions: Permissions) -> list[Entry]:
    return [one for one in ENTRIES if _is_for(one, permissions)]


def _is_for(entry: Entry, permissions: Permissions) -> bool:
    return any(map(permissions.has, entry.needs))
