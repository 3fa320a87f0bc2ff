"""Compare two versions of a survey: which texts differ, and what else does."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from survey.instrument.definitions.expressions import labels_of
from survey.instrument.definitions.measures import sheet_rows
from survey.instrument.definitions.schema import (
    ANSWERABLE,
    ITEM_TEXTS,
    RULES,
    SELECTS,
    BlockDefinition,
    ItemDefinition,
    Measures,
    OptionDefinition,
    SurveyDefinition,
    Texts,
)
from survey.instrument.xlsform.writing import as_text

# The keys of an item that are neither texts nor given by publishing, and the
# columns of the workbook that they come from.
ITEM_COLUMNS = {
    "kind": "type",
    "option_set": "options",
    "required": "required",
    "relevant": "relevant",
    "constraint": "constraint",
    "calculation": "calculation",
    "choice_filter": "choice_filter",
    "default": "default",
    "default_expression": "default",
    "read_only": "read_only",
    "randomize": "randomize",
    "seed": "seed",
    "appearance": "appearance",
    "range": "range",
}
NOTHING = "–"
TEXT_WORDS = {
    "hint": gettext_lazy("hint"),
    "guidance": gettext_lazy("guidance"),
    "required_message": gettext_lazy("message if it is required"),
    "constraint_message": gettext_lazy("message if it is not valid"),
}


@dataclass(frozen=True, slots=True)
class TextChange:
    """One text in one language; "" where there is none."""

    place: str
    language: str
    was: str
    now: str


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference in anything but a text."""

    place: str
    was: str
    now: str

    def __str__(self) -> str:
        return _("%(place)s: was %(was)s, is %(now)s") % {
            "place": self.place,
            "was": self.was,
            "now": self.now,
        }


@dataclass
class Comparison:
    texts: list[TextChange] = field(default_factory=list)
    differences: list[Difference] = field(default_factory=list)

    @property
    def is_correction(self) -> bool:
        return bool(self.texts) and not self.differences


def compare(
    was: SurveyDefinition,
    now: SurveyDefinition,
    measures: tuple[Measures | None, Measures | None] = (None, None),
) -> Comparison:
    """List the texts that differ between two definitions, and all else that does.

    `measures` are those of the two versions.
    """
    comparer = DefinitionComparer(was, now)
    comparer.compare_settings()
    comparer.compare_pages()
    comparer.compare_items()
    comparer.compare_option_sets()
    comparer.compare_labels_in_rules()
    comparer.compare_measures(*measures)
    result = comparer.result
    if not result.differences and without_texts(was) != without_texts(now):
        # A safety net: a part that none of the above knows differs, and rows
        # of the two versions would not line up.
        result.differences.append(Difference(_("the whole"), _("another"), _("this")))
    return result


def without_texts(definition: SurveyDefinition) -> dict[str, object]:
    items = definition["items"].items()
    return {
        "pages": [
            (
                page["name"],
                [(block["grid"], block["items"]) for block in page["blocks"]],
            )
            for page in definition["pages"]
        ],
        "items": {
            name: {
                key: written(key, part)
                for key, part in item.items()
                if key not in ITEM_TEXTS
            }
            for name, item in items
        },
        "option_sets": {
            name: [(option["value"], option["attributes"]) for option in options]
            for name, options in definition["option_sets"].items()
        },
        "order": definition["order"],
    }


def written(key: str, part: object) -> object:
    """Return a rule as its author writes it, and any other part of an item as it is.

    A rule of a group and one of its question are joined differently in a workbook that
    is written from a definition, but mean the same.
    """
    if key in RULES and isinstance(part, str | int | float | list):
        return as_text(part)
    return part


class DefinitionComparer:
    """Compare two definitions part by part, and collect the `result`."""

    def __init__(self, was: SurveyDefinition, now: SurveyDefinition) -> None:
        self.was = was
        self.now = now
        self.result = Comparison()

    def compare_settings(self) -> None:
        was, now = self.was, self.now
        name = _("name of the survey (form_id)")
        self.add_difference(name, was["name"], now["name"])
        self.add_texts(_("title"), was["title"], now["title"])
        before = {language["code"]: language for language in was["languages"]}
        after = {language["code"]: language for language in now["languages"]}
        self.add_difference(
            _("default language"), next(iter(before)), next(iter(after))
        )
        for code in before:
            if code not in after:
                place = _("language %(code)s") % {"code": code}
                self.add_difference(place, _("there"), _("missing"))
        for code, language in after.items():
            name = before[code]["name"] if code in before else ""
            if name != language["name"]:
                change = TextChange(_("language"), code, name, language["name"])
                self.result.texts.append(change)

    def compare_pages(self) -> None:
        before = {page["name"]: page for page in self.was["pages"]}
        after = {page["name"]: page for page in self.now["pages"]}
        self.compare_names(_("page %(name)s"), list(before), list(after))
        for number, (name, page) in enumerate(after.items(), 1):
            if name in before:
                earlier = before[name]
                shown = _("Page %(number)s") % {"number": number}
                title = _("%(place)s, title") % {"place": shown}
                self.add_texts(title, earlier["title"], page["title"])
                place = _("page %(name)s") % {"name": name}
                self.compare_blocks(place, earlier["blocks"], page["blocks"])

    def compare_blocks(
        self, place: str, was: list[BlockDefinition], now: list[BlockDefinition]
    ) -> None:
        shapes = [
            [(block["grid"], block["items"]) for block in side] for side in (was, now)
        ]
        if shapes[0] == shapes[1]:
            for number, (earlier, block) in enumerate(zip(was, now, strict=True), 1):
                heading = _("%(place)s, heading %(number)s") % {
                    "place": place,
                    "number": number,
                }
                self.add_texts(heading, earlier["label"], block["label"])
            return
        # Items that came, went or moved are listed by name, elsewhere.
        names = [[name for _, names in shape for name in names] for shape in shapes]
        if names[0] == names[1]:
            before, after = (
                "; ".join(
                    (_("a grid of %(items)s") if block["grid"] else "%(items)s")
                    % {"items": ", ".join(block["items"]) or _("none")}
                    for block in side
                )
                for side in (was, now)
            )
            words = _("%(place)s, headings and grids") % {"place": place}
            self.add_difference(words, before, after)

    def compare_items(self) -> None:
        names = [
            [
                name
                for page in definition["pages"]
                for block in page["blocks"]
                for name in block["items"]
            ]
            for definition in (self.was, self.now)
        ]
        self.compare_names(_("question %(name)s"), *names)
        for name in names[1]:
            if name not in self.was["items"]:
                continue
            earlier, item = self.was["items"][name], self.now["items"][name]
            for key in ITEM_TEXTS:
                place = self.question(name)
                if key in TEXT_WORDS:
                    place = f"{place}, {TEXT_WORDS[key]}"
                self.add_texts(place, earlier.get(key, {}), item.get(key, {}))
            page = self.was["pages"][earlier["page"] - 1]["name"]
            new_page = self.now["pages"][item["page"] - 1]["name"]
            self.add_difference(_("%(name)s, page") % {"name": name}, page, new_page)
            self.compare_item_columns(name, earlier, item)

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The numbers of questions, as authors and respondents count them."""
        items = self.now["items"]
        numbers: dict[str, int] = {}
        for page in self.now["pages"]:
            for name in (name for block in page["blocks"] for name in block["items"]):
                select = items.get(name.removesuffix("_other"))
                # The text for *Other* belongs to its question.
                is_other = (
                    select is not None
                    and select is not items[name]
                    and select["kind"] in SELECTS
                )
                if items[name]["kind"] in ANSWERABLE and not is_other:
                    numbers[name] = len(numbers) + 1
        return numbers

    def question(self, name: str) -> str:
        """Return "Question 2", or the name of what has no number."""
        number = self.numbers.get(name)
        return _("Question %(number)s") % {"number": number} if number else name

    def answer(self, option_set: str, value: str, label: Texts) -> str:
        """Return "Question 2, answer “Cat”", or the names of a list and a value."""
        for name in self.numbers:
            if self.now["items"][name].get("option_set") == option_set:
                text = next(filter(None, label.values()), value)
                words = {"question": self.question(name), "text": text}
                return _("%(question)s, answer “%(text)s”") % words
        return _("options %(set)s, %(value)s") % {"set": option_set, "value": value}

    def compare_item_columns(
        self, name: str, was: ItemDefinition, now: ItemDefinition
    ) -> None:
        known = {*ITEM_COLUMNS, *ITEM_TEXTS, "id", "page", "local"}
        unknown = {key: key for key in (was.keys() | now.keys()) - known}
        for key, column in (ITEM_COLUMNS | unknown).items():
            before, after = written(key, was.get(key)), written(key, now.get(key))
            self.add_difference(f"{name}, {column}", before, after)

    def compare_option_sets(self) -> None:
        was, now = self.was["option_sets"], self.now["option_sets"]
        for name in was.keys() & now.keys():
            self.compare_options(name, was[name], now[name])
        # A list that was copied, so that it changes for some of its questions only.
        copies = {
            (earlier["option_set"], item["option_set"])
            for name, item in self.now["items"].items()
            if (earlier := self.was["items"].get(name))
            and "option_set" in earlier
            and "option_set" in item
            and item["option_set"] not in was
        }
        for name, copied in sorted(copies):
            self.compare_options(copied, was[name], now[copied])

    def compare_options(
        self, name: str, was: list[OptionDefinition], now: list[OptionDefinition]
    ) -> None:
        before = {option["value"]: option for option in was}
        after = {option["value"]: option for option in now}
        # The name of an option follows, in `compare_names`.
        of_set = _("options %(set)s, option %(name)s")
        kind = of_set % {"set": name.replace("%", "%%"), "name": "%(name)s"}
        self.compare_names(kind, list(before), list(after))
        for value, option in after.items():
            if value in before:
                earlier = before[value]
                place = _("options %(set)s, %(value)s") % {"set": name, "value": value}
                shown = self.answer(name, value, earlier["label"])
                self.add_texts(shown, earlier["label"], option["label"])
                columns = earlier["attributes"], option["attributes"]
                words = _("%(place)s, columns") % {"place": place}
                self.add_difference(words, *columns)

    def compare_labels_in_rules(self) -> None:
        """Find labels that changed and that a rule reads: its result may change."""
        readers: dict[str, set[str]] = {}
        for name, item in self.was["items"].items():
            for rule in RULES:
                for read in labels_of(item.get(rule, True)):
                    option_set = self.was["items"][read].get("option_set", "")
                    readers.setdefault(option_set, set()).add(
                        _("%(rule)s of %(name)s") % {"rule": rule, "name": name}
                    )
        for option_set, rules in readers.items():
            before, after = (
                {
                    option["value"]: option["label"]
                    for option in definition["option_sets"].get(option_set, [])
                }
                for definition in (self.was, self.now)
            )
            for value in before.keys() & after.keys():
                place = _(
                    "options %(set)s, %(value)s, which is read by the %(rules)s"
                ) % {
                    "set": option_set,
                    "value": value,
                    "rules": ", ".join(sorted(rules)),
                }
                self.add_difference(place, before[value], after[value])

    def compare_measures(self, was: Measures | None, now: Measures | None) -> None:
        """Compare measures and essentials as rows of their sheet."""
        earlier, later = (
            {
                f"{row.get('type')} {row.get('name')}": row
                for row in (sheet_rows(side) if side else [])
            }
            for side in (was, now)
        )
        self.compare_names("%(name)s", list(earlier), list(later))
        for place, after in later.items():
            if place not in earlier:
                continue
            before = earlier[place]
            self.add_texts(place, before.texts["label"], after.texts["label"])
            words = _("%(place)s, description") % {"place": place}
            texts = before.texts["description"], after.texts["description"]
            self.add_texts(words, *texts)
            for column in after.values:
                words = f"{place}, {column}"
                self.add_difference(words, before.get(column), after.get(column))

    def compare_names(self, kind: str, was: list[str], now: list[str]) -> None:
        """Find the names that came, went or moved; `kind` has a place for the name."""
        for name in was:
            if name not in now:
                self.add_difference(kind % {"name": name}, _("there"), _("missing"))
        for name in now:
            if name not in was:
                self.add_difference(kind % {"name": name}, _("missing"), _("there"))
        remaining = [name for name in was if name in now]
        order = [name for name in now if name in was]
        start = _("the beginning")
        before = dict(zip(remaining, [start, *remaining], strict=False))
        after = dict(zip(order, [start, *order], strict=False))
        for name in moved_names(remaining, order):
            places = (
                _("after %(name)s") % {"name": side[name]} for side in (before, after)
            )
            self.add_difference(kind % {"name": name}, *places)

    def add_texts(self, place: str, was: Texts, now: Texts) -> None:
        for code in dict.fromkeys((*was, *now)):
            before, after = was.get(code, ""), now.get(code, "")
            if before != after:
                self.result.texts.append(TextChange(place, code, before, after))

    def add_difference(self, place: str, was: object, now: object) -> None:
        if was != now:
            difference = Difference(place, readable(was), readable(now))
            self.result.differences.append(difference)


def moved_names(was: list[str], now: list[str]) -> list[str]:
    """Return the fewest names without which the rest is in the same order.

    That is, all that are not in a longest common subsequence.
    """
    position = {name: number for number, name in enumerate(was)}
    # For each length, the end of the subsequence that ends the earliest.
    ends: list[int] = []
    names: list[str] = []
    previous: dict[str, str | None] = {}
    for name in now:
        at = bisect_left(ends, position[name])
        previous[name] = names[at - 1] if at else None
        ends[at : at + 1] = [position[name]]
        names[at : at + 1] = [name]
    stayed: set[str] = set()
    last = names[-1] if names else None
    while last is not None:
        stayed.add(last)
        last = previous[last]
    return [name for name in now if name not in stayed]


def readable(value: object) -> str:
    if value is None or value == {} or value == []:
        return NOTHING
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {readable(part)}" for key, part in value.items())
    if isinstance(value, list):
        return " ".join(map(readable, value))
    return str(value)


def summary(differences: list[Difference]) -> str:
    """List the first three differences, and count the rest."""
    listed = "; ".join(map(str, differences[:3]))
    rest = len(differences) - 3
    if rest <= 0:
        return listed
    return _("%(listed)s; and %(rest)s more") % {"listed": listed, "rest": rest}
