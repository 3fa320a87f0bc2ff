"""Choose what a user should do next about an administration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.urls import reverse
from django.utils.translation import gettext as _

from accounts.permissions import Capability as C
from accounts.permissions import Permissions
from reports.console.home_rates import PlaceRate
from reports.publishing.own_schools import OwnPages
from reports.rates.rate_lines import RateTotal
from reports.results.access import capability_for
from survey.fieldwork.login_cards.card_sets import administrations_with_cards
from survey.models import Administration, Denominator

State = Administration.State


@dataclass(frozen=True, slots=True)
class NextStep:
    label: str
    address: str


def next_step(
    permissions: Permissions,
    administration: Administration,
    state: State,
    has_people: bool,
    rates: Sequence[PlaceRate],
    public_pages: OwnPages | None = None,
) -> NextStep | None:
    """Return the step that the page offers as its button, if there is one."""
    see_rates = NextStep(
        _("See response rates"),
        f"{reverse('rates_board')}?administration={administration.pk}",
    )
    sees_people = permissions.has(C.SEE_IDENTITIES)
    print_cards = NextStep(_("Print login cards"), _page("cards_list", administration))
    if state == State.CLOSED:
        has_answers = any(rate.figures.finished for rate in rates)
        if has_answers and permissions.has(capability_for(administration)):
            return NextStep(_("See results"), _page("results_page", administration))
        if public_pages and public_pages.schools:
            [(_name, address), *more] = public_pages.schools
            address = reverse("results_list") if more else address
            return NextStep(_("See results"), address)
        return see_rates if rates else None
    if administration.module_of_id is not None:
        # People come to it from the state's round.
        return see_rates if state != State.PLANNED else None
    if administration.denominator == Denominator.COUNT:
        if permissions.has(C.MANAGE_ROSTERS):
            address = _page("open_codes_list", administration)
            return NextStep(_("Hand out school links"), address)
        return see_rates if state != State.PLANNED else None
    if not has_people:
        if permissions.has(C.MANAGE_ROSTERS):
            address = _page("roster_upload", administration)
            return NextStep(_("Upload a roster"), address)
        return None
    if state == State.PLANNED:
        return print_cards if sees_people else None
    if rates and all(rate.figures.started == 0 for rate in rates) and sees_people:
        return print_cards
    return _reminder(administration, rates, sees_people) or see_rates


def _reminder(
    administration: Administration, rates: Sequence[PlaceRate], sees_people: bool
) -> NextStep | None:
    """Return the page with the people or schools to remind."""
    for rate in rates:
        figures = rate.figures
        if isinstance(figures, RateTotal):
            if figures.below:
                # The school that needs most people comes first.
                address = f"{rate.schools_address}&state=below&sort=-missing"
                return NextStep(_("See schools to remind"), address)
            continue
        if figures.finished is None or figures.finished >= (figures.needed or 0):
            continue
        if sees_people and not administration.is_completion_confidential:
            people = _page("people_list", administration)
            missing = f"{people}?school={figures.school.pk}&state=not-finished"
            return NextStep(_("See who has not finished"), missing)
    return None


def without_printing_twice(
    permissions: Permissions, steps: Mapping[int, NextStep | None]
) -> dict[int, NextStep | None]:
    """Lead to the login cards without asking to print them where they were made.

    The steps are those of administrations, by their keys. 1 statement if any of them
    prints cards.
    """
    printing = {
        pk: step
        for pk, step in steps.items()
        if step and step.address == reverse("cards_list", args=[pk])
    }
    made = administrations_with_cards(permissions, printing)
    return {
        pk: NextStep(_("Login cards"), step.address) if step and pk in made else step
        for pk, step in steps.items()
    }


def cards_step(
    permissions: Permissions,
    administration: Administration,
    state: State,
    rates: Sequence[PlaceRate],
    step: NextStep | None,
) -> NextStep | None:
    """Return the login cards of an open round for users who hand them out.

    That is, for people of single schools, unless the cards are the next step.
    """
    if (
        state in (State.PLANNED, State.CLOSED)
        or administration.denominator == Denominator.COUNT
        or administration.module_of_id is not None
        or not permissions.has(C.SEE_IDENTITIES)
        or not rates
        or rates[0].is_total
    ):
        return None
    cards = NextStep(_("Login cards"), _page("cards_list", administration))
    return None if step and step.address == cards.address else cards


def _page(route: str, administration: Administration) -> str:
    return reverse(route, args=[administration.pk])
