"""Show all questions of an administration's survey, to read and to print."""

from __future__ import annotations

from dataclasses import dataclass

from django.conf import settings
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from accounts.access import needs
from accounts.http import StaffRequest
from accounts.language import language_to_read
from accounts.permissions import Capability
from survey.console.surveys.contents import KIND_WORDS
from survey.console.surveys.rule_words import RuleWords
from survey.fieldwork.administrations.queries import administration_or_404
from survey.instrument.definitions.schema import (
    ANSWERABLE,
    VISIBLE,
    BlockDefinition,
    SurveyDefinition,
)
from survey.models import Administration, PublishedSurvey
from survey.people.schools.open_surveys import questions_are_public
from survey.taking.published import published_survey
from survey.taking.rendering import Localizer, Text

# A wider table cannot be read on paper.
MOST_COLUMNS = 7


@dataclass(frozen=True, slots=True)
class Question:
    # None for notes.
    number: int | None
    kind: str
    label: Text
    hint: Text
    options: list[Text]
    rules: list[str]


@dataclass(frozen=True, slots=True)
class Block:
    label: Text
    questions: list[Question]
    # What all questions share if they are the rows of one table; else empty.
    columns: list[Text]


@dataclass(frozen=True, slots=True)
class QuestionnairePage:
    number: int
    title: Text
    blocks: list[Block]


@needs(Capability.SEE_RATES)
@require_safe
def administration_questionnaire(request: StaffRequest, pk: int) -> HttpResponse:
    """Show the survey as published, in one of its languages."""
    administration = administration_or_404(
        request.permissions, pk, Capability.SEE_RATES
    )
    surveys = PublishedSurvey.objects.filter(administrations=pk)
    published = published_survey(surveys.values_list("digest", flat=True).get())
    asked = request.GET.get("language", "")
    language = (
        asked if asked in published.languages else language_to_read(published.languages)
    )
    definition = published.definition
    [chosen] = [row for row in definition["languages"] if row["code"] == language]
    return render(
        request,
        "survey/console/administration_questionnaire.html",
        {
            "administration": administration,
            "languages": definition["languages"],
            "language": chosen,
            "pages": pages_of(definition, language),
            "public_address": address_of_questions(administration),
        },
    )


def address_of_questions(administration: Administration) -> str:
    """Return the public address of the questions, or "" where it shows none.

    1 statement.
    """
    row = Administration.objects.filter(questions_are_public(), pk=administration.pk)
    if not row.exists():
        return ""
    address = reverse("public_questions", args=[administration.name])
    return f"{settings.PUBLIC_ADDRESS}{address}"


def pages_of(definition: SurveyDefinition, language: str) -> list[QuestionnairePage]:
    """Return all that people see, and the rules that decide what they see."""
    names = [
        name
        for page in definition["pages"]
        for block in page["blocks"]
        for name in block["items"]
        if definition["items"][name]["kind"] in ANSWERABLE
    ]
    numbers = {name: number for number, name in enumerate(names, start=1)}
    # What is computed has no question to point to.
    quoted = dict.fromkeys(definition["items"], "…") | {
        name: _("[answer to question %(number)s]") % {"number": number}
        for name, number in numbers.items()
    }
    localizer = Localizer.of(definition, language, quoted)
    words = RuleWords(definition, localizer, numbers)

    def question(name: str) -> Question:
        item = definition["items"][name]
        options = definition["option_sets"].get(item.get("option_set", ""), [])
        return Question(
            numbers.get(name),
            str(KIND_WORDS[item["kind"]]),
            localizer.text(item.get("label")),
            localizer.text(item.get("hint")),
            [localizer.text(option["label"]) for option in options],
            list(words.rules_of(name)),
        )

    def visible(block: BlockDefinition) -> list[Question]:
        return [
            question(name)
            for name in block["items"]
            if definition["items"][name]["kind"] in VISIBLE
        ]

    def columns(block: BlockDefinition, questions: list[Question]) -> list[Text]:
        options = questions[0].options
        kinds = {definition["items"][name]["kind"] for name in block["items"]}
        if not block["grid"] or kinds != {"select_one"} or len(options) > MOST_COLUMNS:
            return []
        shared = all(question.options == options for question in questions)
        return options if shared else []

    return [
        QuestionnairePage(
            number,
            localizer.text(page["title"]),
            [
                Block(
                    localizer.text(block["label"]), questions, columns(block, questions)
                )
                for block in page["blocks"]
                if (questions := visible(block))
            ],
        )
        for number, page in enumerate(definition["pages"], start=1)
    ]
