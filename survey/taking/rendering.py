"""A published survey as what a browser shows: a page's HTML and the outline.

The same bytes for everyone, so that nginx can keep them for good: nothing
here knows a respondent. What differs between people (piping, filters, order,
answers) is filled in by the browser.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.template.loader import render_to_string
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString, mark_safe

from survey.definitions.schema import (
    BlockDefinition,
    ItemDefinition,
    OptionDefinition,
    PageDefinition,
    SurveyDefinition,
    Texts,
)
from survey.taking import messages

PAGE_TEMPLATES = (
    "survey/_page.html",
    "survey/_grid.html",
    "survey/_item.html",
    "survey/_item_label.html",
    "survey/_item_about.html",
    "survey/_item_end.html",
    "survey/_options.html",
    "survey/_select.html",
    "survey/_range.html",
    "survey/_input.html",
)
INVISIBLE = frozenset(("calculate", "hidden"))
PIPE = re.compile(r"\$\{\s*([^\s{}]+)\s*\}")
INDENTATION = re.compile(r"\s*\n\s*")
# More columns than this are unreadable side by side on a laptop.
WIDEST_GRID = 11
# A longer list is easier to type into than to scroll through.
MOST_CARDS = 25

INPUTS: Mapping[str, tuple[str, str]] = {
    "text": ("text", ""),
    # Not type=number: it changes under a scrolling finger, and hides from
    # JavaScript what was typed when that is no number.
    "integer": ("text", "numeric"),
    "decimal": ("text", "decimal"),
    "date": ("date", ""),
    "time": ("time", ""),
    "datetime": ("datetime-local", ""),
}
LAYOUTS: Mapping[str, str] = {
    "likert": "likert",
    "horizontal": "beside",
    "horizontal-compact": "beside",
    "columns": "beside",
    "columns-pack": "beside",
    "compact": "beside",
    "quickcompact": "beside",
}


def _renderer() -> str:
    """A digest of everything that a page's bytes depend on but the survey.

    A mended template therefore has a new address, although pages are kept
    for ever under theirs.
    """
    here = Path(__file__)
    templates = here.parents[2] / "templates"
    sources = [here, here.with_name("messages.py")]
    sources += sorted(messages.FOLDER.glob("*.json"))
    sources += [templates / name for name in PAGE_TEMPLATES]
    digest = hashlib.sha256()
    for source in sources:
        digest.update(hashlib.sha256(source.read_bytes()).digest())
    return digest.hexdigest()[:12]


RENDERER: str = _renderer()


@dataclass(frozen=True, slots=True)
class Text:
    """A text as HTML; `attributes` say so where it is in another language."""

    html: SafeString = field(default_factory=lambda: mark_safe(""))
    attributes: SafeString = field(default_factory=lambda: mark_safe(""))

    def __bool__(self) -> bool:
        return bool(self.html)


@dataclass(frozen=True, slots=True)
class Option:
    value: str
    label: Text


@dataclass(frozen=True, slots=True)
class Localizer:
    """A survey in one of its languages; the first one fills the gaps."""

    language: str
    default: str
    direction: str
    directions: Mapping[str, str]

    @classmethod
    def of(cls, definition: SurveyDefinition, language: str) -> Localizer:
        """Raises KeyError for a language that the survey does not have."""
        directions = {one["code"]: one["direction"] for one in definition["languages"]}
        return cls(
            language,
            definition["languages"][0]["code"],
            directions[language],
            directions,
        )

    def find(self, texts: Texts | None) -> tuple[str, str]:
        """The text and the code of the language that it is in."""
        for code in (self.language, self.default, *(texts or ())):
            if texts and texts.get(code):
                return texts[code], code
        return "", self.language

    def plain(self, texts: Texts | None) -> str:
        return self.find(texts)[0]

    def text(self, texts: Texts | None) -> Text:
        text, code = self.find(texts)
        if not text:
            return Text()
        return Text(html_of(text), self._attributes(code))

    def _attributes(self, code: str) -> SafeString:
        if code == self.language:
            return mark_safe("")
        direction = self.directions.get(code) or messages.direction(code)
        return format_html(' lang="{}" dir="{}"', code, direction)

    def words(self) -> tuple[dict[str, str], SafeString]:
        """The messages, and attributes where they are in another language."""
        code = messages.language_for(self.language)
        understood = code == messages.base_of(self.language)
        attributes = mark_safe("") if understood else self._attributes(code)
        return messages.words(code), attributes


def html_of(text: str) -> SafeString:
    """Escape a text; `${name}` becomes a place that the browser fills.

    Without aria-live="off" an <output> would be read out whenever the answer
    that it repeats changes.
    """
    parts = PIPE.split(text.replace("\r\n", "\n"))
    pieces = [
        f'<output class="pipe" data-pipe="{escape(part)}" aria-live="off"></output>'
        if index % 2
        else escape(part).replace("\n", "<br>")
        for index, part in enumerate(parts)
    ]
    return mark_safe("".join(pieces))  # noqa: S308


def render_page(definition: SurveyDefinition, language: str, n: int) -> str:
    """The HTML of page `n`, which counts from 1.

    Raises KeyError for a language that the survey does not have, IndexError
    for a page that it does not have.
    """
    tongue = Localizer.of(definition, language)
    if n < 1:
        raise IndexError(n)
    page = definition["pages"][n - 1]
    words, words_attributes = tongue.words()
    title = tongue.text(page.get("title")) or Text(
        html_of(words["page_n"].replace("{n}", str(n))), words_attributes
    )
    html = render_to_string(
        "survey/_page.html",
        {
            "n": n,
            "name": page["name"],
            "language": tongue.language,
            "direction": tongue.direction,
            "title": title,
            "blocks": list(_blocks(definition, page, n, tongue)),
            "words": words,
            "words_attributes": words_attributes,
        },
    )
    # Half of a page would be indentation. No text holds a line break by now.
    return INDENTATION.sub("\n", html).strip()


def _blocks(
    definition: SurveyDefinition, page: PageDefinition, n: int, tongue: Localizer
) -> Iterator[dict[str, Any]]:
    for position, block in enumerate(page["blocks"]):
        items = [
            (name, definition["items"][name])
            for name in block["items"]
            if definition["items"][name]["kind"] not in INVISIBLE
        ]
        if not items and not block.get("label"):
            continue
        columns = _columns(definition, block, [item for _, item in items])
        yield {
            "position": position,
            "id": f"block-{n}-{position}",
            "label": tongue.text(block.get("label")),
            "grid": block["grid"],
            "columns": [_option(tongue, option) for option in columns],
            "items": [
                _item(definition, tongue, name, item, in_grid=block["grid"])
                for name, item in items
            ],
        }


def _columns(
    definition: SurveyDefinition,
    block: BlockDefinition,
    items: Iterable[ItemDefinition],
) -> list[OptionDefinition]:
    """The options above a grid's columns; none where it has to be cards.

    Columns need the same options in the same order in every row.
    """
    rows = [item for item in items if item["kind"].startswith("select")]
    sets = {item["option_set"] for item in rows}
    if not block["grid"] or len(sets) != 1:
        return []
    if any(item.get("randomize") for item in rows):
        return []
    options: list[OptionDefinition] = definition["option_sets"][sets.pop()]
    return options if 2 <= len(options) <= WIDEST_GRID else []


def _option(tongue: Localizer, option: OptionDefinition) -> Option:
    label = tongue.text(option.get("label")) or Text(html_of(option["value"]))
    return Option(option["value"], label)


def _item(
    definition: SurveyDefinition,
    tongue: Localizer,
    name: str,
    item: ItemDefinition,
    *,
    in_grid: bool,
) -> dict[str, Any]:
    kind = item["kind"]
    appearance = item.get("appearance", ())
    options = definition["option_sets"].get(item.get("option_set", ""), [])
    hint = tongue.text(item.get("hint"))
    widget = _widget(kind, appearance, options, in_grid=in_grid)
    input_type, input_mode = INPUTS.get(kind, ("", ""))
    read_only = bool(item.get("read_only"))
    several = kind == "select_multiple" and not in_grid and not hint
    described = [("how", several), ("hint", bool(hint)), ("error", True)]
    return {
        "name": name,
        "kind": kind,
        "widget": widget,
        "in_grid": in_grid and widget == "options" and kind != "acknowledge",
        "label": tongue.text(item.get("label")) or Text(html_of(name)),
        "hint": hint,
        "guidance": tongue.text(item.get("guidance")),
        "several": several,
        "described_by": " ".join(
            f"{name}-{end}" for end, is_there in described if is_there
        ),
        "required": item.get("required") is True,
        "maybe_required": isinstance(item.get("required"), list),
        "read_only": read_only,
        # Elsewhere an answer is taken back by choosing or typing nothing.
        "clearable": not read_only
        and (kind == "range" or (kind, widget) == ("select_one", "options")),
        "options": [_option(tongue, option) for option in options],
        "layout": _layout(appearance, len(options)),
        "input_type": input_type,
        "input_mode": "numeric" if "numbers" in appearance else input_mode,
        "long": "multiline" in appearance,
        "range": item.get("range"),
    }


def _widget(
    kind: str,
    appearance: Iterable[str],
    options: list[OptionDefinition],
    *,
    in_grid: bool,
) -> str:
    """Which partial shows the item."""
    if kind in ("note", "range"):
        return kind
    if kind in ("select_multiple", "acknowledge"):
        return "options"
    if kind != "select_one":
        return "input"
    as_list = not {"minimal", "autocomplete", "search"}.isdisjoint(appearance)
    if in_grid or not (as_list or len(options) > MOST_CARDS):
        return "options"
    # An <option> holds one line of text: nothing could be piped into it.
    labels = (text for option in options for text in option["label"].values())
    return "options" if any(PIPE.search(text) for text in labels) else "select"


def _layout(appearance: Iterable[str], count: int) -> str:
    layout = next((LAYOUTS[one] for one in appearance if one in LAYOUTS), "")
    if layout == "likert" and not 2 <= count <= WIDEST_GRID:
        return ""
    return f"{layout} cols-{count}" if layout == "likert" else layout


def outline(definition: SurveyDefinition, language: str) -> dict[str, Any]:
    """What the browser's rules need of the whole survey, in one language.

    Raises KeyError for a language that the survey does not have. Texts keep
    their `${name}` places, for the browser to fill.
    """
    tongue = Localizer.of(definition, language)
    return {
        "pages": [
            _page_outline(definition, page, tongue) for page in definition["pages"]
        ],
        "order": definition["order"],
        "items": {
            name: _item_outline(item, tongue)
            for name, item in definition["items"].items()
        },
        "option_sets": {
            name: [_option_outline(option, tongue) for option in options]
            for name, options in definition["option_sets"].items()
        },
    }


def _page_outline(
    definition: SurveyDefinition, page: PageDefinition, tongue: Localizer
) -> dict[str, Any]:
    return {
        "name": page["name"],
        "title": tongue.plain(page.get("title")),
        "items": [name for block in page["blocks"] for name in block["items"]],
    }


def _item_outline(item: ItemDefinition, tongue: Localizer) -> dict[str, Any]:
    dropped = ("id", "label", "hint", "guidance")
    kept: dict[str, object] = {
        key: value for key, value in item.items() if key not in dropped
    }
    if "required_message" in item:
        kept["required_message"] = tongue.plain(item["required_message"])
    if "constraint_message" in item:
        kept["constraint_message"] = tongue.plain(item["constraint_message"])
    return kept


def _option_outline(option: OptionDefinition, tongue: Localizer) -> dict[str, Any]:
    return {
        "value": option["value"],
        "label": tongue.plain(option.get("label")) or option["value"],
        "attributes": option.get("attributes", {}),
    }
