"""List what a rule of a draft may be about."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from survey.instrument.definitions.piping import PIPE
from survey.instrument.definitions.schema import ANSWERABLE, Texts
from survey.instrument.drafts.conditions import COLUMN, THIS, Subject
from survey.instrument.xlsform.draft import Draft, ItemDraft, OptionDraft

LONGEST_LABEL = 80
OptionLabels = Mapping[str, tuple[tuple[str, str], ...]]
READABLE = ANSWERABLE | {"calculate", "hidden"}


def subjects_of(
    draft: Draft,
    rule: str,
    name: str,
    language: str = "",
    columns: Mapping[str, Collection[str]] | None = None,
    labels: OptionLabels | None = None,
) -> dict[str, Subject]:
    """Return the subjects of a rule of the item `name`, in the survey's order.

    For the rule of a group, `name` is its first item. Questions that come later
    are not offered: their answers are not there yet. `columns` are those of
    the item's options with their values: a draft has only columns that a filter reads.
    `labels` are those of its lists, for callers that ask for several rules.
    """
    options = option_labels(draft, language) if labels is None else labels
    subjects: dict[str, Subject] = {}
    is_earlier = True
    numbers: dict[int, int] = {}
    for item in draft.items():
        # The text for *Other* is in the row of its question.
        if item.kind in ANSWERABLE:
            numbers.setdefault(item.row.number, len(numbers) + 1)
        if item.name == name:
            is_earlier = False
            values = options.get(item.option_set, ())
            if rule == "constraint":
                label = plain_label(item.label, language) or item.name
                subjects = {THIS: Subject(name, item.kind, label, values)} | subjects
            elif rule == "choice_filter":
                option_set = draft.option_sets.get(item.option_set, [])
                by_column = columns_of_options(option_set) | dict(columns or {})
                subjects = column_subjects(by_column, values) | subjects
        elif item.kind in READABLE and not is_renamed(item):
            subjects[item.name] = Subject(
                item.name,
                item.kind,
                plain_label(item.label, language) or item.name,
                options.get(item.option_set, ()),
                is_offered=is_earlier,
                number=numbers.get(item.row.number, 0),
            )
    return subjects


def option_labels(draft: Draft, language: str) -> OptionLabels:
    """Return the values of each list of options, with labels on one line."""
    return {
        set_name: tuple(
            (option.value, plain_label(option.label, language) or option.value)
            for option in option_set
        )
        for set_name, option_set in draft.option_sets.items()
    }


def is_renamed(item: ItemDraft) -> bool:
    """Return whether the workbook has another name, which several groups use.

    A rule reads such a question by its path, and stays code.
    """
    path = item.row.path
    return bool(path) and item.row.get("name") != path[-1]


def columns_of_options(options: list[OptionDraft]) -> dict[str, Collection[str]]:
    columns: dict[str, list[str]] = {}
    for option in options:
        for key, value in option.attributes.items():
            columns.setdefault(key, []).append(value)
    return {key: dict.fromkeys(values).keys() for key, values in columns.items()}


def column_subjects(
    columns: Mapping[str, Collection[str]], values: tuple[tuple[str, str], ...]
) -> dict[str, Subject]:
    choices = {
        key: tuple((value, value) for value in of_column if value)
        for key, of_column in columns.items()
    }
    # The option itself, by its value.
    choices["name"] = values
    return {
        COLUMN + key: Subject(COLUMN + key, "column", key, of_column)
        for key, of_column in choices.items()
    }


def plain_label(texts: Texts, language: str) -> str:
    """Return a text on one line, in this language or the first one, cut if long."""
    text = texts.get(language) or next(iter(texts.values()), "")
    line = " ".join(PIPE.sub("…", text).split())
    return line if len(line) <= LONGEST_LABEL else f"{line[: LONGEST_LABEL - 1]}…"
