"""Apply the rules of a survey to all answers at once.

Saving a page checks only what the page itself knows: see `reports.answers.answer_mask`,
whose rules these are. People with the same answers to the items that a rule reads
share one evaluation.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from reports.answers.answer_mask import AnswerMask
from reports.answers.item_codes import (
    ANSWERED,
    NOT_APPLICABLE,
    NOT_REACHED,
    SKIPPED,
    VALUE,
    ItemCodes,
)
from reports.answers.people import Ints, People
from reports.answers.versions import SurveyVersion


def apply_rules(
    version: SurveyVersion,
    mask: AnswerMask,
    answers: Mapping[str, ItemCodes],
    people: People,
) -> dict[str, ItemCodes]:
    """Return the answers to show: masked, and with the values of calculations."""
    shown = dict(answers)
    if not mask.concerned or not len(people):
        for name in mask.concerned:
            shown.setdefault(name, ItemCodes(np.zeros(len(people), dtype=np.uint8)))
        return shown
    # The last page on which there is a row: pages up to it were passed by.
    last = np.zeros(len(people), dtype=np.int16)
    for name, item in answers.items():
        page = version.items[name]["page"]
        np.maximum(last, page, out=last, where=item.codes != NOT_REACHED)
    of_person, firsts = _alike(mask, answers, people)
    outcomes = [
        mask.outcome(
            _given(version, mask, answers, person),
            float(people.at[person]),
            people.groups[people.group[person]].language
            or version.definition["languages"][0]["code"],
        )
        for person in firsts.tolist()
    ]
    for name in mask.concerned:
        relevant = np.array([outcome[0][name] for outcome in outcomes])[of_person]
        seen = people.finished | (last >= version.items[name]["page"])
        if name in answers:
            seen |= answers[name].codes != NOT_REACHED
        if version.is_computed(name):
            values = [outcome[1][name] for outcome in outcomes]
            item = _numbered(values)
            codes = np.where(seen, item.codes[of_person], NOT_REACHED).astype(np.int32)
            item.codes = codes
        else:
            item = ItemCodes(answers[name].codes.copy(), answers[name].values)
        item.codes[seen & ~relevant] = NOT_APPLICABLE
        item.codes[~seen & ~relevant] = NOT_REACHED
        shown[name] = item
    return shown


def _alike(
    mask: AnswerMask, answers: Mapping[str, ItemCodes], people: People
) -> tuple[Ints, Ints]:
    """Return a number for each person's inputs, and the first person of each number."""
    inputs: list[NDArray[np.int64]] = [
        # What is not an answer is blank for every rule.
        np.maximum(answers[name].codes, ANSWERED).astype(np.int64)
        for name in mask.inputs.values()
    ]
    if mask.reads_clock:
        inputs.append(people.at)
    if mask.reads_labels:
        languages = sorted({group.language for group in people.groups})
        of_groups = [languages.index(group.language) for group in people.groups]
        inputs.append(np.array(of_groups, dtype=np.int64)[people.group])
    combined = np.zeros(len(people), dtype=np.int64)
    firsts = np.zeros(1, dtype=np.int64)
    size = 1
    for numbers in inputs:
        numbers = numbers - numbers.min()
        most = int(numbers.max()) + 1
        # Numbers that would not fit are replaced by their places.
        if size * most >= 2**62:
            _, combined = np.unique(combined, return_inverse=True)
            size = int(combined.max()) + 1
        combined = combined * most + numbers
        size *= most
    _, firsts, of_person = np.unique(combined, return_index=True, return_inverse=True)
    return of_person, firsts


def _given(
    version: SurveyVersion,
    mask: AnswerMask,
    answers: Mapping[str, ItemCodes],
    person: int,
) -> dict[int, str]:
    """Return one person's answers as they are in the stream of an export."""
    given = {}
    for key, name in mask.inputs.items():
        item = answers[name]
        code = int(item.codes[person])
        if code >= VALUE:
            value = item.values[code - VALUE]
            is_json = version.comes_as_json(version.items[name])
            given[key] = json.dumps(value) if is_json else value
    return given


def _numbered(values: Sequence[str]) -> ItemCodes:
    """Return the codes of calculated values; a blank is skipped."""
    known: dict[str, int] = {"": SKIPPED}
    for value in values:
        known.setdefault(value, VALUE + len(known) - 1)
    codes = np.array([known[value] for value in values], dtype=np.int32)
    return ItemCodes(codes, [value for value in known if value])
