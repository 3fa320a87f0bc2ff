"""The answers of a person to one page, where no script keeps them.

Does on the server what `static/js/survey_state.js` does in a tab.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import replace

from django.http import QueryDict

from survey.instrument.definitions.expressions import to_text
from survey.instrument.definitions.rules import (
    MAX_VALUE_LENGTH,
    RuleState,
    is_computed,
    state_of,
)
from survey.instrument.definitions.schema import ItemDefinition
from survey.taking.published import Published
from survey.taking.typed_values import READ_KINDS, Typed, read_typed
from survey.taking.validation import BadAnswer, stored_text

# Before the name of an item in a form: an item may be called "go".
FIELD = "item-"


class PageAnswers:
    """All answers that this tab may show, with those of page `n` as posted.

    `stored` maps items that have a row to their texts, None if left blank.
    `earlier` are items that were answered on another device: their answers are not
    shown, and stay as they are unless they are answered again.
    """

    def __init__(
        self,
        published: Published,
        n: int,
        *,
        stored: Mapping[str, str | None],
        earlier: Collection[str],
        today: str,
        now: str,
        language: str,
    ) -> None:
        self.published = published
        self.definition = published.definition
        self.n = n
        self.stored = stored
        self.earlier = earlier
        self.clock = {"today": today, "now": now, "language": language}
        self.given = {name: text for name, text in stored.items() if text is not None}
        # Typed texts that are no valid answer, and why.
        self.mistyped: dict[str, Typed] = {}
        # Items filled with their default that the person has not changed.
        self.untouched: set[str] = set()
        self.recompute()
        self.fill_defaults()

    def recompute(self) -> None:
        """Apply all rules. An option that is no longer offered is no answer."""
        given = self.given
        while True:
            state = state_of(self.definition, given, **self.clock)
            lost = [
                name
                for name, problem in state.problems.items()
                if problem == "option" and not is_computed(state.item(name))
            ]
            if not lost:
                break
            given = given | {name: offered_part(state, name) for name in lost}
        self.shown, self.state = given, state

    @property
    def items(self) -> Mapping[str, ItemDefinition]:
        """The page's items that can be answered."""
        return self.published.answerable[self.n - 1]

    def visible_items(self) -> list[str]:
        return [name for name in self.items if self.state.relevant[name]]

    def fill_defaults(self) -> None:
        for name, item in self.items.items():
            is_known = name in self.stored or name in self.earlier
            if not is_known and not is_computed(item):
                self.given[name] = default_of(self.state, name)
                self.untouched.add(name)
        self.recompute()

    def text(self, name: str) -> str:
        """Return what the control of an item shows, apart from mistyped texts."""
        if is_computed(self.items[name]):
            return self.state.values[name]
        return self.shown.get(name, "")

    def take_posted(self, posted: QueryDict, names: Collection[str]) -> None:
        """Take the answers of a form that had the items `names`."""
        for name in names:
            item = self.items.get(name)
            if item is None or item.get("read_only"):
                continue
            read = read_field(
                self.published, name, posted, language=self.clock["language"]
            )
            text = "" if read.problem else read.text
            if text != self.given.get(name, ""):
                self.untouched.discard(name)
            self.given[name] = text
            if read.problem:
                self.mistyped[name] = read
        self.recompute()

    def take(self, name: str, text: str) -> None:
        """Take an answer that another tab saved meanwhile."""
        self.given[name] = text
        self.mistyped.pop(name, None)
        self.recompute()

    def problems(self) -> dict[str, str]:
        """Return the message keys of the page's items, as *Next* applies them."""
        problems = {}
        for name in self.visible_items():
            typed = self.mistyped.get(name)
            key = typed.problem if typed else self.state.problems.get(name)
            if key and not (key == "required" and self.is_kept(name)):
                problems[name] = key
        return problems

    def withheld(self) -> dict[str, str]:
        """Return the problems of what cannot be stored as it is."""
        return {
            name: key
            for name, key in self.problems().items()
            if name in self.mistyped
            or key == "option"
            or (
                key == "constraint"
                and "constraint" in self.items[name].get("local", ())
            )
        }

    def is_kept(self, name: str) -> bool:
        return name in self.earlier and name not in self.stored

    def content(
        self, form_items: Collection[str], *, passed: bool
    ) -> dict[str, object]:
        """Return what a save of the page carries, as a tab sends it.

        `passed`: the person went on, so that what was left blank is skipped. A
        question that only became relevant with this form has not been seen yet.
        """
        withheld = self.withheld()
        content: dict[str, object] = {}
        for name in self.items:
            if self.state.relevant[name] and name not in form_items:
                continue
            text: str | None = self.state.values[name] or None
            if name in withheld:
                # What is no answer yet never replaces one: an absent item keeps
                # its row.
                continue
            if text is None and self.is_kept(name):
                continue
            is_open = text is None or name in self.untouched
            if passed or name in self.stored or not is_open:
                content[name] = self.sent(name, text)
        return content

    def sent(self, name: str, text: str | None) -> object:
        if text is not None and self.items[name]["kind"] == "select_multiple":
            return text.split(" ")
        return text

    def offered(self) -> dict[str, list[str]]:
        """Return the values that the page's choice filters let through, by item."""
        return {
            name: [option["value"] for option in self.state.offered(name)]
            for name, item in self.items.items()
            if "choice_filter" in item
        }

    def newly_offered(self, before: Mapping[str, list[str]]) -> set[str]:
        """Return blank items with options that were not offered `before`.

        With them those that still have none: they may get some by the next answer.
        """
        offered = self.offered().items()
        blank = {name: set(v) for name, v in offered if not self.state.values[name]}
        new = {name for name, values in blank.items() if values - set(before[name])}
        return new and new | {name for name, values in blank.items() if not values}

    def unseen(self, form_items: Collection[str]) -> bool:
        """Return whether an answer of this form has made a question relevant."""
        return not set(self.visible_items()) <= set(form_items)

    # Pages

    def after(self) -> int | None:
        return min((m for m in self.state.visible_pages() if m > self.n), default=None)

    def before(self) -> int | None:
        return max((m for m in self.state.visible_pages() if m < self.n), default=None)

    def place(self) -> tuple[int, int]:
        """Return the place among the pages that this person sees, and their number."""
        visible = self.state.visible_pages()
        return sum(page <= self.n for page in visible), len(visible)

    def start_page(self) -> int | None:
        """Return the first page with a question that has no row.

        Until something is stored it is the first page, which may have only notes.
        """
        is_first_visit = not self.stored and not self.earlier
        for number in sorted(self.state.visible_pages()):
            if is_first_visit:
                return number
            for name in self.published.answerable[number - 1]:
                is_known = name in self.stored or name in self.earlier
                if self.state.relevant[name] and not is_known:
                    return number
        return None


def offered_part(state: RuleState, name: str) -> str:
    offered = {option["value"] for option in state.offered(name)}
    return " ".join(part for part in state.values[name].split(" ") if part in offered)


def default_of(state: RuleState, name: str) -> str:
    """Return what an item is filled with when it is first shown."""
    item = state.item(name)
    if "default_expression" not in item:
        return item.get("default", "")
    value = state.value_of(item["default_expression"])
    # As for calculations: NaN is no answer.
    if isinstance(value, float) and math.isnan(value):
        return ""
    return to_text(value)[:MAX_VALUE_LENGTH]


def read_field(
    published: Published, name: str, posted: QueryDict, *, language: str
) -> Typed:
    """Return an answer, or what was typed and the key of its problem."""
    item = published.definition["items"][name]
    values = posted.getlist(FIELD + name)
    if item["kind"] == "select_multiple":
        typed = " ".join(values)
        value: object = [value for value in values if value]
    else:
        typed = values[0] if values else ""
        value = typed
        if item["kind"] == "text":
            value = typed.replace("\r\n", "\n").replace("\0", "")
        elif item["kind"] in READ_KINDS:
            read = read_typed(item["kind"], typed, language)
            if read.problem:
                return replace(read, text=typed)
            value = read.text
    try:
        return Typed(stored_text(item, value, published.definition) or "")
    except BadAnswer as bad:
        return Typed(typed, str(bad))
