"""Start a survey: empty, from a template, or as a copy or new version."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.utils.text import capfirst
from django.utils.translation import get_language, gettext_lazy, ngettext
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from accounts import forms
from accounts.access import needs
from accounts.console.listing import Listing
from accounts.http import StaffRequest
from accounts.models import District
from accounts.permissions import Capability, Permissions
from survey.console.administrations.fields import with_hint
from survey.console.surveys.places import address_of_editor
from survey.console.surveys.views import STATE, owners_of, survey_or_404
from survey.instrument.definitions.ownership import same_title_warning, surveys_for
from survey.instrument.drafts.beginnings import (
    book_of_sheets,
    empty_book,
    name_for,
    next_version,
    versions_of,
)
from survey.instrument.drafts.commands import title_of
from survey.instrument.drafts.drafting import start_draft
from survey.instrument.drafts.names import fix_names
from survey.instrument.drafts.store import NameIsTaken, load_book
from survey.instrument.drafts.workbook import DraftBook
from survey.instrument.templates.catalog import Template, sheets_of, templates
from survey.instrument.xlsform.languages import Language, own_name
from survey.instrument.xlsform.reading import LONGEST_SETTING
from survey.models import Survey

LONGEST_TITLE = 200
# Those of most schools; any other is added in the editor.
LANGUAGES = ("en", "es", "ar", "zh-Hans", "vi", "so", "hmn", "fr", "pt", "ru")
NAMES = {"zh-Hans": "简体中文", "so": "Soomaali", "hmn": "Hmoob"}


def name_of(code: str) -> str:
    return NAMES.get(code) or capfirst(own_name(code))


class StartForm(forms.Form):
    """Ask for the title, and for the owner where the user has a choice."""

    title = forms.CharField(
        label=gettext_lazy("Title"),
        max_length=LONGEST_TITLE,
        help_text=gettext_lazy("Respondents see it at the top of the survey."),
        error_messages={"required": gettext_lazy("Enter a title.")},
    )

    def __init__(self, permissions: Permissions, data: QueryDict | None = None) -> None:
        super().__init__(data)
        self.owners = owners_of(permissions)
        if len(self.owners) > 1:
            self.fields["owner"] = forms.ChoiceField(
                label=_("Owner"),
                help_text=_(
                    "Questionnaires of the state can be used in every district."
                ),
                choices=self.owners,
            )

    def district(self) -> District | None:
        """Return the chosen owner; None is the state."""
        chosen = self.cleaned_data.get("owner", self.owners[0][0])
        return None if chosen == STATE else District.objects.get(pk=chosen)


class EmptyForm(StartForm):
    language = forms.ChoiceField(
        label=gettext_lazy("Language in which you write"), initial="en"
    )
    translations = forms.MultipleChoiceField(
        label=gettext_lazy("Languages of the translations"),
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text=gettext_lazy("You can add more later."),
    )
    field_order = ("title", "language", "translations", "owner")

    def __init__(self, permissions: Permissions, data: QueryDict | None = None) -> None:
        super().__init__(permissions, data)
        choices = [(code, name_of(code)) for code in LANGUAGES]
        for name in ("language", "translations"):
            self.fields[name].choices = choices  # type: ignore[attr-defined]
        self.order_fields(self.field_order)

    def languages(self) -> list[Language]:
        codes = [self.cleaned_data["language"], *self.cleaned_data["translations"]]
        return [Language(code, name_of(code)) for code in dict.fromkeys(codes)]


class TemplateForm(StartForm):
    template = forms.ChoiceField(
        label=gettext_lazy("Template"),
        widget=forms.RadioSelect,
        error_messages={"required": gettext_lazy("Choose a template.")},
    )
    field_order = ("template", "title", "owner")

    def __init__(self, permissions: Permissions, data: QueryDict | None = None) -> None:
        super().__init__(permissions, data)
        self.fields["template"].choices = [  # type: ignore[attr-defined]
            (row.key, with_hint(_in_words(row.title), _summary_of(row)))
            for row in templates()
        ]
        self.fields["title"].required = False
        self.fields["title"].help_text = _(
            "Without one, the survey has the title of the template."
        )
        self.order_fields(self.field_order)


class VersionForm(StartForm):
    """Ask for the number of a version of a survey that has its title already."""

    version = forms.CharField(
        label=gettext_lazy("Version"),
        max_length=LONGEST_SETTING,
        help_text=gettext_lazy("Such as 2 or 2027.1."),
        error_messages={"required": gettext_lazy("Enter a version.")},
    )
    field_order = ("version", "owner")

    def __init__(
        self, permissions: Permissions, survey: Survey, data: QueryDict | None = None
    ) -> None:
        super().__init__(permissions, data)
        del self.fields["title"]
        owner = str(survey.district_id or STATE)
        values = [value for value, _name in self.owners]
        if owner not in values:
            owner = values[0]
        self.initial["owner"] = owner
        district = None if owner == STATE else District.objects.get(pk=owner)
        self.initial["version"] = next_version(
            survey.version, versions_of(survey, district)
        )
        self.order_fields(self.field_order)


def posted(request: StaffRequest) -> QueryDict | None:
    return request.POST if request.method == "POST" else None


def _in_words(texts: dict[str, str]) -> str:
    """Return a text in the reader's language, or the first."""
    return texts.get(get_language() or "") or next(iter(texts.values()))


def _summary_of(template: Template) -> str:
    questions = ngettext("%(n)s question", "%(n)s questions", template.questions) % {
        "n": template.questions
    }
    return _("%(description)s %(questions)s, about %(minutes)s minutes.") % {
        "description": _in_words(template.description),
        "questions": questions,
        "minutes": template.minutes,
    }


@needs(Capability.MANAGE_SURVEYS)
@require_safe
def survey_new(request: StaffRequest) -> HttpResponse:
    """Ask how to start."""
    return render(request, "survey/console/survey_new.html")


@needs(Capability.MANAGE_SURVEYS)
def survey_new_empty(request: StaffRequest) -> HttpResponse:
    form = EmptyForm(request.permissions, posted(request))
    if request.method == "POST" and form.is_valid():
        title = form.cleaned_data["title"]
        book = empty_book(title, form.languages())
        if started := _start(request, form, book, title=title):
            return started
    return _show(request, form, heading=_("Start from an empty questionnaire"))


@needs(Capability.MANAGE_SURVEYS)
def survey_new_template(request: StaffRequest) -> HttpResponse:
    form = TemplateForm(request.permissions, posted(request))
    if request.method == "POST" and form.is_valid():
        book = book_of_sheets(sheets_of(form.cleaned_data["template"]))
        title = form.cleaned_data["title"] or title_of(book)
        if started := _start(request, form, book, title=title):
            return started
    return _show(
        request,
        form,
        heading=_("Start from a template"),
        purpose=_("Take a finished questionnaire and change what you need."),
    )


@needs(Capability.MANAGE_SURVEYS)
def survey_new_paste(request: StaffRequest) -> HttpResponse:
    """Start an empty survey, and go on to paste its questions."""
    form = EmptyForm(request.permissions, posted(request))
    if request.method == "POST" and form.is_valid():
        title = form.cleaned_data["title"]
        book = empty_book(title, form.languages())
        if started := _start(
            request, form, book, title=title, then="survey_edit_paste"
        ):
            return started
    return _show(
        request,
        form,
        heading=_("Start from a document or an e-mail"),
        purpose=_("You paste the questions in the next step."),
    )


@needs(Capability.MANAGE_SURVEYS)
@require_safe
def survey_new_copy(request: StaffRequest) -> HttpResponse:
    """List the surveys that can be copied."""
    surveys = surveys_for(request.permissions).select_related("district", "retirement")
    listing = Listing(
        request,
        surveys,
        search=("name", "version", "title", "district__name"),
        sorts={"newest": ("-created_at",), "name": ("name", "version")},
    )
    return listing.render("survey/console/survey_new_copy.html", {})


@needs(Capability.MANAGE_SURVEYS)
def survey_copy(request: StaffRequest, pk: int) -> HttpResponse:
    """Copy a survey under another name."""
    survey = survey_or_404(request, pk)
    form = StartForm(request.permissions, posted(request))
    form.initial["title"] = _("Copy of %(title)s") % {"title": survey.default_title}
    if request.method == "POST" and form.is_valid():
        title = form.cleaned_data["title"]
        book = fix_names(load_book(survey))
        if started := _start(request, form, book, title=title):
            return started
    return _show(
        request,
        form,
        survey=survey,
        heading=_("Copy"),
        purpose=_(
            "Make a new survey with the same questions. Results of the two are not"
            " compared."
        ),
    )


@needs(Capability.MANAGE_SURVEYS)
def survey_new_version(request: StaffRequest, pk: int) -> HttpResponse:
    """Start the next version of a survey."""
    survey = survey_or_404(request, pk)
    form = VersionForm(request.permissions, survey, posted(request))
    if request.method == "POST" and form.is_valid():
        started = _start(
            request,
            form,
            fix_names(load_book(survey)),
            name=survey.name,
            version=form.cleaned_data["version"],
        )
        if started:
            return started
    return _show(
        request,
        form,
        survey=survey,
        heading=_("New version"),
        purpose=_(
            "Start a draft with the same questions and names, so that results can be"
            " compared over time. This version stays as it is."
        ),
    )


def _start(
    request: StaffRequest,
    form: StartForm,
    book: DraftBook,
    *,
    title: str = "",
    name: str = "",
    version: str = "1",
    then: str = "",
) -> HttpResponse | None:
    """Start the draft and go to its editor, or `then`; None if its name is taken."""
    district = form.district()
    try:
        survey = start_draft(
            book=book,
            name=name or name_for(title, district),
            version=version,
            title=title or title_of(book),
            district=district,
            by=request.user,
            request=request,
        )
    except NameIsTaken as error:
        form.add_error("version" if "version" in form.fields else None, str(error))
        return None
    # A new version has the title of the one before.
    if not name and (warning := same_title_warning(request.permissions, survey)):
        messages.warning(request, warning)
    return redirect(then, survey.pk) if then else redirect(address_of_editor(survey))


def _show(
    request: StaffRequest,
    form: StartForm,
    *,
    heading: str,
    purpose: str = "",
    survey: Survey | None = None,
) -> HttpResponse:
    return render(
        request,
        "survey/console/survey_start.html",
        {"form": form, "heading": heading, "purpose": purpose, "survey": survey},
    )
