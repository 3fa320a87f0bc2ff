"""Open an administration in five steps, each a short page of its own.

What is typed goes into a draft (see `open_drafts`). The last step checks all of it
again, and opens the administration.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.db import transaction
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from accounts.access import needs
from accounts.http import StaffRequest
from accounts.permissions import Capability as C
from accounts.permissions import Permissions
from survey.console.administrations.edit_views import AGAIN
from survey.console.administrations.forms import FOLDED, Privacy, show_errors
from survey.console.administrations.open_drafts import (
    Draft,
    drafts_of,
    find_draft,
    lock_draft,
    note_opened,
    opened_from,
    save_draft,
)
from survey.console.administrations.open_forms import (
    EVERYWHERE,
    OpenAdministrationForm,
)
from survey.fieldwork.administrations import (
    default_subgroups,
    format_moment,
    open_administration,
    schools_offered,
    surveys_to_offer,
)
from survey.fieldwork.administrations.queries import MAX_NAMES
from survey.fieldwork.administrations.suggestions import suggest_name
from survey.fieldwork.waves import get_or_create_wave
from survey.models import Administration, Denominator, Role

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise


@dataclass(frozen=True, slots=True)
class Step:
    name: str
    label: StrPromise
    heading: StrPromise
    purpose: StrPromise
    fields: tuple[str, ...]


STEPS = (
    Step(
        "questions",
        gettext_lazy("Questions"),
        gettext_lazy("Which questionnaire?"),
        gettext_lazy("The newest published version of each is listed."),
        ("published",),
    ),
    Step(
        "people",
        gettext_lazy("People"),
        gettext_lazy("Who answers it?"),
        gettext_lazy("Choose the audience, how they start, and their schools."),
        ("owner", "role", "denominator", "scope", "places"),
    ),
    Step(
        "dates",
        gettext_lazy("Dates"),
        gettext_lazy("When can they answer?"),
        gettext_lazy("Dates and the season can be changed later."),
        ("opens_at", "closes_at", "wave", "new_wave"),
    ),
    Step(
        "privacy",
        gettext_lazy("Privacy"),
        gettext_lazy("Who sees that they have answered?"),
        gettext_lazy("Choose how much the school learns."),
        ("privacy", *FOLDED),
    ),
    Step(
        "summary",
        gettext_lazy("Summary"),
        gettext_lazy("Check and open"),
        gettext_lazy("Nothing happens until you confirm it."),
        ("second",),
    ),
)
SUMMARY = STEPS[-1]
BACK = "back"
# Leaves the dates and the privacy as the pages suggest them.
SUGGESTED = "suggested"


@needs(C.MANAGE_SURVEYS)
def administration_open(request: StaffRequest) -> HttpResponse:
    """Begin a draft with the first step."""
    draft = Draft()
    # The page of a survey leads here.
    if published := request.GET.get("published", ""):
        draft.values["published"] = [published]
    return _answer_step(request, draft, STEPS[0])


@needs(C.MANAGE_SURVEYS)
def administration_open_step(
    request: StaffRequest, draft: str, step: str
) -> HttpResponse:
    """Show or save one step of a draft; the last one opens the administration."""
    position = next((n for n, row in enumerate(STEPS) if row.name == step), None)
    if position is None:
        raise Http404
    stored = find_draft(request.session, draft)
    if stored is None:
        return _leave_draft(request, draft)
    reached = _first_open_step(stored)
    if position > STEPS.index(reached):
        return _redirect_to(stored, reached)
    if request.method == "POST" and request.POST.get("revision") != str(
        stored.revision
    ):
        messages.warning(
            request,
            _(
                "This draft was changed in another tab or window. You see its newest"
                " state; check it and go on."
            ),
        )
        return _redirect_to(stored, STEPS[position])
    if STEPS[position] is SUMMARY:
        if BACK in request.POST:
            return _redirect_to(stored, STEPS[position - 1])
        return _check_and_open(request, stored)
    return _answer_step(request, stored, STEPS[position])


def _leave_draft(request: StaffRequest, draft: str) -> HttpResponse:
    """Lead from a draft that is gone to what was opened from it, or to a new one."""
    pk = opened_from(request.session, draft)
    opened = Administration.objects.filter(pk=pk or 0)
    if administration := opened.only("denominator").first():
        return _go_on(administration)
    messages.warning(
        request,
        _(
            "This draft is finished or too old, so begin again. The list of survey"
            " rounds shows whether it was opened."
        ),
    )
    return redirect("administration_open")


def _answer_step(request: StaffRequest, draft: Draft, step: Step) -> HttpResponse:
    """Show the form of a step, or save it and lead to the next or the one before."""
    posted = request.method == "POST"
    # A suggestion is shown until the step was sent once.
    is_answered = posted or any(name in draft.values for name in step.fields)
    answers = draft.answers()
    if posted:
        draft.answer(request.POST, step.fields)
        answers = draft.answers()
        answers["q"] = request.POST.get("q", "")
    form = OpenAdministrationForm(
        answers,
        permissions=request.permissions,
        only=(*step.fields, "q"),
        is_answered=is_answered,
    )
    # Enter presses the first button, also in the field of a search.
    searches = AGAIN in request.POST or ("enter" in request.POST and form.searched)
    if not posted or searches:
        form.skip_validation()
    else:
        is_valid = form.is_valid()
        goes_back = BACK in request.POST
        if is_valid or goes_back:
            # Going back keeps what was typed, even if it is not complete, but it
            # confirms nothing.
            if not is_valid and step.name in draft.done:
                draft.done.remove(step.name)
            elif not goes_back and step.name not in draft.done:
                draft.done.append(step.name)
            if is_valid and SUGGESTED in request.POST:
                _take_suggestions(draft, request.permissions)
            save_draft(request.session, draft)
            return _redirect_to(draft, _step_after(draft, step, goes_back))
    position = STEPS.index(step)
    context = {
        **_frame(draft, step),
        "form": form,
        "previous": STEPS[position - 1] if position else None,
        "may_skip": step.name == "people" and not {"dates", "privacy"} & {*draft.done},
        "surveys": position or surveys_to_offer(request.permissions).exists(),
        "drafts": [] if draft.revision else drafts_of(request.session),
    }
    return render(
        request, f"survey/console/administration_open_{step.name}.html", context
    )


def _take_suggestions(draft: Draft, permissions: Permissions) -> None:
    """Answer the steps that are left as their pages would suggest it."""
    for step in STEPS[:-1]:
        if step.name in draft.done:
            continue
        form = OpenAdministrationForm(
            draft.answers(),
            permissions=permissions,
            only=step.fields,
            is_answered=False,
        )
        for name in form.fields:
            field = form[name]
            shown = field.value()
            # A box has no value of its own: ticked, browsers send this.
            value = "on" if shown is True else field.field.widget.format_value(shown)
            values = value if isinstance(value, list) else [value]
            draft.values[name] = [text for text in values if text]
        draft.done.append(step.name)


def _first_open_step(draft: Draft) -> Step:
    return next((step for step in STEPS if step.name not in draft.done), SUMMARY)


def _step_after(draft: Draft, step: Step, goes_back: bool) -> Step:
    if goes_back:
        return STEPS[STEPS.index(step) - 1]
    # After a change from the summary, back to the summary.
    if _first_open_step(draft) is SUMMARY:
        return SUMMARY
    return STEPS[STEPS.index(step) + 1]


def _redirect_to(draft: Draft, step: Step) -> HttpResponse:
    return redirect("administration_open_step", draft.key, step.name)


def _frame(draft: Draft, step: Step) -> dict[str, object]:
    """Return what all steps show: where the user is, and the steps to go to."""
    reached = STEPS.index(_first_open_step(draft))
    return {
        "draft": draft,
        "step": step,
        "position": STEPS.index(step) + 1,
        "steps": [
            (
                row,
                reverse("administration_open_step", args=[draft.key, row.name])
                if draft.revision and position <= reached
                else "",
            )
            for position, row in enumerate(STEPS)
        ],
    }


# The summary


def _check_and_open(request: StaffRequest, draft: Draft) -> HttpResponse:
    answers = draft.answers()
    if request.method != "POST":
        form = OpenAdministrationForm(answers, permissions=request.permissions)
        form.is_valid()
        # A second one is a question, not a mistake, until the button is pressed.
        form.errors.pop("second", None)
        return _render_summary(request, draft, form)
    answers["second"] = request.POST.get("second", "")
    # The second of two clicks or tabs waits here, and then finds what was opened.
    with transaction.atomic():
        if not lock_draft(request.session, draft):
            return _leave_draft(request, draft.key)
        form = OpenAdministrationForm(answers, permissions=request.permissions)
        if form.is_valid():
            try:
                administration = _open(request, form)
            except ValidationError as error:
                show_errors(form, error)
            else:
                note_opened(request.session, draft, administration.pk)
                request.session.save()
                messages.success(request, _opened(administration))
                return _go_on(administration)
    return _render_summary(request, draft, form)


def _go_on(administration: Administration) -> HttpResponse:
    is_count = administration.denominator == Denominator.COUNT
    next_page = "open_codes_list" if is_count else "roster_upload"
    return redirect(next_page, administration.pk)


def _render_summary(
    request: StaffRequest, draft: Draft, form: OpenAdministrationForm
) -> HttpResponse:
    context = {
        **_frame(draft, SUMMARY),
        "form": form,
        "previous": STEPS[-2],
        "problems": list(_problems(form, draft)),
        "sentence": "" if form.errors.keys() - {"second"} else _sentence(form),
        "is_planned": _is_planned(form),
        "are_cards_drawn": _are_cards_drawn(form),
        # Coordinators never see it of teachers, so there is no other choice.
        "may_name_cards": form.cleaned_data.get("role") != Role.TEACHER,
        "facts": [(step, list(_facts(form, step))) for step in STEPS[:-1]],
    }
    return render(request, "survey/console/administration_open_summary.html", context)


def _is_planned(form: OpenAdministrationForm) -> bool:
    opens_at = form.cleaned_data.get("opens_at")
    return opens_at is not None and opens_at > timezone.now()


def _are_cards_drawn(form: OpenAdministrationForm) -> bool:
    """Tell whether login cards will have no names, so that people draw one.

    Then subgroups of the roster are stored next to answers all the same, but they
    are those of the person whose card it was.
    """
    cleaned = form.cleaned_data
    if cleaned.get("denominator") != Denominator.ROSTER or "privacy" not in cleaned:
        return False
    return Administration(
        role=cleaned.get("role", ""),
        coordinators_see_finished=cleaned["coordinators_see_finished"],
    ).is_completion_confidential


def _problems(form: OpenAdministrationForm, draft: Draft) -> Iterator[tuple[str, str]]:
    """Yield each error, and the address of the step to correct it in."""
    for name, errors in form.errors.items():
        step = next((step for step in STEPS if name in step.fields), None)
        address = ""
        if step is SUMMARY:
            address = "#id_second"
        elif step is not None:
            address = reverse("administration_open_step", args=[draft.key, step.name])
        for error in errors:
            label = form.fields[name].label if name in form.fields else ""
            yield (f"{label}: {error}" if label else str(error)), address


def _sentence(form: OpenAdministrationForm) -> str:
    """Say in one sentence what opening will do."""
    cleaned = form.cleaned_data
    schools = schools_offered(form.chosen_owner, *cleaned["places"]).count()
    clauses = [
        ngettext(
            "%(audience)s in %(n)s school can answer “%(survey)s” from %(opens)s until"
            " %(closes)s",
            "%(audience)s in %(n)s schools can answer “%(survey)s” from %(opens)s until"
            " %(closes)s",
            schools,
        )
        % {
            "audience": capfirst(Administration(role=cleaned["role"]).audience),
            "n": f"{schools:,}",
            "survey": cleaned["published"].survey.title_to_read,
            "opens": format_moment(cleaned["opens_at"]),
            "closes": format_moment(cleaned["closes_at"]),
        },
        _("anyone with a school's link can take part")
        if cleaned["denominator"] == Denominator.COUNT
        else _("each person on a roster gets a login card"),
    ]
    if cleaned["requires_consent"]:
        clauses.append(_("only people whose consent is recorded can start"))
    clauses += [
        _("coordinators see who has finished, by name")
        if cleaned["coordinators_see_finished"]
        else _("nobody at school sees who has finished"),
        ngettext(
            "results are shown where at least %(n)s person answered",
            "results are shown where at least %(n)s people answered",
            cleaned["minimum_group"],
        )
        % {"n": cleaned["minimum_group"]},
    ]
    sentence = "; ".join(clauses) + "."
    if _is_planned(form):
        opens = _("It opens by itself on %(opens)s; nobody can start before then.")
        sentence += " " + opens % {"opens": format_moment(cleaned["opens_at"])}
    return sentence


def _facts(form: OpenAdministrationForm, step: Step) -> Iterator[str]:
    """Yield the answers of a step in words; wrong ones are among the problems."""
    cleaned = form.cleaned_data
    match step.name:
        case "questions":
            if published := cleaned.get("published"):
                yield published.survey.full_title
        case "people":
            if role := cleaned.get("role"):
                yield form.label_of("role", role)
            if denominator := cleaned.get("denominator"):
                yield form.label_of("denominator", denominator)
            if cleaned.get("scope") == EVERYWHERE:
                yield form.everywhere
            else:
                labels = [label for _value, label in form.chosen_places]
                yield from labels[:MAX_NAMES]
                if labels[MAX_NAMES:]:
                    yield _("and %(n)s more") % {"n": len(labels) - MAX_NAMES}
        case "dates":
            if opens_at := cleaned.get("opens_at"):
                yield _("Opens %(moment)s") % {"moment": format_moment(opens_at)}
            if closes_at := cleaned.get("closes_at"):
                yield _("Closes %(moment)s") % {"moment": format_moment(closes_at)}
            if season := cleaned.get("new_wave") or cleaned.get("wave"):
                yield _("Season: %(season)s") % {"season": season}
            else:
                yield _("No season")
        case "privacy":
            yield from _privacy_facts(form)


def _privacy_facts(form: OpenAdministrationForm) -> Iterator[str]:
    cleaned = form.cleaned_data
    if privacy := cleaned.get("privacy"):
        yield {
            Privacy.CONFIDENTIAL: _(
                "Confidential: nobody at school sees who has finished, only how many"
            ),
            Privacy.COORDINATORS: _("Coordinators see who has finished, by name"),
            Privacy.CONSENT: _(
                "Consent first: only people whose consent is recorded can start"
            ),
        }[Privacy(privacy)]
    for name in (
        "consent_shows_finished",
        "allows_declining",
        "public_questions",
        "replays_answers",
        "messages_have_names",
        "messages_have_codes",
        "joins_waves",
    ):
        # With another choice, the first of them says nothing.
        if cleaned.get(name) and (
            name != "consent_shows_finished" or privacy == Privacy.CONSENT
        ):
            yield str(form.fields[name].label)
    if pages := cleaned.get("district_pages_limit"):
        yield ngettext(
            "Each district may add %(n)s page",
            "Each district may add up to %(n)s pages",
            pages,
        ) % {"n": pages}
    # Those that were suggested need no check.
    if cleaned.get("subgroups", default_subgroups()) != default_subgroups():
        columns = len(cleaned["subgroups"])
        yield ngettext(
            "%(n)s subgroup column of the roster is stored next to answers",
            "%(n)s subgroup columns of the roster are stored next to answers",
            columns,
        ) % {"n": columns}


def _opened(administration: Administration) -> str:
    """Say that it is open, and lead to the next step: nobody can begin before."""
    is_planned = administration.state == Administration.State.PLANNED
    if administration.denominator == Denominator.COUNT:
        words = (
            _(
                "%(title)s will open on %(opens)s. Next, create school links"
                " for the schools."
            )
            if is_planned
            else _("%(title)s is open. Next, create school links for the schools.")
        )
    else:
        words = (
            _(
                "%(title)s will open on %(opens)s. Next, upload a roster to"
                " invite people."
            )
            if is_planned
            else _("%(title)s is open. Next, upload a roster to invite people.")
        )
    return words % {
        "title": administration.title,
        "opens": format_moment(administration.opens_at),
    }


def _open(request: StaffRequest, form: OpenAdministrationForm) -> Administration:
    cleaned = form.cleaned_data
    owner = form.chosen_owner
    districts, schools = cleaned["places"]
    # A new wave is not kept if the administration is refused.
    with transaction.atomic():
        wave = cleaned["wave"]
        if name := cleaned["new_wave"]:
            try:
                wave = get_or_create_wave(
                    name=name, district=owner, by=request.user, request=request
                )
            except ValidationError as error:
                raise ValidationError({"new_wave": error.messages}) from error
        return open_administration(
            name=suggest_name(
                role=cleaned["role"], wave=wave.name if wave else "", district=owner
            ),
            district=owner,
            districts=districts,
            schools=schools,
            by=request.user,
            request=request,
            **{**form.columns, "wave": wave},
        )
