"""List what a rule of a draft may be about."""

from __future__ import annotations

from survey.instrument.definitions.piping import PIPE
from survey.instrument.definitions.schema import ANSWERABLE, Texts
from survey.instrument.drafts.conditions import COLUMN, THIS, Subject
from survey.instrument.xlsform.draft import Draft, ItemDraft, OptionDraft

LONGEST_LABEL = 80
READABLE = ANSWERABLE | {"calculate", "hidden"}


def subjects_of(
    draft: Draft, rule: str, name: str, language: str = ""
) -> dict[str, Subject]:
    """Return the subjects of a rule of the item `name`, in the survey's order.

    For the rule of a group, `name` is its first item. Questions that come later
    are not offered: their answers are not there yet.
    """
    options: dict[str, tuple[tuple[str, str], ...]] = {
        set_name: tuple(
            (option.value, plain_label(option.label, language) or option.value)
            for option in option_set
        )
        for set_name, option_set in draft.option_sets.items()
    }
    subjects: dict[str, Subject] = {}
    is_earlier = True
    for item in draft.items():
        if item.name == name:
            is_earlier = False
            subjects = own_subjects(draft, rule, item, options, language) | subjects
        elif item.kind in READABLE and not is_renamed(item):
            subjects[item.name] = Subject(
                item.name,
                item.kind,
                plain_label(item.label, language) or item.name,
                options.get(item.option_set, ()),
                is_offered=is_earlier,
            )
    return subjects


def is_renamed(item: ItemDraft) -> bool:
    """Return whether the workbook has another name, which several groups use.

    A rule reads such a question by its path, and stays code.
    """
    path = item.row.path
    return bool(path) and item.row.get("name") != path[-1]


def own_subjects(
    draft: Draft,
    rule: str,
    item: ItemDraft,
    options: dict[str, tuple[tuple[str, str], ...]],
    language: str,
) -> dict[str, Subject]:
    if rule == "constraint":
        label = plain_label(item.label, language) or item.name
        values = options.get(item.option_set, ())
        return {THIS: Subject(item.name, item.kind, label, values)}
    if rule != "choice_filter":
        return {}
    option_set = draft.option_sets.get(item.option_set, [])
    columns = dict.fromkeys(key for option in option_set for key in option.attributes)
    by_column = {COLUMN + key: column_values(option_set, key) for key in columns}
    by_column[f"{COLUMN}name"] = options.get(item.option_set, ())
    return {
        name: Subject(name, "column", name[1:], values)
        for name, values in by_column.items()
    }


def column_values(options: list[OptionDraft], key: str) -> tuple[tuple[str, str], ...]:
    values = dict.fromkeys(option.attributes.get(key, "") for option in options)
    return tuple((value, value) for value in values if value)


def plain_label(texts: Texts, language: str) -> str:
    """Return a text on one line, in this language or the first one, cut if long."""
    text = texts.get(language) or next(iter(texts.values()), "")
    line = " ".join(PIPE.sub("…", text).split())
    return line if len(line) <= LONGEST_LABEL else f"{line[: LONGEST_LABEL - 1]}…"
