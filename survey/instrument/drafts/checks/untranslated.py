"""Find texts that are missing in a language, or that were left in the first one."""

from __future__ import annotations

from collections.abc import Iterator

from django.utils.translation import gettext as _

from accounts.templatetags.console import language_name
from survey.instrument.drafts.checks.check import Check, is_language, problem
from survey.instrument.drafts.checks.texts import DraftText, shortened, texts_of, words
from survey.instrument.xlsform.draft import Draft

# Names and single words can be alike: "Hotel", "Internet", "Normal".
FEWEST_WORDS = 3


def check_translations(draft: Draft) -> Iterator[Check]:
    first, *others = [language["code"] for language in draft.languages]
    texts = [*texts_of(draft), *_texts_of_measures(draft)]
    for text in texts:
        original = text.texts.get(first, "")
        # Without a title, the survey's name stands for it.
        if not original.strip() or (text.item is None and original == draft.name):
            continue
        values = {"text": shortened(original)}
        for code in others:
            values["language"] = language_name(code)
            translation = text.texts.get(code, "")
            if not translation.strip():
                message = _("“%(text)s” has no %(language)s text. Translate it.")
                yield problem("untranslated", message % values, text.item, code)
            elif (
                translation.split() == original.split()
                and len(words(original)) >= FEWEST_WORDS
                and not is_language(code, first.partition("-")[0].lower())
            ):
                message = _(
                    "The %(language)s text of “%(text)s” is the same as the original."
                    " Translate it."
                )
                yield problem("same_as_original", message % values, text.item, code)


def _texts_of_measures(draft: Draft) -> Iterator[DraftText]:
    measures = draft.measures
    for part in (*measures["essentials"], *measures["measures"]) if measures else ():
        yield DraftText("title", part["label"], None)
        yield DraftText("title", part["description"], None)
