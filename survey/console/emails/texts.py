"""The texts of e-mails: writing, previewing, and test e-mails to oneself."""

from __future__ import annotations

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.db import transaction
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from accounts import audit
from accounts.access import needs
from accounts.console.listing import LONGEST_SEARCH
from accounts.http import StaffRequest
from accounts.permissions import Capability as C
from survey.console.administrations.forms import show_errors
from survey.console.emails.forms import LANGUAGES, TextForm
from survey.console.emails.views import schedule_or_404
from survey.console.people.scope import respondent_or_404
from survey.console.people.search import find_people
from survey.fieldwork.administrations.queries import own_administration_or_404
from survey.fieldwork.emails import schedules
from survey.fieldwork.emails.samples import (
    latest_test_email,
    order_test_email,
    person_of,
    sample_person,
    write_sample,
)
from survey.fieldwork.emails.templates import SECRET, VARIABLES
from survey.instrument.definitions.schema import load_definition
from survey.models import Administration, EmailStep
from survey.work.job_turns import TooManyJobs

MAX_PEOPLE_SHOWN = 20


@needs(C.MANAGE_SURVEYS)
def emails_text(
    request: StaffRequest, pk: int, step: int, language: str
) -> HttpResponse:
    """Write the text of one e-mail in one language; show how it looks."""
    administration, email_step = _step_or_404(request, pk, step)
    template = email_step.templates.filter(language=language).first()
    languages = languages_of(email_step, administration)
    if language not in languages:
        raise Http404
    initial = {"subject": template.subject, "body": template.body} if template else {}
    form = TextForm(request.POST or None, language=language, initial=initial)
    if form.is_bound and form.is_valid():
        try:
            schedules.write_template(
                step=email_step,
                language=language,
                subject=form.cleaned_data["subject"],
                body=form.cleaned_data["body"],
                by=request.user,
                request=request,
            )
        except ValidationError as error:
            show_errors(form, error)
        else:
            messages.success(
                request,
                _("The text in %(languages)s was saved.")
                % {"languages": languages[language]},
            )
            return redirect("emails_text", pk, step, language)
    context = {
        "administration": administration,
        "step": email_step,
        "language": language,
        "languages": languages.items(),
        "form": form,
        "template": template,
        "variables": [(f"{{{name}}}", VARIABLES[name]) for name in VARIABLES],
        "secret": [f"{{{name}}}" for name in VARIABLES if name in SECRET],
    }
    if template is not None:
        person = sample_person(language, request.user.email, administration)
        context["sample"] = write_sample(email_step, administration, person)
        context["job"] = latest_test_email(template, request.user)
    return render(request, "survey/console/emails_text.html", context)


def languages_of(step: EmailStep, administration: Administration) -> dict[str, str]:
    """Return the languages that a text has or may get, with their names."""
    definition = load_definition(administration.published.definition)
    names: dict[str, str] = {}
    for language in definition["languages"]:
        code = language["code"].replace("_", "-").lower()
        names[code] = LANGUAGES.get(code, language["name"])
    for code in step.templates.values_list("language", flat=True):
        names.setdefault(code, LANGUAGES.get(code, code))
    return names


@needs(C.MANAGE_SURVEYS)
@require_POST
def emails_test(
    request: StaffRequest, pk: int, step: int, language: str
) -> HttpResponse:
    """Send the text to the user's own address, from a worker."""
    _, email_step = _step_or_404(request, pk, step)
    template = get_object_or_404(email_step.templates, language=language)
    try:
        order_test_email(template, request.user)
    except TooManyJobs as refused:
        messages.error(request, str(refused))
    return redirect("emails_text", pk, step, language)


@needs(C.MANAGE_SURVEYS)
@require_safe
def emails_preview(request: StaffRequest, pk: int, step: int) -> HttpResponse:
    """Show an e-mail as a chosen person gets it, with an example of a code."""
    administration, email_step = _step_or_404(request, pk, step)
    query = request.GET.get("q", "")[:LONGEST_SEARCH].replace("\x00", "").strip()
    context: dict[str, object] = {
        "administration": administration,
        "step": email_step,
        "query": query,
    }
    if key := request.GET.get("person", ""):
        if not key.isascii() or not key.isdecimal() or len(key) > 18:
            raise Http404
        context |= _preview(request, administration, email_step, int(key))
    elif query:
        people, _ = find_people(request.permissions, administration, query)
        people = people.filter(identity__email__gt="", withdrawn_at=None)
        people = people.select_related("identity", "school").order_by("pk")
        shown = list(people[:MAX_PEOPLE_SHOWN])
        context["people"] = shown
        audit.record(
            "look at people",
            by=request.user,
            request=request,
            subject=administration,
            district=administration.district,
            after={"searched": True, "people": len(shown)},
        )
    return render(request, "survey/console/emails_preview.html", context)


def _preview(
    request: StaffRequest, administration: Administration, step: EmailStep, pk: int
) -> dict[str, object]:
    person = respondent_or_404(request, administration, pk)
    identity = getattr(person, "identity", None)
    if identity is None or not identity.email or person.withdrawn_at:
        raise Http404
    with transaction.atomic():
        audit.record(
            "preview an e-mail",
            by=request.user,
            request=request,
            subject=person,
            school=person.school,
            after={"administration": str(administration), "e-mail": str(step)},
        )
    return {
        "person": person,
        "sample": write_sample(step, administration, person_of(person)),
    }


def _step_or_404(
    request: StaffRequest, pk: int, step: int
) -> tuple[Administration, EmailStep]:
    administration = own_administration_or_404(request.permissions, pk)
    schedule = schedule_or_404(administration)
    email_step = get_object_or_404(schedule.steps, pk=step)
    email_step.schedule = schedule
    return administration, email_step
