"""See the measures of a survey, and change those of a draft."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import Http404, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_safe

from accounts import forms
from accounts.access import needs
from accounts.http import StaffRequest
from accounts.permissions import Capability
from survey.console.surveys.contents import contents_of
from survey.console.surveys.views import (
    own_survey_or_404,
    refreshed,
    survey_or_404,
)
from survey.instrument.definitions.ownership import may_change
from survey.instrument.definitions.schema import (
    EssentialDefinition,
    LanguageDefinition,
    MeasureDefinition,
    Measures,
    Texts,
)
from survey.instrument.drafts.measures import (
    current_measures,
    digest_of,
    may_change_measures,
    save_essential,
    save_measure,
)
from survey.instrument.drafts.names import free_name, name_from_text
from survey.instrument.drafts.reading import read_rows_of
from survey.instrument.drafts.subjects import plain_label
from survey.instrument.drafts.workbook import ChangeConflict
from survey.instrument.xlsform.measures import FEWEST_ITEMS, NEGATIVE, POSITIVE
from survey.instrument.xlsform.names import LONGEST_NAME, normalised
from survey.models import Item, Survey

LONGEST_LABEL, LONGEST_DESCRIPTION = 255, 2000
DIRECTIONS = (
    (POSITIVE, gettext_lazy("A high score is favorable.")),
    (NEGATIVE, gettext_lazy("A high score is unfavorable.")),
)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A question that a measure may have; `answers` are the first and last option."""

    name: str
    label: Texts
    answers: str = ""


@dataclass(frozen=True, slots=True)
class Grid:
    """A grid whose statements may become a measure; `query` is for its address."""

    label: str
    query: str


def candidates_of(survey: Survey) -> list[Candidate]:
    """Return the single choice questions of a draft, as its rows are now."""
    draft = read_rows_of(survey).draft
    if draft is None:
        return []
    code = survey.language_to_read
    answers = {}
    for name, options in draft.option_sets.items():
        labels = [plain_label(row.label, code) or row.value for row in options]
        ends = labels if len(labels) < 4 else [labels[0], "…", labels[-1]]
        answers[name] = " · ".join(ends)
    return [
        Candidate(item.name, item.label, answers.get(item.option_set, ""))
        for item in draft.items()
        if item.kind == Item.Kind.SELECT_ONE
    ]


def grids_of(survey: Survey, content: Measures) -> list[Grid]:
    """Return the grids of which no statement belongs to a measure yet."""
    draft = read_rows_of(survey).draft
    code = survey.language_to_read
    taken = {row["name"] for entry in content["measures"] for row in entry["items"]}
    grids = []
    for page in draft.pages if draft else ():
        for block in page.blocks:
            names = [
                item.name
                for item in block.items
                if item.kind == Item.Kind.SELECT_ONE and item.name not in taken
            ]
            label = plain_label(block.label or page.title, code)
            if block.is_grid and FEWEST_ITEMS <= len(names) == len(block.items):
                query = urlencode({"items": names, "label": label}, doseq=True)
                grids.append(Grid(label or names[0], query))
    return grids


class EssentialForm(forms.Form):
    """The name of an essential, and its label and description per language."""

    seen = forms.CharField(widget=forms.HiddenInput, max_length=64)
    name = forms.CharField(
        label=gettext_lazy("Name in files"),
        max_length=LONGEST_NAME,
        required=False,
        help_text=gettext_lazy(
            "Such as calm_school: letters, digits and _. If it is blank, it is made"
            " from the label."
        ),
    )
    # Those that most authors leave as they are.
    further: tuple[str, ...] = ("name",)

    def __init__(
        self,
        survey: Survey,
        content: Measures,
        entry: EssentialDefinition | MeasureDefinition | None,
        data: QueryDict | None = None,
    ) -> None:
        super().__init__(data)
        self.survey, self.content, self.entry = survey, content, entry
        self.initial["seen"] = digest_of(content)
        self.initial["name"] = entry["name"] if entry else ""
        languages: list[LanguageDefinition] = survey.languages
        for language in languages:
            for key, words, longest in (
                ("label", _("Label"), LONGEST_LABEL),
                ("description", _("Description"), LONGEST_DESCRIPTION),
            ):
                texts: Texts = {}
                if entry is not None:
                    texts = entry["label"] if key == "label" else entry["description"]
                widget: forms.Widget = forms.TextInput()
                if key == "description":
                    widget = forms.Textarea(attrs={"rows": 2})
                code = language["code"]
                widget.attrs |= {"lang": code, "dir": language["direction"]}
                self.fields[f"{key}-{code}"] = forms.CharField(
                    label=f"{words}, {language['name']}"
                    if len(languages) > 1
                    else words,
                    initial=texts.get(code, ""),
                    max_length=longest,
                    # As in a workbook, where it stands for the others.
                    required=key == "label" and language == languages[0],
                    widget=widget,
                )

    def texts(self, key: str) -> Texts:
        written = {
            language["code"]: normalised(
                self.cleaned_data[f"{key}-{language['code']}"].strip()
            )
            for language in self.survey.languages
        }
        return {code: text for code, text in written.items() if text}

    def add_problems(self, error: ValidationError) -> None:
        """Show what a measures sheet would be refused for at the fields."""
        first = f"label-{self.survey.languages[0]['code']}"
        for column, reasons in error.error_dict.items():
            name = first if column == "label" else column
            self.add_error(name if name in self.fields else None, reasons)

    @property
    def label(self) -> str:
        return self.cleaned_data[f"label-{self.survey.languages[0]['code']}"]

    def plain_fields(self) -> list[forms.BoundField]:
        return [field for field in self if field.name not in self.further]

    def further_fields(self) -> list[forms.BoundField]:
        return [self[name] for name in self.further]

    def is_open(self) -> bool:
        """Return whether a further field has an error to show."""
        return any(self[name].errors for name in self.further)

    def value(self) -> EssentialDefinition:
        name = self.cleaned_data["name"] or (self.entry["name"] if self.entry else "")
        entries = [*self.content["essentials"], *self.content["measures"]]
        taken = [entry["name"] for entry in entries]
        made = name_from_text(self.label) or "measure"
        return {
            "name": name or free_name(made, taken),
            "label": self.texts("label"),
            "description": self.texts("description"),
        }


class MeasureForm(EssentialForm):
    """Ask for the items, the essential and the direction of a measure as well."""

    further = ("missing", "name")

    def __init__(
        self,
        survey: Survey,
        content: Measures,
        entry: MeasureDefinition | None,
        data: QueryDict | None = None,
    ) -> None:
        super().__init__(survey, content, entry, data)
        names = [item["name"] for item in entry["items"]] if entry else []
        self.initial["direction"] = POSITIVE
        if entry:
            turned = [item["name"] for item in entry["items"] if item["reversed"]]
            self.initial.update(
                essential=entry["essential"],
                direction=entry["direction"],
                missing=" ".join(entry["missing"]),
                items=names,
                reversed=turned,
            )
        code = survey.language_to_read
        self.fields["essential"] = forms.ChoiceField(
            label=_("Theme"),
            required=False,
            choices=[("", _("None"))]
            + [
                (essential["name"], essential["label"].get(code) or essential["name"])
                for essential in content["essentials"]
            ],
        )
        self.fields["direction"] = forms.ChoiceField(
            label=_("Direction"), choices=DIRECTIONS
        )
        self.fields["missing"] = forms.CharField(
            label=_("Values that are no answer"),
            required=False,
            help_text=_("Such as the value of “I don’t know”, separated by blanks."),
        )
        taken = {
            item["name"]: measure["label"].get(code) or measure["name"]
            for measure in content["measures"]
            if measure is not entry
            for item in measure["items"]
        }
        candidates = candidates_of(survey)
        known = {candidate.name for candidate in candidates}
        # A question that is gone, or has another type now, is not dropped unseen.
        candidates += [Candidate(name, {}) for name in names if name not in known]
        self.candidates = [
            (row, row.label.get(code) or row.name, taken.get(row.name, ""))
            for row in candidates
        ]
        # Kept in their order; new ones follow in that of the survey.
        self.order = names + [row.name for row in candidates if row.name not in names]
        for name, words in (("items", _("Questions")), ("reversed", _("Reversed"))):
            self.fields[name] = forms.MultipleChoiceField(
                label=words,
                required=False,
                choices=[(item_name, item_name) for item_name in self.order],
                widget=forms.CheckboxSelectMultiple,
            )

    def plain_fields(self) -> list[forms.BoundField]:
        chosen = ("items", "reversed")
        return [row for row in super().plain_fields() if row.name not in chosen]

    def rows(self) -> list[tuple[Candidate, str, str, bool, bool]]:
        """Return each question, its label, its other measure, and what is marked."""
        chosen, turned = self["items"].value() or (), self["reversed"].value() or ()
        return [
            (row, label, taken, row.name in chosen, row.name in turned)
            for row, label, taken in self.candidates
        ]

    def clean(self) -> None:
        super().clean()
        chosen = set(self.cleaned_data.get("items", ()))
        if set(self.cleaned_data.get("reversed", ())) - chosen:
            self.add_error("items", _("Choose a question before you reverse it."))

    def measure_value(self) -> MeasureDefinition:
        given = self.cleaned_data
        return {
            **self.value(),
            "essential": given["essential"],
            "direction": given["direction"],
            "items": [
                {"name": name, "reversed": name in given["reversed"]}
                for name in self.order
                if name in given["items"]
            ],
            "missing": given["missing"].replace(",", " ").split(),
        }


@needs(Capability.MANAGE_SURVEYS)
@require_safe
def survey_measures(request: StaffRequest, pk: int) -> HttpResponse:
    """List essentials and measures, of any survey that the user may see."""
    survey = survey_or_404(request, pk)
    refreshed(survey)
    content, contents = current_measures(survey), contents_of(survey)
    code = survey.language_to_read
    used = [measure["essential"] for measure in content["measures"]]
    return render(
        request,
        "survey/console/survey_measures.html",
        {
            "survey": survey,
            "is_editable": may_change(request.permissions, survey)
            and may_change_measures(survey),
            "essentials": [
                (n, row["label"].get(code) or row["name"], row, used.count(row["name"]))
                for n, row in enumerate(content["essentials"], start=1)
            ],
            "measures": list(enumerate(contents.measures, start=1)),
        },
    )


@needs(Capability.MANAGE_SURVEYS)
def survey_essential(request: StaffRequest, pk: int, n: int) -> HttpResponse:
    """Add (0) or change the n-th essential of a draft, or remove it."""
    survey, content = _draft_or_404(request, pk)
    if n > len(content["essentials"]):
        raise Http404
    essential = content["essentials"][n - 1] if n else None
    form = EssentialForm(survey, content, essential, request.POST or None)

    def save(*, remove: bool) -> None:
        save_essential(
            survey=survey,
            name=essential["name"] if essential else "",
            essential=None if remove else form.value(),
            seen=request.POST.get("seen", ""),
            by=request.user,
        )

    return _edit(request, form, save, "survey/console/survey_essential.html")


@needs(Capability.MANAGE_SURVEYS)
def survey_measure(request: StaffRequest, pk: int, n: int) -> HttpResponse:
    """Add (0) or change the n-th measure of a draft, or remove it."""
    survey, content = _draft_or_404(request, pk)
    if n > len(content["measures"]):
        raise Http404
    measure = content["measures"][n - 1] if n else None
    form = MeasureForm(survey, content, measure, request.POST or None)

    def save(*, remove: bool) -> None:
        save_measure(
            survey=survey,
            name=measure["name"] if measure else "",
            measure=None if remove else form.measure_value(),
            seen=request.POST.get("seen", ""),
            by=request.user,
        )

    grids = [] if n else grids_of(survey, content)
    if not n and "items" in request.GET:
        form.initial["items"] = request.GET.getlist("items")
        first = f"label-{survey.languages[0]['code']}"
        form.initial[first] = request.GET.get("label", "")
    return _edit(request, form, save, "survey/console/survey_measure.html", grids)


def _draft_or_404(request: StaffRequest, pk: int) -> tuple[Survey, Measures]:
    survey = own_survey_or_404(request, pk)
    problems = refreshed(survey)
    if not may_change_measures(survey):
        raise Http404
    if problems and (draft := read_rows_of(survey).draft):
        # A label in an added language is shown, and so stays.
        survey.languages = draft.languages
    return survey, current_measures(survey)


def _edit(
    request: StaffRequest,
    form: EssentialForm,
    save: Callable[..., None],
    template: str,
    grids: Sequence[Grid] = (),
) -> HttpResponse:
    survey, entry = form.survey, form.entry
    remove = "remove" in request.POST and entry is not None
    if request.method == "POST" and (remove or form.is_valid()):
        try:
            save(remove=remove)
        except ChangeConflict as error:
            messages.error(request, str(error))
            return redirect("survey_measures", survey.pk)
        except ValidationError as error:
            form.add_problems(error)
        else:
            done = _("%(name)s is removed.") if remove else _("%(name)s is saved.")
            name = label_of(form) if remove else form.label
            messages.success(request, done % {"name": name})
            return redirect("survey_measures", survey.pk)
    return render(
        request,
        template,
        {
            "survey": survey,
            "form": form,
            "entry": entry,
            "entry_label": label_of(form),
            "grids": grids,
        },
    )


def label_of(form: EssentialForm) -> str:
    """Return how what is changed is called now, or "" for a new one."""
    if form.entry is None:
        return ""
    code = form.survey.language_to_read
    return form.entry["label"].get(code) or form.entry["name"]
