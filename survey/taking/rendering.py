"""Render a published survey for the browser: each page's HTML, and the outline.

The bytes are the same for everyone, so that nginx can cache them for ever:
nothing here depends on a respondent. The browser fills in what differs between
people (piping, filters, order of options, answers).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from django.template.loader import render_to_string
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString, mark_safe

from survey.instrument.definitions import piping
from survey.instrument.definitions.piping import PIPE, fill_pipes
from survey.instrument.definitions.schema import (
    BlockDefinition,
    ItemDefinition,
    OptionDefinition,
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
INDENTATION = re.compile(r"\s*\n\s*")
# More columns than this are unreadable side by side on a laptop.
WIDEST_GRID = 11
# Letters, 6.8 px each, of the longest words that segments have room for side by side
# on a phone of 360 px; a segment's edges take as much as 1.6 letters.
PHONE_LINE = 46
SEGMENT_EDGES = 1.6
# A longer list is easier to type into than to scroll through.
MOST_CARDS = 25

INPUTS: Mapping[str, tuple[str, str]] = {
    "text": ("text", ""),
    # Not type=number: scrolling changes its value, and JavaScript can't read
    # typed text that is no number.
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


def renderer_version() -> str:
    """Return a digest of all sources of a page's bytes except the survey.

    Pages are cached for ever under their addresses. A changed template changes
    this digest, and with it the address.
    """
    here = Path(__file__)
    templates = here.parents[2] / "templates"
    sources = [here, here.with_name("messages.py"), messages.SOURCE]
    sources.append(Path(piping.__file__))
    sources += messages.compiled_catalogs("*")
    sources += [templates / name for name in PAGE_TEMPLATES]
    digest = hashlib.sha256()
    for source in sources:
        digest.update(hashlib.sha256(source.read_bytes()).digest())
    return digest.hexdigest()[:12]


RENDERER: str = renderer_version()


@dataclass(frozen=True, slots=True)
class Text:
    """A text as HTML, with `lang` and `dir` attributes if its language differs."""

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
    """Finds texts in one language; the survey's first language fills the gaps."""

    language: str
    default: str
    direction: str
    directions: Mapping[str, str]
    # The answers that texts repeat; without them, the browser fills them in.
    values: Mapping[str, str] | None = None

    @classmethod
    def of(
        cls,
        definition: SurveyDefinition,
        language: str,
        values: Mapping[str, str] | None = None,
    ) -> Localizer:
        """Raises KeyError for a language that the survey does not have."""
        languages = definition["languages"]
        directions = {entry["code"]: entry["direction"] for entry in languages}
        default = languages[0]["code"]
        return cls(language, default, directions[language], directions, values)

    def find(self, texts: Texts | None) -> tuple[str, str]:
        """Return the text, and the code of the language that it is in."""
        for code in (self.language, self.default, *(texts or ())):
            if texts and texts.get(code):
                return texts[code], code
        return "", self.language

    def plain(self, texts: Texts | None) -> str:
        text, _ = self.find(texts)
        return text if self.values is None else fill_pipes(text, self.values)

    def text(self, texts: Texts | None) -> Text:
        text, code = self.find(texts)
        if not text:
            return Text()
        return Text(html_of(text, self.values), self._attributes(code))

    def _attributes(self, code: str) -> SafeString:
        if code == self.language:
            return mark_safe("")
        direction = self.directions.get(code) or messages.direction(code)
        return format_html(' lang="{}" dir="{}"', code, direction)

    def messages(self) -> tuple[dict[str, str], SafeString]:
        """Return the messages, and attributes if their language differs."""
        code = messages.language_for(self.language)
        is_same = code == messages.base_of(self.language)
        attributes = mark_safe("") if is_same else self._attributes(code)
        return messages.messages_in(code), attributes


def html_of(text: str, values: Mapping[str, str] | None = None) -> SafeString:
    """Escape a text, and turn `${name}` into an element that the browser fills.

    With `values`, the element is filled.
    """
    # Not an <output>: Chromium leaves it out of the name of a control that a <label>
    # around it names, so that screen readers would skip the answer.
    parts = PIPE.split(text.replace("\r\n", "\n"))
    pieces = [
        f'<span class="pipe" data-pipe="{escape(part)}">'
        f"{escape(values.get(part, '')) if values else ''}</span>"
        if index % 2
        else escape(part).replace("\n", "<br>")
        for index, part in enumerate(parts)
    ]
    return mark_safe("".join(pieces))  # noqa: S308


def render_page(definition: SurveyDefinition, language: str, n: int) -> str:
    """Render the HTML of page `n`, which counts from 1.

    Raises KeyError for a language and IndexError for a page that the survey
    does not have.
    """
    localizer = Localizer.of(definition, language)
    if n < 1:
        raise IndexError(n)
    page = definition["pages"][n - 1]
    words, words_attributes = localizer.messages()
    own_title = localizer.text(page.get("title"))
    title = own_title or Text(
        html_of(words["page_n"].replace("{n}", str(n))), words_attributes
    )
    blocks = []
    for position, block in enumerate(page["blocks"]):
        context = _block_context(definition, localizer, block)
        if context["items"] or block.get("label"):
            place = {"position": position, "id": f"block-{n}-{position}"}
            blocks.append(context | place)
    html = render_to_string(
        "survey/_page.html",
        {
            "n": n,
            "name": page["name"],
            "language": localizer.language,
            "direction": localizer.direction,
            "title": title,
            # Pages that a person does not see are not counted: the browser knows.
            "is_numbered": not own_title,
            "blocks": blocks,
            "words": words,
            "words_attributes": words_attributes,
        },
    )
    # Half of a page would be indentation. No text contains a line break here.
    return INDENTATION.sub("\n", html).strip()


def _block_context(
    definition: SurveyDefinition, localizer: Localizer, block: BlockDefinition
) -> dict[str, object]:
    in_grid = block["grid"]
    items = {
        name: definition["items"][name]
        for name in block["items"]
        if definition["items"][name]["kind"] not in INVISIBLE
    }
    columns: list[OptionDefinition] = []
    # Columns need the same options in the same order in every row; other
    # grids are shown as cards.
    choices = [item for item in items.values() if item["kind"].startswith("select")]
    option_sets = {item["option_set"] for item in choices}
    is_random = any(item.get("randomize") for item in choices)
    if in_grid and len(option_sets) == 1 and not is_random:
        options = definition["option_sets"][option_sets.pop()]
        columns = options if 2 <= len(options) <= WIDEST_GRID else []
    return {
        "label": localizer.text(block.get("label")),
        "grid": in_grid,
        "columns": [option_of(localizer, option) for option in columns],
        "has_long_words": has_long_words(localizer, columns),
        "items": [
            item_context(definition, localizer, name, item, in_grid=in_grid)
            for name, item in items.items()
        ],
    }


def has_long_words(localizer: Localizer, columns: list[OptionDefinition]) -> bool:
    """Tell whether answers of a scale do not fit side by side on a phone.

    Words are not broken. Of fewer than four, or more than seven, they need not.
    """
    if not 4 <= len(columns) <= 7:
        return False
    labels = [localizer.plain(option.get("label")) for option in columns]
    letters = sum(max(map(len, label.split()), default=0) for label in labels)
    return letters + SEGMENT_EDGES * len(columns) > PHONE_LINE


def option_of(localizer: Localizer, option: OptionDefinition) -> Option:
    label = localizer.text(option.get("label")) or Text(html_of(option["value"]))
    return Option(option["value"], label)


def item_context(
    definition: SurveyDefinition,
    localizer: Localizer,
    name: str,
    item: ItemDefinition,
    *,
    in_grid: bool,
) -> dict[str, object]:
    kind = item["kind"]
    appearance = item.get("appearance", ())
    options = definition["option_sets"].get(item.get("option_set", ""), [])
    hint = localizer.text(item.get("hint"))
    widget = widget_for(kind, appearance, options, in_grid=in_grid)
    input_type, input_mode = INPUTS.get(kind, ("", ""))
    read_only = bool(item.get("read_only"))
    several = kind == "select_multiple" and not in_grid and not hint
    described = [("how", several), ("hint", bool(hint)), ("error", True)]
    layout = next((LAYOUTS[entry] for entry in appearance if entry in LAYOUTS), "")
    if layout == "likert":
        fits = 2 <= len(options) <= WIDEST_GRID
        layout = f"likert cols-{len(options)}" if fits else ""
    return {
        "name": name,
        "kind": kind,
        "widget": widget,
        "in_grid": in_grid and widget == "options" and kind != "acknowledge",
        "label": localizer.text(item.get("label")) or Text(html_of(name)),
        "hint": hint,
        "guidance": localizer.text(item.get("guidance")),
        "several": several,
        "described_by": " ".join(
            f"{name}-{part}" for part, exists in described if exists
        ),
        "required": item.get("required") is True,
        "maybe_required": isinstance(item.get("required"), list),
        "read_only": read_only,
        # Other items are cleared by choosing or typing nothing.
        "clearable": not read_only
        and (kind == "range" or (kind, widget) == ("select_one", "options")),
        "options": [option_of(localizer, option) for option in options],
        "layout": layout,
        "input_type": input_type,
        "input_mode": "numeric" if "numbers" in appearance else input_mode,
        "long": "multiline" in appearance,
        "range": item.get("range"),
    }


def widget_for(
    kind: str,
    appearance: Iterable[str],
    options: list[OptionDefinition],
    *,
    in_grid: bool,
) -> str:
    """Choose the partial template that shows an item."""
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


def outline(definition: SurveyDefinition, language: str) -> dict[str, object]:
    """Return what the browser's rules need of the whole survey, in one language.

    Raises KeyError for a language that the survey does not have. Texts keep
    their `${name}` places, for the browser to fill.
    """
    localizer = Localizer.of(definition, language)
    dropped = ("id", "label", "hint", "guidance")
    items: dict[str, dict[str, object]] = {}
    for name, item in definition["items"].items():
        outlined = {key: value for key, value in item.items() if key not in dropped}
        if "required_message" in item:
            outlined["required_message"] = localizer.plain(item["required_message"])
        if "constraint_message" in item:
            outlined["constraint_message"] = localizer.plain(item["constraint_message"])
        items[name] = outlined
    return {
        "pages": [
            {
                "name": page["name"],
                "title": localizer.plain(page.get("title")),
                "items": [name for block in page["blocks"] for name in block["items"]],
            }
            for page in definition["pages"]
        ],
        "order": definition["order"],
        "items": items,
        "option_sets": {
            name: [
                {
                    "value": option["value"],
                    "label": localizer.plain(option.get("label")) or option["value"],
                    "attributes": option.get("attributes", {}),
                }
                for option in options
            ]
            for name, options in definition["option_sets"].items()
        },
    }
