"""Describe a page for its template without JavaScript: controls filled in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from survey.instrument.definitions.piping import fill_pipes
from survey.instrument.definitions.schema import OptionDefinition
from survey.taking.rendering import (
    INVISIBLE,
    Localizer,
    Option,
    item_context,
    option_of,
)
from survey.taking.review import answer_in_words, label_of, text_in
from survey.taking.validation import LONGEST_TEXT
from survey.taking.without_javascript.answers import FIELD, PageAnswers

T = TypeVar("T")
# What to type where a browser shows a date as a field of text.
EXAMPLES = {
    "date": "2014-02-28",
    "time": "14:30",
    "datetime": "2014-02-28 14:30",
}


@dataclass(frozen=True, slots=True)
class Choice:
    option: Option
    is_chosen: bool


@dataclass(frozen=True, slots=True)
class Problem:
    name: str
    label: str
    message: str

    @property
    def line(self) -> str:
        colon = "" if self.label.endswith(tuple(".?!:…؟。")) else ":"
        return f"{self.label}{colon} {self.message}"


def page_blocks(
    answers: PageAnswers,
    localizer: Localizer,
    *,
    seed: int,
    problems: Mapping[str, str],
    elsewhere: Mapping[str, str],
) -> list[dict[str, object]]:
    """Return the blocks of a page with its visible items.

    `problems` are messages, and `elsewhere` answers in words that another tab or
    device saved meanwhile, both by item.
    """
    blocks = []
    for position, block in enumerate(
        answers.definition["pages"][answers.n - 1]["blocks"]
    ):
        visible = [
            name
            for name in block["items"]
            if answers.definition["items"][name]["kind"] not in INVISIBLE
            and answers.state.relevant[name]
        ]
        if not visible and block["items"]:
            continue
        items = [
            item_fields(answers, localizer, name, seed)
            | {
                "problem": problems.get(name, ""),
                "elsewhere": elsewhere.get(name, ""),
            }
            for name in visible
        ]
        label = localizer.text(block.get("label"))
        place = f"block-{answers.n}-{position}"
        blocks.append(
            {"id": place, "label": label, "grid": block["grid"], "items": items}
        )
    return blocks


def item_fields(
    answers: PageAnswers, localizer: Localizer, name: str, seed: int
) -> dict[str, object]:
    """Return what the template needs of an item, with its answer."""
    item = answers.definition["items"][name]
    context = item_context(answers.definition, localizer, name, item, in_grid=False)
    kind = item["kind"]
    if kind == "note":
        return context
    mistyped = answers.mistyped.get(name)
    typed = mistyped.text if mistyped else answers.text(name)
    chosen = set(typed.split(" ")) if kind == "select_multiple" else {typed}
    return context | {
        "field": FIELD + name,
        "value": typed,
        "choices": [
            Choice(option_of(localizer, option), option["value"] in chosen)
            for option in offered_options(answers, name, seed)
        ],
        # Nobody can take back the answer of a radio button without a script.
        "can_be_cleared": kind == "select_one" and bool(typed),
        "example": EXAMPLES.get(kind, ""),
        "required": answers.state.required(name),
        "maybe_required": False,
    }


def offered_options(
    answers: PageAnswers, name: str, seed: int
) -> list[OptionDefinition]:
    """List an item's options as its choice filter and its order show them."""
    options = answers.state.options(name)
    item = answers.definition["items"][name]
    if item.get("randomize"):
        options = shuffled(options, seed, name, item.get("seed"))
    return [option for option in options if answers.state.offers(name, option)]


def problem_list(
    answers: PageAnswers,
    problems: Mapping[str, str],
    words: Mapping[str, str],
    language: str,
) -> list[Problem]:
    """Put problems into words, in the order of the page."""
    return [
        Problem(
            name,
            label_of(answers.definition, name, language, answers.state.values),
            problem_message(answers, name, problems[name], words, language),
        )
        for name in answers.items
        if name in problems
    ]


def problem_message(
    answers: PageAnswers, name: str, key: str, words: Mapping[str, str], language: str
) -> str:
    item = answers.items[name]
    texts_of_item = {
        "required": item.get("required_message"),
        "constraint": item.get("constraint_message"),
    }
    texts = texts_of_item.get(key)
    if texts:
        text = text_in(answers.definition, texts, language)
        return fill_pipes(text, answers.state.values)
    scale = item.get("range")
    if key == "out_of_range" and scale:
        return words[key].format(min=scale["start"], max=scale["end"])
    if key == "too_long":
        return words[key].format(max=LONGEST_TEXT)
    key = {"option": "not_an_option"}.get(key, key)
    text = words.get(key, words["constraint_default"])
    mistyped = answers.mistyped.get(name)
    return text.format(**mistyped.values) if mistyped and mistyped.values else text


def answers_elsewhere(
    answers: PageAnswers, texts: Mapping[str, str], words: Mapping[str, str]
) -> dict[str, str]:
    """Put the answers that another tab saved into words."""
    language = answers.clock["language"]
    state = answers.state
    shown = {}
    for name, text in texts.items():
        before = state.values[name]
        state.values[name] = text
        shown[name] = answer_in_words(state, name, language) or words["answer_question"]
        state.values[name] = before
    return shown


def shuffled(
    options: Sequence[T], seed: int, name: str, item_seed: int | None = None
) -> list[T]:
    """Return the order of `static/js/shuffle.js`, so that both pages show the same."""
    hashed = 0x811C9DC5
    units = name.encode("utf-16-le")
    for at in range(0, len(units), 2):
        hashed ^= int.from_bytes(units[at : at + 2], "little")
        hashed = hashed * 0x01000193 % 2**32
    state = (seed ^ hashed if item_seed is None else item_seed) % 2**32
    order = list(options)
    for last in range(len(order) - 1, 0, -1):
        state = (state + 0x6D2B79F5) % 2**32
        mixed = (state ^ (state >> 15)) * (1 | state) % 2**32
        mixed = ((mixed + (mixed ^ (mixed >> 7)) * (61 | mixed)) ^ mixed) % 2**32
        swapped = (mixed ^ (mixed >> 14)) * (last + 1) // 2**32
        order[last], order[swapped] = order[swapped], order[last]
    return order
