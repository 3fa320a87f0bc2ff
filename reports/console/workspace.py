"""The workspace of a survey round: its steps, from the questions to the publication.

Each step has pages, of which a user sees those that the role may open. The bar of steps
is on all of these pages; the first page says how far each step is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from django.http import HttpResponse
from django.shortcuts import render
from django.urls import resolve, reverse
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.timezone import localtime
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.http import require_safe

from accounts.access import needs
from accounts.console.navigation import address_of
from accounts.http import StaffRequest
from accounts.permissions import Capability as C
from accounts.permissions import Permissions
from reports.console.home_rates import PlaceRate, home_rates
from reports.console.next_steps import (
    NextStep,
    next_step,
    without_printing_twice,
)
from reports.models import Publication
from reports.rates.progress_pace import calendars_for
from reports.rates.rate_lines import RateTotal
from reports.results.access import capability_for
from survey.fieldwork.administrations import (
    administrations_for,
    has_people,
    may_manage,
    subgroup_label,
)
from survey.fieldwork.administrations.queries import (
    administration_or_404,
    with_titles,
)
from survey.fieldwork.emails.figures import Figures, read_figures
from survey.fieldwork.login_cards.card_sets import (
    administrations_with_cards,
    card_sets_for,
)
from survey.models import Administration, Denominator, EmailSchedule, OpenCode
from survey.people.retention.terms import term_lines

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

State = Administration.State
# Districts and schools on the page of a survey round.
MAX_PLACES_SHOWN = 50


@dataclass(frozen=True, slots=True)
class StepPage:
    """A page about one survey round, and the capability that opens it."""

    # None: for those who may see its results.
    needs: C | None
    # With "?parameter=" where the address has the key of the round at its end.
    route: str
    name: StrOrPromise
    # Only for rounds with this denominator; empty: for all.
    denominator: str = ""
    is_for_closed: bool = False
    is_for_waves: bool = False
    # Only for rounds of the state to which districts may add pages, and for each of
    # these districts.
    has_modules: bool = False
    # What people do there, as they would search for it.
    synonyms: StrOrPromise = ""

    def address(self, administration: Administration) -> str:
        route, _question_mark, parameter = self.route.partition("?")
        if parameter:
            return f"{address_of(route)}?{parameter}{administration.pk}"
        return reverse(route, args=[administration.pk])


@dataclass(frozen=True, slots=True)
class Step:
    """A step, and the beginnings of the names of routes that belong to it."""

    name: StrOrPromise
    icon: str
    routes: tuple[str, ...]
    pages: tuple[StepPage, ...]


ROSTER, COUNT = Denominator.ROSTER, Denominator.COUNT
QUESTIONS = Step(
    gettext_lazy("Questions"),
    "list-checks",
    (
        "administration_questionnaire",
        "administration_test_link",
        "administration_modules",
    ),
    (
        StepPage(
            C.SEE_RATES,
            "administration_questionnaire",
            gettext_lazy("Read the questions"),
        ),
        StepPage(
            C.SEE_RATES, "administration_test_link", gettext_lazy("Try the survey")
        ),
        StepPage(
            C.MANAGE_SURVEYS,
            "administration_modules",
            gettext_lazy("Districts' questions"),
            has_modules=True,
            synonyms=gettext_lazy("module, own questions of a district, add pages"),
        ),
    ),
)
PEOPLE = Step(
    gettext_lazy("People"),
    "users",
    ("people_", "roster_", "count_"),
    (
        StepPage(
            C.SEE_IDENTITIES,
            "people_list",
            gettext_lazy("Find a person"),
            ROSTER,
            synonyms=gettext_lazy(
                "opt out, opt-outs, refuse, withdraw, move, correct, add a person,"
                " consents, new code"
            ),
        ),
        StepPage(
            C.MANAGE_ROSTERS, "roster_upload", gettext_lazy("Upload a roster"), ROSTER
        ),
        StepPage(
            C.MANAGE_ROSTERS,
            "roster_list?administration=",
            gettext_lazy("Uploaded rosters"),
            ROSTER,
        ),
        StepPage(
            C.MANAGE_ROSTERS,
            "count_list",
            gettext_lazy("Counts of families or students"),
            COUNT,
        ),
    ),
)
INVITATIONS = Step(
    gettext_lazy("Invitations"),
    "contact",
    ("cards_", "emails_", "open_code"),
    (
        StepPage(
            C.SEE_IDENTITIES,
            "cards_list",
            gettext_lazy("Login cards"),
            ROSTER,
            synonyms=gettext_lazy("print cards, access codes, new codes"),
        ),
        StepPage(
            C.MANAGE_ROSTERS,
            "open_codes_list",
            gettext_lazy("School links"),
            COUNT,
            synonyms=gettext_lazy("posters, letters, qr codes, parents"),
        ),
        StepPage(
            C.MANAGE_SURVEYS,
            "emails_detail",
            gettext_lazy("E-mails"),
            synonyms=gettext_lazy("emails, reminders, invitations"),
        ),
    ),
)
LIVE = Step(
    gettext_lazy("Live"),
    "chart-column",
    ("rates_", "administration_devices"),
    (
        StepPage(
            C.SEE_RATES, "rates_board?administration=", gettext_lazy("Response rates")
        ),
        StepPage(
            C.SEE_AUDIT,
            "administration_devices",
            gettext_lazy("Devices with many codes"),
        ),
    ),
)
RESULTS = Step(
    gettext_lazy("Results"),
    "chart-bar-stacked",
    ("results_", "scores_", "school_report", "export_new", "export_panel"),
    (
        StepPage(None, "results_page", gettext_lazy("Answers"), is_for_closed=True),
        StepPage(None, "scores_table", gettext_lazy("Scores"), is_for_closed=True),
        StepPage(
            C.SEE_RESPONSES,
            "export_new?administrations=",
            gettext_lazy("Download responses"),
        ),
        StepPage(
            C.SEE_RESPONSES,
            "export_panel?administrations=",
            gettext_lazy("Join seasons (panel)"),
            ROSTER,
            is_for_waves=True,
        ),
    ),
)
PUBLISH = Step(
    gettext_lazy("Publish"),
    "globe",
    ("publishing",),
    (
        StepPage(
            C.PUBLISH_RESULTS,
            "publishing",
            gettext_lazy("Publish for everybody"),
            is_for_closed=True,
        ),
    ),
)
STEPS = (QUESTIONS, PEOPLE, INVITATIONS, LIVE, RESULTS, PUBLISH)
# People come to a module from the state's round, and its results are never published.
NOT_OF_MODULES = (PEOPLE, INVITATIONS, PUBLISH)


def step_pages(
    permissions: Permissions, administration: Administration, step: Step
) -> list[StepPage]:
    """Return the pages of a step that the user may open.

    No statement, or 1 for users who may not see responses, of closed rounds.
    """
    is_closed = administration.state_at(timezone.now()) == State.CLOSED
    if administration.module_of_id is not None and step in NOT_OF_MODULES:
        return []

    def may_open(page: StepPage) -> bool:
        if page.denominator not in ("", administration.denominator):
            return False
        if page.is_for_waves and not administration.joins_waves:
            return False
        if page.is_for_closed and not is_closed:
            return False
        if page.needs is None:
            return permissions.has(C.SEE_RESPONSES) or (
                permissions.has(C.SEE_RESULTS)
                and permissions.has(capability_for(administration))
            )
        if page.has_modules:
            return bool(administration.district_pages_limit) and permissions.has(
                C.MANAGE_SURVEYS
            )
        if page.needs is C.MANAGE_SURVEYS:
            return may_manage(permissions, administration)
        return permissions.has(page.needs)

    return [page for page in step.pages if may_open(page)]


def pages_of(
    permissions: Permissions, administration: Administration, step: Step
) -> list[NextStep]:
    """Return the same pages with their addresses. As many statements."""
    return [
        NextStep(str(page.name), page.address(administration))
        for page in step_pages(permissions, administration, step)
    ]


class Progress:
    """How far a step is, by which pages mark it."""

    DONE, CURRENT, TO_DO, WAITS = "done", "current", "to-do", "waits"
    # The round has closed without it.
    NOT_USED = "not-used"


@dataclass(frozen=True, slots=True)
class StepLine:
    """A step as the workspace shows it."""

    step: Step
    pages: Sequence[NextStep]
    progress: str = Progress.WAITS
    figure: str = ""
    # The page to go on with, if it is in this step.
    action: NextStep | None = None

    @property
    def other_pages(self) -> list[NextStep]:
        address = self.action.address if self.action else ""
        return [page for page in self.pages if page.address != address]


@dataclass
class Workspace:
    """Reads how far the steps of a survey round are, for one user."""

    permissions: Permissions
    administration: Administration
    rates: Sequence[PlaceRate] = ()
    lines: list[StepLine] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Read all figures. At most 12 statements."""
        administration = self.administration
        self.state = administration.state_at(timezone.now())
        is_over = self.state == State.CLOSED
        calendars = calendars_for([administration])
        self.rates = home_rates(
            self.permissions,
            [] if is_over else [administration],
            [administration] if is_over else [],
            calendars,
        ).get(administration.pk, [])
        self.invited = sum(rate.figures.eligible for rate in self.rates)
        self.has_people = bool(self.invited) or has_people(administration)
        first = next_step(
            *(self.permissions, administration, self.state),
            *(self.has_people, self.rates),
        )
        steps = without_printing_twice(self.permissions, {administration.pk: first})
        self.next = steps[administration.pk] or NextStep(
            _("See response rates"), LIVE.pages[0].address(self.administration)
        )
        is_count = administration.denominator == COUNT
        published = self._published()
        self.publication = published[0]
        readings = (
            (QUESTIONS, (Progress.DONE, administration.published.survey.full_title)),
            (PEOPLE, self._counted() if is_count else self._invited()),
            (INVITATIONS, self._links() if is_count else self._cards()),
            (LIVE, self._live()),
            (RESULTS, self._results()),
            (PUBLISH, published),
        )
        for step, (progress, figure) in readings:
            pages = pages_of(self.permissions, administration, step)
            if administration.module_of_id is not None and step in NOT_OF_MODULES:
                continue
            if not pages and step in (PUBLISH, RESULTS, INVITATIONS):
                # Not a step of this user.
                continue
            if is_over and step in (PEOPLE, INVITATIONS) and progress == Progress.WAITS:
                progress = Progress.NOT_USED
            if step is PUBLISH and progress != Progress.WAITS:
                label = _("See or withdraw the publication")
                pages = [NextStep(label, page.address) for page in pages]
            action = self.next if self._is_next(step) else None
            if action and progress == Progress.WAITS:
                progress = Progress.TO_DO
            self.lines.append(StepLine(step, pages, progress, figure, action))

    def _is_next(self, step: Step) -> bool:
        route = resolve(self.next.address.partition("?")[0]).url_name or ""
        return route.startswith(step.routes)

    def _counted(self) -> tuple[str, str]:
        if not self.invited:
            return Progress.WAITS, _("Anyone with a school's link can take part.")
        words = _("%(n)s families or students counted by schools")
        return Progress.DONE, words % {"n": f"{self.invited:,}"}

    def _invited(self) -> tuple[str, str]:
        if not self.has_people:
            if self.state == State.CLOSED:
                return Progress.NOT_USED, _("No one was invited.")
            return Progress.WAITS, _("No one is invited yet.")
        if not self.invited:
            return Progress.DONE, _("People are invited.")
        words = ngettext(
            "%(n)s person invited", "%(n)s people invited", self.invited
        ) % {"n": f"{self.invited:,}"}
        return Progress.DONE, words

    def _links(self) -> tuple[str, str]:
        codes = OpenCode.objects.visible_to(self.permissions)
        number = codes.filter(
            administration=self.administration, revoked_at=None
        ).count()
        if not number:
            if self.state == State.CLOSED:
                return Progress.NOT_USED, _("No school has a link.")
            return Progress.WAITS, _("No school has a link yet.")
        words = ngettext("%(n)s school link", "%(n)s school links", number)
        return Progress.DONE, words % {"n": f"{number:,}"}

    def _cards(self) -> tuple[str, str]:
        card_sets = card_sets_for(self.permissions, self.administration)
        number = card_sets.exclude(made_at=None).count()
        if not number:
            pk = self.administration.pk
            if pk in administrations_with_cards(self.permissions, [pk]):
                words = _("Login cards were made together with those of other schools.")
                return Progress.DONE, words
            if not self._has_codes():
                return Progress.WAITS, _("No login cards have been made yet.")
            words = _("No login cards were made.")
            schedules = EmailSchedule.objects.filter(administration=pk)
            if schedules.exclude(confirmed_at=None).exists():
                emails = _("E-mails were scheduled.")
                return Progress.DONE, f"{emails} {words}"
            return Progress.NOT_USED, words
        words = ngettext(
            "%(n)s file of login cards made", "%(n)s files of login cards made", number
        )
        return Progress.DONE, words % {"n": f"{number:,}"}

    def _has_codes(self) -> bool:
        """Return whether people got codes: some have started, or it is too late."""
        started = any(rate.figures.started != 0 for rate in self.rates)
        return started or self.state == State.CLOSED

    def _live(self) -> tuple[str, str]:
        administration = self.administration
        if self.state == State.PLANNED:
            return Progress.WAITS, _("Opens %(moment)s.") % {
                "moment": _moment(administration.opens_at)
            }
        rate = self._rate()
        if self.state == State.CLOSED:
            closed = _("Closed %(moment)s.") % {
                "moment": _moment(administration.closes_at)
            }
            return Progress.DONE, f"{rate} {closed}".strip()
        closes = _("Closes %(moment)s.") % {"moment": _moment(administration.closes_at)}
        return Progress.CURRENT, f"{rate} {closes}".strip()

    def _rate(self) -> str:
        """Return the rate of all places of the user together; "" if it is hidden."""
        if len(self.rates) != 1:
            return ""
        figures = self.rates[0].figures
        if isinstance(figures, RateTotal) or not figures.is_hidden:
            return _("%(rate)s finished.") % {"rate": figures.rate_words}
        return ""

    def _results(self) -> tuple[str, str]:
        roll_up = getattr(self.administration, "results_roll_up", None)
        if self.state != State.CLOSED:
            return Progress.WAITS, _("Counted after the survey has closed.")
        if roll_up is None or roll_up.released_at is None:
            return Progress.CURRENT, _("The answers are being counted.")
        counted = _("Counted %(moment)s.") % {"moment": _moment(roll_up.as_of)}
        if roll_up.shared_at:
            return Progress.DONE, f"{counted} {_('Shared with schools.')}"
        if self.publication == Progress.DONE:
            words = _("Schools can read what is published, and no more.")
            return Progress.DONE, f"{counted} {words}"
        return Progress.CURRENT, f"{counted} {_('Not shared with schools yet.')}"

    def _published(self) -> tuple[str, str]:
        publication = (
            Publication.objects.filter(administration=self.administration)
            .filter(published_at__isnull=False, withdrawn_at=None)
            .first()
        )
        if publication is None:
            return Progress.WAITS, _("Not published.")
        since = publication.embargo_until or publication.published_at
        if publication.is_embargoed:
            words = _("Everybody may read the results from %(moment)s.")
            return Progress.CURRENT, words % {"moment": _moment(since)}
        words = _("Everybody may read the results since %(moment)s.")
        return Progress.DONE, words % {"moment": _moment(since)}


def _moment(moment: object) -> str:
    return date_format(localtime(moment), "DATETIME_FORMAT")  # type: ignore[arg-type]


@needs(C.SEE_RATES)
@require_safe
def administration_detail(request: StaffRequest, pk: int) -> HttpResponse:
    """Show how far each step of a survey round is, and its settings."""
    permissions = request.permissions
    administration = administration_or_404(permissions, pk, C.SEE_RATES)
    districts = list(
        administration.districts.filter(
            pk__in=permissions.districts(C.SEE_RATES).values("pk")
        )
    )
    schools = list(
        administration.schools.filter(
            pk__in=permissions.schools(C.SEE_RATES).values("pk")
        ).select_related("district")
    )
    # Places of other districts are counted, and not named.
    all_places = administration.districts.count() + administration.schools.count()
    # Coordinators and analysts have no pages about surveys.
    survey_address = ""
    if permissions.has(C.MANAGE_SURVEYS):
        survey_id = administration.published.survey_id
        survey_address = reverse("survey_detail", args=[survey_id])
    manages = may_manage(permissions, administration)
    workspace = Workspace(permissions, administration)
    # Also for districts that take part in a round of the state: they hold data.
    holds_data = permissions.has(C.MANAGE_SURVEYS)
    retention = term_lines(administration) if holds_data else []
    return render(
        request,
        "reports/workspace.html",
        {
            "administration": administration,
            "followed": administration_followed(permissions, administration),
            "survey": administration.published.survey.full_title,
            "subgroups": [subgroup_label(name) for name in administration.subgroups],
            "survey_address": survey_address,
            "districts": districts[:MAX_PLACES_SHOWN],
            "schools": schools[:MAX_PLACES_SHOWN],
            "elsewhere": all_places - len(districts) - len(schools),
            "may_manage": manages,
            "emails": _email_figures(administration) if manages else None,
            "retention": retention,
            "keeps_everything": all(line.is_endless for line in retention),
            "is_held": holds_data and administration.holds.current().exists(),
            "workspace": workspace,
        },
    )


def administration_followed(
    permissions: Permissions, administration: Administration
) -> Administration | None:
    """Return the state's round that a module follows. No statement for others."""
    if administration.module_of_id is None:
        return None
    visible = with_titles(administrations_for(permissions, C.SEE_RATES))
    return visible.filter(pk=administration.module_of_id).first()


def _email_figures(administration: Administration) -> Figures | None:
    """Return the figures of the round's e-mails, if there are any."""
    schedule = EmailSchedule.objects.filter(administration=administration).first()
    if schedule is None:
        return None
    schedule.administration = administration
    return read_figures(schedule).total
