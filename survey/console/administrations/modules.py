"""The page on which districts add questions of their own to a round of the state."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.db.models import Model
from django.http import Http404, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from accounts import forms
from accounts.access import needs
from accounts.http import StaffRequest
from accounts.models import District
from accounts.permissions import Capability as C
from accounts.permissions import Permissions
from survey.console.administrations.fields import SurveyField, with_hint
from survey.console.administrations.forms import show_errors
from survey.fieldwork.administrations import has_people
from survey.fieldwork.administrations.modules import (
    add_module,
    change_questions,
    districts_to_add_in,
    modules_with_pages,
    set_stopped,
    surveys_of_modules,
)
from survey.fieldwork.administrations.queries import administration_or_404
from survey.models import Administration, PublishedSurvey

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise


class ShortSurveyField(SurveyField):
    """Surveys with their numbers of pages, which `surveys_of_modules` counts."""

    def label_from_instance(self, published: Model) -> str:
        survey = cast(PublishedSurvey, published).survey
        pages: int = published.pages  # type: ignore[attr-defined]
        words = ngettext("%(n)s page", "%(n)s pages", pages) % {"n": pages}
        version = _("Version %(version)s") % {"version": survey.version}
        languages = ", ".join(language["name"] for language in survey.languages)
        hint = " · ".join((version, words, languages))
        return with_hint(survey.title_to_read, hint)


class ModuleForm(forms.Form):
    """Chooses the questionnaire of one district. A page has one for each district."""

    district = forms.IntegerField(widget=forms.HiddenInput)
    published = ShortSurveyField(
        queryset=PublishedSurvey.objects.none(),
        label=gettext_lazy("Questionnaire"),
        empty_label=None,
        error_messages={
            "required": gettext_lazy("Choose a questionnaire."),
            "invalid_choice": gettext_lazy("Choose one of these questionnaires."),
        },
    )

    def __init__(
        self,
        data: QueryDict | None,
        *,
        permissions: Permissions,
        state_round: Administration,
        district: District,
        module: Administration | None,
    ) -> None:
        super().__init__(
            data,
            prefix=f"d{district.pk}",
            initial={
                "district": district.pk,
                "published": module.published_id if module else None,
            },
        )
        self.of, self.module = district, module
        field = cast(ShortSurveyField, self.fields["published"])
        field.queryset = surveys_of_modules(permissions, state_round, district)
        field.widget = forms.RadioSelect()
        field.widget.choices = field.choices
        self.has_surveys = field.queryset.exists()
        self.is_frozen = module is not None and has_people(module)


@needs(C.MANAGE_SURVEYS)
def administration_modules(request: StaffRequest, pk: int) -> HttpResponse:
    """Show the modules of a round that the user may see; add one, or change it.

    The state reads who asks what, and no answers.
    """
    permissions = request.permissions
    state_round = administration_or_404(permissions, pk, C.MANAGE_SURVEYS)
    if state_round.district_id is not None:
        raise Http404
    districts = districts_to_add_in(permissions, state_round)
    is_state = permissions.places(C.MANAGE_SURVEYS).state
    if is_state and "module" in request.POST:
        _stop_or_allow(request, state_round)
        return redirect("administration_modules", pk)
    keys = District.objects.filter(pk__in=[district.pk for district in districts])
    modules = list(modules_with_pages(state_round, None if is_state else keys))
    of_district = {module.district_id: module for module in modules}
    sent = request.POST.get("form") if request.method == "POST" else None
    forms_of_districts = [
        ModuleForm(
            request.POST if sent == str(district.pk) else None,
            permissions=permissions,
            state_round=state_round,
            district=district,
            module=of_district.get(district.pk),
        )
        for district in districts
    ]
    for form in forms_of_districts:
        if form.is_bound and form.is_valid() and _save(request, state_round, form):
            return redirect("administration_modules", pk)
    context = {
        "administration": state_round,
        "forms": forms_of_districts,
        "modules": modules if is_state else None,
        "limit": _limit_in_words(state_round),
    }
    return render(request, "survey/console/administration_modules.html", context)


def _stop_or_allow(request: StaffRequest, state_round: Administration) -> None:
    """Stop a module, or allow it again, as the state decides."""
    key = request.POST["module"]
    modules = modules_with_pages(state_round)
    module = get_object_or_404(modules, pk=key if key.isdecimal() else 0)
    is_stopped = "stop" in request.POST
    set_stopped(module=module, is_stopped=is_stopped, by=request.user, request=request)
    words = (
        _("Nobody goes on to the questions of %(district)s any more.")
        if is_stopped
        else _("The questions of %(district)s are allowed again.")
    )
    messages.success(request, words % {"district": module.district})


def _save(request: StaffRequest, state_round: Administration, form: ModuleForm) -> bool:
    published = form.cleaned_data["published"]
    words: StrOrPromise
    try:
        if form.module is None:
            add_module(
                state_round=state_round,
                district=form.of,
                published=published,
                by=request.user,
                request=request,
            )
            words = _("%(survey)s follows after the state's last page.")
        else:
            change_questions(
                module=form.module,
                published=published,
                by=request.user,
                request=request,
            )
            words = _("%(survey)s now follows after the state's last page.")
    except ValidationError as error:
        show_errors(form, error)
        return False
    title = published.survey.title_to_read
    messages.success(request, words % {"survey": title})
    return True


def _limit_in_words(state_round: Administration) -> str:
    limit = state_round.district_pages_limit
    if not limit:
        return _("The state does not let districts add pages to this survey round.")
    return ngettext(
        "The state lets each district add at most %(n)s page.",
        "The state lets each district add at most %(n)s pages.",
        limit,
    ) % {"n": limit}
