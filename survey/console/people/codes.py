"""Show one person's access code, or issue a new one."""

from __future__ import annotations

from django.contrib import messages
from django.db import transaction
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from accounts import audit
from accounts.access import needs
from accounts.http import StaffRequest
from accounts.permissions import Capability as C
from survey.console.people.scope import respondent_or_404
from survey.fieldwork.administrations.queries import administration_or_404
from survey.fieldwork.emails.suppression import is_suppressed
from survey.fieldwork.login_cards.card_sets import (
    mark_sets_of_person_outdated,
    order_cards,
)
from survey.models import CardSet, Respondent
from survey.people.new_codes import reissue
from survey.work.job_turns import TooManyJobs

# In the session: the person whose code the next page shows once, never the
# code itself.
SHOW_CODE_ONCE = "code_to_show"


@needs(C.SEE_IDENTITIES)
@require_POST
def people_code(request: StaffRequest, pk: int, respondent: int) -> HttpResponse:
    """Show a person's code once, on the next page.

    A person who has started gets a new code, so that staff never hold a code
    under which answers were given.
    """
    person = _person_or_404(request, pk, respondent)
    if refuses_code(request, person):
        return redirect("people_detail", pk, person.pk)
    if person.administration.is_completion_confidential:
        raise Http404
    if person.started_at:
        return _issue_new_code(request, person)
    audit.record(
        "show an access code",
        by=request.user,
        request=request,
        subject=person,
        school=person.school,
        after={"issue": person.issue},
    )
    return _redirect_and_show_code(request, person)


@needs(C.MANAGE_ROSTERS)
def people_reissue(request: StaffRequest, pk: int, respondent: int) -> HttpResponse:
    """Say what a new code means, and issue it once confirmed.

    It is shown, or e-mailed where completion is confidential.
    """
    person = _person_or_404(request, pk, respondent)
    if refuses_code(request, person):
        return redirect("people_detail", pk, person.pk)
    if request.method == "POST":
        return _issue_new_code(request, person)
    confidential = _check_may_get_new_code(request, person)
    identity = getattr(person, "identity", None)
    return render(
        request,
        "survey/console/people_reissue.html",
        {
            "administration": person.administration,
            "person": person,
            "identity": identity,
            "shows_progress": not confidential,
            "wants_no_email": bool(
                confidential and identity and is_suppressed(identity.email)
            ),
        },
    )


def _check_may_get_new_code(request: StaffRequest, person: Respondent) -> bool:
    """Return whether the new code is e-mailed. Raises Http404 if there is no way."""
    if not may_reissue(request, person):
        raise Http404
    confidential = person.administration.is_completion_confidential
    identity = getattr(person, "identity", None)
    # Without an address no one would get the new code.
    if confidential and not (identity and identity.email):
        raise Http404
    return confidential


def _issue_new_code(request: StaffRequest, person: Respondent) -> HttpResponse:
    confidential = _check_may_get_new_code(request, person)
    if confidential and refuses_email(request, person):
        return redirect("people_reissue", person.administration_id, person.pk)
    # Issue numbers may be logged; codes may not.
    before = person.issue
    try:
        with transaction.atomic():
            reissue(respondent=person)
            mark_sets_of_person_outdated(person)
            audit.record(
                "reissue an access code",
                by=request.user,
                request=request,
                subject=person,
                school=person.school,
                before={"issue": before},
                after={"issue": person.issue},
            )
            if confidential:
                order_cards(
                    administration=person.administration,
                    by=request.user,
                    school=person.school,
                    respondent=person,
                    format=CardSet.Format.EMAIL,
                )
    except TooManyJobs as refused:
        messages.error(request, str(refused))
        return redirect("people_detail", person.administration_id, person.pk)
    if confidential:
        messages.success(
            request,
            _("A new code was issued and sent by e-mail. The old one is invalid."),
        )
        return redirect("people_detail", person.administration_id, person.pk)
    messages.success(request, _("A new code was issued. The old code no longer works."))
    return _redirect_and_show_code(request, person)


def refuses_email(request: StaffRequest, person: Respondent) -> bool:
    """Tell staff that a person opted out, unless they asked for this e-mail."""
    if request.POST.get("asked") or not is_suppressed(person.identity.email):
        return False
    messages.error(
        request,
        _(
            "Nothing was sent or changed: this person gets no e-mails. Select the"
            " box if the person asked you for this one."
        ),
    )
    return True


def refuses_code(request: StaffRequest, person: Respondent) -> bool:
    """Tell staff why a person who is not invited has no card and no code.

    Somebody else, or another tab, may have changed it since the page was loaded.
    """
    if not person.withdrawn_at:
        return False
    if person.has_opted_out:
        reason = _("This person has opted out, so there is no card to print.")
    elif person.awaits_consent:
        reason = _("This person awaits consent, so there is no card to print.")
    else:
        reason = _("This person was withdrawn, so there is no card to print.")
    messages.error(request, reason)
    return True


def _person_or_404(request: StaffRequest, pk: int, respondent: int) -> Respondent:
    administration = administration_or_404(request.permissions, pk, C.SEE_IDENTITIES)
    person = respondent_or_404(request, administration, respondent)
    # With its title.
    person.administration = administration
    return person


def may_reissue(request: StaffRequest, person: Respondent) -> bool:
    return request.permissions.places(C.MANAGE_ROSTERS).has_school(person.school)


def _redirect_and_show_code(request: StaffRequest, person: Respondent) -> HttpResponse:
    request.session[SHOW_CODE_ONCE] = [person.pk, person.issue]
    return redirect("people_detail", person.administration_id, person.pk)
