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
UNTRANSLATED = "untranslated"
# A language that was just added lacks every text.
MOST_LISTED = 20


def check_translations(draft: Draft) -> Iterator[Check]:
    first, *codes = [language["code"] for language in draft.languages]
    # Without a title, the survey's name stands for it.
    texts = [
        text
        for text in (*texts_of(draft), *_texts_of_measures(draft))
        if text.texts.get(first, "").strip()
        and not (text.item is None and text.texts[first] == draft.name)
    ]
    for code in codes:
        missing = [text for text in texts if not text.texts.get(code, "").strip()]
        name = language_name(code)
        if len(missing) > MOST_LISTED:
            message = _(
                "%(count)s of %(all)s texts are missing in %(language)s. Translate"
                " them, or remove the language."
            ) % {"count": len(missing), "all": len(texts), "language": name}
            yield problem(UNTRANSLATED, message, None, code)
        else:
            for text in missing:
                message = _("“%(text)s” has no %(language)s text. Translate it.") % {
                    "text": shortened(text.texts[first]),
                    "language": name,
                }
                yield problem(UNTRANSLATED, message, text.item, code)
        if is_language(code, first.partition("-")[0].lower()):
            continue
        for text in texts:
            original = text.texts[first]
            if (
                text.texts.get(code, "").split() == original.split()
                and len(words(original)) >= FEWEST_WORDS
            ):
                message = _(
                    "The %(language)s text of “%(text)s” is the same as the original."
                    " Translate it."
                ) % {"text": shortened(original), "language": name}
                yield problem("same_as_original", message, text.item, code)


def _texts_of_measures(draft: Draft) -> Iterator[DraftText]:
    measures = draft.measures
    for part in (*measures["essentials"], *measures["measures"]) if measures else ():
        yield DraftText("title", part["label"], None)
        yield DraftText("title", part["description"], None)
