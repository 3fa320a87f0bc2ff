"""Find what an author has not finished: options, limits of numbers, names, markup."""

from __future__ import annotations

import re
from collections.abc import Iterator

from django.utils.text import Truncator
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from survey.instrument.drafts.checks.check import Check, hint, problem
from survey.instrument.drafts.checks.texts import folded, shortened, texts_of
from survey.instrument.drafts.option_rows import first_labels
from survey.instrument.xlsform.draft import Draft, ItemDraft, OptionDraft

NUMBERS = frozenset(("integer", "decimal"))
# HTML and Markdown, as other programs format texts. Signs that people write, such as
# "2 * 3 * 4", "_____" and "<3", are none.
MARKUP = re.compile(
    r"</?(?:a|b|br|big|center|div|em|font|h[1-6]|hr|i|img|li|ol|p|small|span|strong|sub"
    r"|sup|table|td|tr|u|ul)\b[^<>]{0,200}>"
    r"|\*\*(?=\S)[^*]{1,200}\*\*|(?<![\w_])__(?=[^\s_])[^_]{1,200}__(?![\w_])"
    r"|!?\[[^\[\]]{1,200}\]\((?:https?:|mailto:|/)[^()\s]{1,200}\)|^#{1,6} (?=\S)",
    re.IGNORECASE | re.MULTILINE,
)
# As the editor names questions that have no text yet.
MADE_UP_NAME = re.compile(r"(question|grid)(_\d+)*")


def check_options(draft: Draft) -> Iterator[Check]:
    """Find options without a text of their own, and options that are there twice."""
    seen: set[str] = set()
    for item in draft.items():
        if item.option_set in seen:
            continue
        seen.add(item.option_set)
        options = draft.option_sets.get(item.option_set, [])
        yield from _blank_options(item, options)
        yield from _untouched_options(draft, item, options)
        yield from _repeated_options(draft, item, options)


def _blank_options(item: ItemDraft, options: list[OptionDraft]) -> Iterator[Check]:
    blank = [option for option in options if not any(option.label.values())]
    if blank:
        message = ngettext(
            "The answer “%(value)s” has no text: people see its stored value.",
            "%(count)s answers have no text, such as “%(value)s”: people see their"
            " stored values.",
            len(blank),
        ) % {"count": len(blank), "value": blank[0].value}
        yield hint("option_without_text", message, item)


def _untouched_options(
    draft: Draft, item: ItemDraft, options: list[OptionDraft]
) -> Iterator[Check]:
    code = draft.languages[0]["code"]
    for number, option in enumerate(options, 1):
        label = option.label.get(code, "")
        if label in first_labels(option.value) | first_labels(str(number)):
            message = _(
                "“%(text)s” is still the text that this answer began with. Write the"
                " answer, or delete it."
            ) % {"text": label}
            yield problem("untouched_option", message, item)


def _repeated_options(
    draft: Draft, item: ItemDraft, options: list[OptionDraft]
) -> Iterator[Check]:
    code = draft.languages[0]["code"]
    first: dict[tuple[object, ...], OptionDraft] = {}
    reported: set[str] = set()
    for option in options:
        label = folded(option.label.get(code, ""))
        # A filter may show one of them to each person.
        key = (label, *sorted(option.attributes.items()))
        earlier = first.setdefault(key, option)
        if label and earlier is not option and label not in reported:
            reported.add(label)
            message = _("The answer “%(text)s” is there twice. Delete one.") % {
                "text": shortened(option.label[code])
            }
            yield problem("repeated_option", message, item)


def check_limits(draft: Draft) -> Iterator[Check]:
    """Find numbers of which any is accepted."""
    for item in draft.items():
        if item.kind in NUMBERS and "constraint" not in item.rules:
            message = _(
                "People can answer any number, such as -5. Write the smallest and the"
                " largest that are right."
            )
            yield hint("no_limits", message, item)


def check_made_up_names(draft: Draft) -> Iterator[Check]:
    for item in draft.items():
        if item.is_answerable and MADE_UP_NAME.fullmatch(item.name):
            message = _(
                "In exports, its column is called %(name)s, which says nothing. Give"
                " it another variable name."
            ) % {"name": item.name}
            yield hint("made_up_name", message, item)


def check_markup(draft: Draft) -> Iterator[Check]:
    """Find HTML and Markdown, which respondents would see as it is written."""
    for text in texts_of(draft):
        for code, words in text.texts.items():
            if text.kind == "title" and "\n" in words:
                message = _(
                    "“%(text)s” is a title of several lines. Was more pasted than the"
                    " title?"
                ) % {"text": shortened(words)}
                yield hint("long_title", message, text.item, code)
            if match := MARKUP.search(words):
                message = _(
                    "“%(text)s” is formatted with “%(sign)s”, which people see as it"
                    " is written. Take it out."
                ) % {"text": shortened(words), "sign": Truncator(match[0]).chars(40)}
                yield hint("markup", message, text.item, code)
