"""The state's question bank: list, show, add, make versions, retire, insert."""

from __future__ import annotations

from collections.abc import Iterable

from django.contrib import messages
from django.http import Http404, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST, require_safe

from accounts import forms
from accounts.access import needs
from accounts.console.listing import ComputedListing
from accounts.http import StaffRequest
from accounts.permissions import Capability
from survey.console.surveys.contents import KIND_WORDS
from survey.console.surveys.editor.acts import carry_out
from survey.console.surveys.views import own_survey_or_404, state_of, survey_or_404
from survey.fieldwork.administrations import administrations_for
from survey.instrument.bank.content import LOCKED_TEXTS, Content, content_of
from survey.instrument.bank.inserting import left_out
from survey.instrument.bank.questions import (
    add_questions,
    add_version,
    bring_back_question,
    current_questions,
    may_change_bank,
    retire_question,
    surveys_with,
)
from survey.instrument.definitions.schema import ANSWERABLE, Texts
from survey.instrument.drafts.commands import CommandRefused, kind_of, languages_of
from survey.instrument.drafts.store import load_book
from survey.instrument.drafts.workbook import ChangeConflict, LimitReached
from survey.instrument.xlsform.languages import language_of
from survey.instrument.xlsform.names import (
    LONGEST_NAME,
    normalised,
    why_not_a_name,
)
from survey.models import BankQuestion

LONGEST_TEXT = 5000
FIELD_NAMES = {
    "label": gettext_lazy("Question"),
    "hint": gettext_lazy("Hint"),
    "guidance": gettext_lazy("Guidance"),
    "constraint_message": gettext_lazy("Message if the answer is not valid"),
}


class BankFilter(forms.Form):
    """Which questions of the bank to list."""

    measure = forms.ChoiceField(label=gettext_lazy("Measure"), required=False)
    language = forms.ChoiceField(label=gettext_lazy("Language"), required=False)

    def __init__(self, data: QueryDict, questions: Iterable[BankQuestion]) -> None:
        super().__init__(data)
        measures: dict[str, str] = {}
        languages: dict[str, str] = {}
        for question in questions:
            if measure := question.content["measure"]:
                measures[measure["name"]] = _measure_words(measure)
            for language in question.content["languages"]:
                languages[language["code"]] = language["name"]
        for name, rows, all_of_them in (
            ("measure", measures, _("All measures")),
            ("language", languages, _("All languages")),
        ):
            choices = [("", all_of_them), *sorted(rows.items(), key=lambda row: row[1])]
            self.fields[name].choices = choices  # type: ignore[attr-defined]

    def matching(self, questions: Iterable[BankQuestion]) -> list[BankQuestion]:
        chosen = self.cleaned_data if self.is_valid() else {}
        measure, language = chosen.get("measure"), chosen.get("language")
        return [
            question
            for question in questions
            if not measure or question.content["measure"].get("name") == measure
            if not language
            or language in {row["code"] for row in question.content["languages"]}
        ]


def _first(texts: Texts) -> str:
    return next((text for text in texts.values() if text), "")


def _measure_words(measure: Content) -> str:
    words = _first(measure["label"]) or str(measure["name"])
    theme = measure["theme"]
    return f"{_first(theme['label'])}: {words}" if theme else words


def _searched(question: BankQuestion) -> str:
    content = question.content
    measure = _measure_words(content["measure"]) if content["measure"] else ""
    labels = " ".join(content["texts"]["label"].values())
    return f"{question.code} {question.name} {labels} {measure}"


def _listing(
    request: StaffRequest, questions: list[BankQuestion]
) -> tuple[ComputedListing[BankQuestion], BankFilter]:
    filters = BankFilter(request.GET, questions)
    listing = ComputedListing(
        request,
        filters.matching(questions),
        text=_searched,
        sorts={
            "name": lambda row: row.code.casefold(),
            "text": lambda row: row.text.casefold(),
            "measure": lambda row: (
                _measure_words(row.content["measure"]) if row.content["measure"] else ""
            ),
        },
    )
    for row in listing.page.object_list:
        describe(row)
    return listing, filters


def describe(question: BankQuestion) -> None:
    """Set what the lists show of a question."""
    content = question.content
    kind = content["type"].partition(" ")[0]
    question.kind_words = KIND_WORDS[kind]  # type: ignore[attr-defined]
    question.measure_words = (  # type: ignore[attr-defined]
        _measure_words(content["measure"]) if content["measure"] else ""
    )


@needs(Capability.MANAGE_SURVEYS)
@require_safe
def bank_list(request: StaffRequest) -> HttpResponse:
    """List the last version of each question. 1 statement for the questions."""
    questions = current_questions()
    listing, filters = _listing(request, questions)
    context = {
        "filter_form": filters,
        "may_change": may_change_bank(request.permissions),
        "is_empty": not questions,
    }
    return listing.render("survey/console/bank_list.html", context)


@needs(Capability.MANAGE_SURVEYS)
@require_safe
def bank_question(request: StaffRequest, pk: int) -> HttpResponse:
    """Show a version of a question, the others, and where the question is asked."""
    question = get_object_or_404(BankQuestion.objects.select_related("by"), pk=pk)
    versions = list(
        BankQuestion.objects.filter(code=question.code)
        .select_related("by")
        .order_by("-version")
    )
    surveys = surveys_with(request.permissions, question)
    offered = (
        administrations_for(request.permissions, Capability.SEE_RATES)
        .filter(published__survey__in=[survey.pk for survey in surveys])
        .select_related("wave", "published__survey")
        .defer("published__definition", "published__survey__source")
        .order_by("-opens_at")
    )
    version_of = {
        survey.pk: survey.bank_version  # type: ignore[attr-defined]
        for survey in surveys
    }
    describe(question)
    return render(
        request,
        "survey/console/bank_question.html",
        {
            "question": question,
            "versions": versions,
            "is_last": question.pk == versions[0].pk,
            "texts": _texts_of(question),
            "surveys": [(survey, state_of(survey)) for survey in surveys],
            "rounds": [(row, version_of[row.published.survey_id]) for row in offered],
            "may_change": may_change_bank(request.permissions),
        },
    )


def _texts_of(question: BankQuestion) -> list[tuple[object, str, list[object]]]:
    """Return what a text is, an option's value, and the text in each language."""
    content = question.content
    languages = content["languages"]
    rows: list[tuple[object, str, Texts]] = [
        (words, "", content["texts"][field]) for field, words in FIELD_NAMES.items()
    ]
    rows += [
        (_("Option"), option["value"], option["label"]) for option in content["options"]
    ]
    return [
        (words, value, [(row, texts.get(row["code"], "")) for row in languages])
        for words, value, texts in rows
        if texts
    ]


def _changed_by_state_or_404(request: StaffRequest) -> None:
    if not may_change_bank(request.permissions):
        raise Http404


@needs(Capability.MANAGE_SURVEYS)
@require_POST
def bank_retire(request: StaffRequest, pk: int) -> HttpResponse:
    """Retire a question, or restore it."""
    _changed_by_state_or_404(request)
    question = get_object_or_404(BankQuestion, pk=pk)
    if "restore" in request.POST:
        bring_back_question(question=question, by=request.user, request=request)
        messages.success(request, _("The question is restored."))
    else:
        retire_question(question=question, by=request.user, request=request)
        messages.success(request, _("The question is retired."))
    return redirect("bank_question", pk)


# Add questions and versions


@needs(Capability.MANAGE_SURVEYS)
def survey_to_bank(request: StaffRequest, pk: int) -> HttpResponse:
    """Choose questions of a survey, and add them to the bank."""
    _changed_by_state_or_404(request)
    survey = survey_or_404(request, pk)
    refusal = ""
    chosen: list[str] = request.POST.getlist("question")
    if request.method == "POST":
        names = {
            name: request.POST.get(f"name-{name}", name).strip() for name in chosen
        }
        try:
            if not names:
                raise CommandRefused(_("Choose at least one question."))
            added = add_questions(
                survey=survey, names=names, by=request.user, request=request
            )
        except CommandRefused as error:
            refusal = str(error)
        else:
            messages.success(
                request,
                _("Added to the question bank: %(names)s.")
                % {"names": ", ".join(row.code for row in added)},
            )
            return redirect("bank_list")
    book = load_book(survey)
    sheet = book.sheet("survey")
    taken = {row.code: row for row in current_questions()}
    rows = []
    for row in sheet.rows:
        name = sheet.value(row, "name")
        if kind_of(sheet, row) not in ANSWERABLE or not name:
            continue
        entry = {
            "name": name,
            "new_name": request.POST.get(f"name-{name}", name),
            "is_chosen": name in chosen,
            "known": taken.get(name),
        }
        try:
            entry["text"] = _first(content_of(book, row)["texts"]["label"])
        except CommandRefused as error:
            entry["refusal"] = str(error)
        rows.append(entry)
    return render(
        request,
        "survey/console/survey_to_bank.html",
        {
            "survey": survey,
            "questions": rows,
            "refusal": refusal,
            "language": languages_of(book)[0],
        },
        status=422 if refusal else 200,
    )


class VersionForm(forms.Form):
    """The texts of a new version in each language, and the name of the variable."""

    name = forms.CharField(
        label=gettext_lazy("Name of the variable"),
        max_length=LONGEST_NAME,
        help_text=gettext_lazy(
            "Keep it if answers stay comparable. Another name starts a new trend."
        ),
    )

    def __init__(
        self, content: Content, data: QueryDict | None = None, *, token: str = ""
    ) -> None:
        super().__init__(data)
        self.content = content
        self.initial["name"] = content["name"]
        self.languages = [*content["languages"]]
        codes = {language["code"] for language in self.languages}
        added = language_of(token) if token else None
        if added and added.code not in codes:
            self.languages.append(added.as_json())
        first = self.languages[0]
        for language in self.languages:
            for field, words in FIELD_NAMES.items():
                texts = content["texts"][field]
                if field in ("label", "hint") or texts:
                    is_needed = field == "label" and language is first
                    self._add(field, words, language, texts, is_needed=is_needed)
            for number, option in enumerate(content["options"]):
                self._add(
                    f"option{number}",
                    _("Option %(value)s") % {"value": option["value"]},
                    language,
                    option["label"],
                    is_needed=language is first,
                )

    def _add(
        self,
        field: str,
        words: object,
        language: dict[str, str],
        texts: Texts,
        *,
        is_needed: bool,
    ) -> None:
        attributes = {"lang": language["code"], "dir": language["direction"]}
        widget: forms.Widget = forms.TextInput(attrs=attributes)
        if field in LOCKED_TEXTS:
            widget = forms.Textarea(attrs={**attributes, "rows": 2})
        self.fields[f"{field}-{language['code']}"] = forms.CharField(
            label=f"{words}, {language['name']}",
            initial=texts.get(language["code"], ""),
            max_length=LONGEST_TEXT,
            required=is_needed,
            widget=widget,
        )

    def _texts(self, field: str) -> Texts:
        texts = {
            language["code"]: normalised(
                self.cleaned_data.get(f"{field}-{language['code']}", "")
                .replace("\r\n", "\n")
                .strip()
            )
            for language in self.languages
        }
        return {code: text for code, text in texts.items() if text}

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        if reason := why_not_a_name(name):
            raise forms.ValidationError(
                _("The name can’t be used: %(why)s.") % {"why": reason}
            )
        return name

    def clean(self) -> None:
        for name, value in list(self.cleaned_data.items()):
            if isinstance(value, str) and "${" in value:
                self.add_error(name, _("A question of the bank quotes no answer."))

    def value(self) -> Content:
        content = self.content
        return {
            **content,
            "name": self.cleaned_data["name"],
            "languages": self.languages,
            "texts": {field: self._texts(field) for field in LOCKED_TEXTS},
            "options": [
                {**option, "label": self._texts(f"option{number}")}
                for number, option in enumerate(content["options"])
            ],
        }


@needs(Capability.MANAGE_SURVEYS)
def bank_version(request: StaffRequest, pk: int) -> HttpResponse:
    """Make a new version of a question."""
    _changed_by_state_or_404(request)
    question = get_object_or_404(BankQuestion, pk=pk)
    data = request.POST if request.method == "POST" else None
    token = request.GET.get("language", "")[:80]
    form = VersionForm(question.content, data, token=token)
    if data is not None and form.is_valid():
        try:
            added = add_version(
                question=question,
                content=form.value(),
                by=request.user,
                request=request,
            )
        except CommandRefused as error:
            form.add_error(None, str(error))
        else:
            messages.success(
                request,
                _("Version %(version)s is approved.") % {"version": added.version},
            )
            return redirect("bank_question", added.pk)
    return render(
        request,
        "survey/console/bank_version.html",
        {
            "question": question,
            "form": form,
            "token": token,
            "is_unknown": bool(token) and language_of(token) is None,
        },
        status=422 if form.errors else 200,
    )


# In the editor


@needs(Capability.MANAGE_SURVEYS)
def survey_edit_bank(request: StaffRequest, pk: int) -> HttpResponse:
    """Choose questions of the bank, and insert them into a draft."""
    survey = own_survey_or_404(request, pk)
    if survey.published_at is not None or survey.corrects_id is not None:
        raise Http404
    after = request.POST.get("at") or request.GET.get("after", "")
    refusal = ""
    if request.method == "POST":
        try:
            outcome = carry_out(survey, request.POST, by=request.user)
        except (ChangeConflict, CommandRefused, LimitReached) as error:
            refusal = str(error)
        else:
            messages.success(request, outcome.message)
            return redirect(f"{reverse('survey_edit', args=[pk])}?at={outcome.at}")
    questions = [row for row in current_questions() if row.retired_at is None]
    listing, filters = _listing(request, questions)
    book = load_book(survey)
    sheet = book.sheet("survey")
    names = {sheet.value(row, "name").casefold() for row in sheet.rows}
    chosen = set(request.POST.getlist("question"))
    for row in listing.page.object_list:
        row.is_chosen = str(row.pk) in chosen  # type: ignore[attr-defined]
        row.is_there = row.name.casefold() in names  # type: ignore[attr-defined]
    context = {
        "survey": survey,
        "after": after,
        "refusal": refusal,
        "left_out": ", ".join(left_out(book, listing.page.object_list)),
        "filter_form": filters,
        "is_empty": not questions,
    }
    response = listing.render("survey/console/editor/bank.html", context)
    response.status_code = 422 if refusal else 200
    return response
