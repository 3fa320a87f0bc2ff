"""Check pages, names, lengths of texts, repeated questions and missing measures."""

from __future__ import annotations

from collections.abc import Iterator

from django.utils.translation import gettext as _

from survey.instrument.drafts.checks.check import Check, hint
from survey.instrument.drafts.checks.texts import (
    folded,
    plain,
    question_numbers,
    shortened,
    texts_of,
    words,
)
from survey.instrument.xlsform.draft import Draft, ItemDraft
from survey.instrument.xlsform.names import LONGEST_EXPORTED

# Pages of four to six questions are usual; a grid with a question beside it is more.
MOST_ON_PAGE = 10
# Words, by the kind of text.
LONGEST = {"label": 40, "heading": 40, "hint": 40, "option": 20, "title": 15}
LONGEST_NOTE = 150
# "Why?" and "Please explain." are asked again and again.
FEWEST_WORDS_REPEATED = 4


def check_pages(draft: Draft) -> Iterator[Check]:
    for page in draft.pages:
        items = [item for item in page.items() if item.is_answerable]
        if len(items) > MOST_ON_PAGE:
            message = _(
                "This page has %(count)s questions. On a phone people lose their place:"
                " divide it into pages of up to %(most)s."
            ) % {"count": len(items), "most": MOST_ON_PAGE}
            yield hint("long_page", message, items[0])


def check_names(draft: Draft) -> Iterator[Check]:
    """Find names of columns that are too long for SPSS."""
    for item in draft.items():
        names = [item.name]
        if item.kind == "select_multiple":
            options = draft.option_sets.get(item.option_set, [])
            names += [f"{item.name}_{option.value}" for option in options]
        longest = max(names, key=lambda name: len(name.encode()))
        if len(longest.encode()) > LONGEST_EXPORTED:
            message = _(
                "The name %(name)s is longer than %(most)s characters, and files for"
                " SPSS shorten it. Choose a shorter name."
            ) % {"name": longest, "most": LONGEST_EXPORTED}
            yield hint("long_name", message, item)


def check_long_texts(draft: Draft) -> Iterator[Check]:
    for text in texts_of(draft):
        is_note = text.kind == "label" and text.item and text.item.kind == "note"
        most = LONGEST_NOTE if is_note else LONGEST.get(text.kind)
        for language in draft.languages:
            content = plain(text.texts.get(language["code"], ""))
            count = len(words(content))
            if most and count > most:
                message = _(
                    "“%(text)s” has %(count)s words. Shorten it to %(most)s or fewer."
                ) % {"text": shortened(content), "count": count, "most": most}
                yield hint("long_text", message, text.item, language["code"])


def check_repeated(draft: Draft) -> Iterator[Check]:
    code = draft.languages[0]["code"]
    first: dict[tuple[str, str], ItemDraft] = {}
    numbers = question_numbers(draft)
    for page in draft.pages:
        for block in page.blocks:
            # Rows of two grids may be alike: "In my classes", "In the halls".
            stem = block.label.get(code, "") if block.is_grid else ""
            for item in block.items:
                label = item.label.get(code, "")
                if not item.is_answerable or len(words(label)) < FEWEST_WORDS_REPEATED:
                    continue
                key = (folded(stem), folded(label))
                earlier = first.setdefault(key, item)
                if earlier is not item:
                    message = _(
                        "“%(text)s” is asked twice: question %(number)s has the same"
                        " text. Delete one, or say how they differ."
                    ) % {"text": shortened(label), "number": numbers[earlier.name]}
                    yield hint("repeated", message, item, code)


def check_measures(draft: Draft) -> Iterator[Check]:
    """Find questions answered as those of measures are, which belong to none."""
    if not draft.measures:
        return
    measured = {
        scored["name"]
        for measure in draft.measures["measures"]
        for scored in measure["items"]
    }
    items = list(draft.items())
    lists = {item.option_set for item in items if item.name in measured}
    for item in items:
        if (
            item.kind == "select_one"
            and item.option_set in lists
            and item.name not in measured
            # Follow-up questions are asked of too few for a score.
            and item.own_relevant is None
        ):
            message = _(
                "“%(text)s” belongs to no measure, so no score counts it. Add it to a"
                " measure if it should count."
            ) % {"text": shortened(item.label.get(draft.languages[0]["code"], ""))}
            yield hint("no_measure", message, item)
