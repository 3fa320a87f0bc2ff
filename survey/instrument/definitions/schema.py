"""Schema of a published survey: the JSON that publishing compiles and freezes.

`survey.instrument.definitions.publishing` writes it, `survey.taking.published` reads
it, and everything that shows, checks or exports answers works on it. At run time
a definition is a plain dictionary, as `json.loads` returns it: the types cost
nothing. Nobody changes a definition after it is compiled.

The JSON is canonical (keys sorted, no spaces, UTF-8); its SHA-256 is the
digest under which it is stored and addressed. A shortened example::

    {"format": 1, "name": "climate_students", "version": "2027.1",
     "title": {"en": "My School and Me", "es": "Mi escuela y yo"},
     "languages": [{"code": "en", "name": "English", "direction": "ltr"}],
     "option_sets": {"agree": [{"value": "1", "label": {"en": "Agree"},
                                "attributes": {}}]},
     "pages": [{"name": "belonging", "title": {"en": "Belonging"},
                "blocks": [{"label": {}, "grid": false, "items": ["q1"]}]}],
     "items": {"q1": {"id": 12, "page": 1, "kind": "select_one",
                      "label": {"en": "I feel safe here."},
                      "option_set": "agree", "required": true}},
     "order": ["q1"]}

Nothing here imports Django, so that load generators can use it too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, Literal, NotRequired, Required, TypedDict, get_args

# Text by language code: {"en": "My school", "es": "Mi escuela"}. Where there
# is a text at all, it is there in the survey's first language.
Texts = dict[str, str]

# [operation, argument...], such as ["selected", ["$", "pets"], "dog"]. No
# type says that the first element is the operation's name.
Call = list[Any]
# A compiled expression: a literal or a call.
Expr = str | float | bool | Call

RuleName = Literal[
    "required",
    "relevant",
    "constraint",
    "calculation",
    "choice_filter",
    "default_expression",
]
# The keys of an item that hold compiled expressions.
RULES: Final[tuple[RuleName, ...]] = get_args(RuleName)

# Kinds of items, see `survey.models.Item.Kind`. Respondents answer these:
NUMBERS: Final = frozenset({"integer", "decimal", "range"})
MOMENTS: Final = frozenset({"date", "time", "datetime"})
# The answers to these are values of the item's option set.
SELECTS: Final = frozenset({"select_one", "select_multiple"})
# The single option of the last one is in no option set.
CHOICES: Final = SELECTS | {"acknowledge"}
# The others may have any text as their value.
SHORT_KINDS: Final = NUMBERS | MOMENTS | CHOICES
ANSWERABLE: Final = SHORT_KINDS | {"text"}
# These take room on a page; calculated and hidden items do not.
VISIBLE: Final = ANSWERABLE | {"note"}


Direction = Literal["ltr", "rtl"]


TextName = Literal[
    "label", "hint", "guidance", "required_message", "constraint_message"
]
# The keys of an item that hold texts.
ITEM_TEXTS: Final[tuple[TextName, ...]] = (
    "label",
    "hint",
    "guidance",
    "required_message",
    "constraint_message",
)


class LanguageDefinition(TypedDict):
    """`code` is a BCP 47 tag, `name` the language's own name."""

    code: str
    name: str
    direction: Direction


class OptionDefinition(TypedDict):
    """One choice. Choice filters read `attributes` and, as `name`, `value`.

    `label` may quote answers as ``${name}``.
    """

    value: str
    label: Texts
    attributes: dict[str, str]


class BlockDefinition(TypedDict):
    """Items of a page that belong together.

    `label` is the stem of a grid or a heading, empty where there is none.
    `items` are names, in the order of the page.
    """

    label: Texts
    grid: bool
    items: list[str]


class PageDefinition(TypedDict):
    """Items that are shown and saved together; page n is `pages[n - 1]`."""

    name: str
    title: Texts
    blocks: list[BlockDefinition]


class RangeScale(TypedDict):
    """The scale of a range item: decimal numbers, as text to keep them exact."""

    start: str
    end: str
    step: str


class ItemRules(TypedDict, total=False):
    """Rules and appearance of an item; each key only where it is set.

    `relevant` includes the relevance of the groups around the item.
    `required` is True or an expression. `default` is a stored value,
    `default_expression` computes one when the item is first shown. `seed`
    fixes the order of randomised options; without it, each respondent has an
    order of their own.
    """

    required: Expr
    required_message: Texts
    relevant: Expr
    constraint: Expr
    constraint_message: Texts
    calculation: Expr
    choice_filter: Expr
    default: str
    default_expression: Expr
    read_only: bool
    randomize: bool
    seed: int
    appearance: list[str]
    range: RangeScale


class RuledItem(ItemRules, total=False):
    """The part of an item that its rules need; drafts are checked with it.

    `local` names the rules that read nothing but the item's own page: these
    are applied when the page is saved.
    """

    kind: Required[str]
    option_set: str
    local: list[RuleName]


class ItemDefinition(RuledItem, total=False):
    """One thing that is asked, shown or computed.

    `id` is the primary key of the item's row, under which answers are stored;
    a correction keeps the ids of the version that it corrects. `page` counts
    from 1. `label`, `hint` and `guidance` may quote answers as ``${name}``.
    """

    id: Required[int]
    page: Required[int]
    label: Texts
    hint: Texts
    guidance: Texts


class EssentialDefinition(TypedDict):
    """Several measures that together describe one strength of a school."""

    name: str
    label: Texts
    description: Texts


class MeasureItem(TypedDict):
    """`reversed` items count the other way round: disagreeing is the high end."""

    name: str
    reversed: bool


class MeasureDefinition(TypedDict):
    """Items that together measure one idea.

    All have the same list of options, from low to high; the values in `missing`
    ("Don't know") are no answer. `direction` is "positive" where high measures
    are good. `essential` is a name, or "".
    """

    name: str
    label: Texts
    description: Texts
    essential: str
    direction: str
    items: list[MeasureItem]
    missing: list[str]


class Measures(TypedDict):
    """The measures of a survey. They are not part of what respondents are sent."""

    essentials: list[EssentialDefinition]
    measures: list[MeasureDefinition]


class SurveyDefinition(TypedDict):
    """One published survey.

    The first of `languages` is the default. `items` maps names to items,
    `option_sets` names to their options in order. `order` has the name of
    every item after those that its value depends on. `corrects`, in a
    version that corrects texts, is the digest of the first version that had
    these item ids.
    """

    format: int
    name: str
    version: str
    title: Texts
    languages: list[LanguageDefinition]
    option_sets: Mapping[str, list[OptionDefinition]]
    pages: list[PageDefinition]
    items: Mapping[str, ItemDefinition]
    order: list[str]
    corrects: NotRequired[str]


def load_definition(text: str) -> SurveyDefinition:
    """Read the stored JSON of a published survey; its digest vouches for it."""
    definition: SurveyDefinition = json.loads(text)
    return definition
