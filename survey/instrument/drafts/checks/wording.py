"""Find wording that is hard to answer, in English and Spanish: hints only.

Words are looked up in lists, not understood, so each pattern is narrow: a hint that is
mostly wrong would not be read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from django.utils.translation import gettext as _

from survey.instrument.drafts.checks.check import Check, hint, is_language
from survey.instrument.drafts.checks.double_barrelled import (
    english_joined_ideas,
    spanish_joined_ideas,
)
from survey.instrument.drafts.checks.texts import plain, sentences, shortened
from survey.instrument.xlsform.draft import Draft, ItemDraft

ENGLISH_NEGATION = re.compile(
    r"\b(?:not|no|never|none|nobody|nothing|nowhere|neither|nor|cannot|without"
    r"|hardly|rarely|seldom|\w+n['’]t)\b",
    re.IGNORECASE,
)
ENGLISH_NEGATIVE_WORD = re.compile(
    r"\b(?:un(?:able|likely|fair|safe|clear|happy|important|necessary|kind|welcome"
    r"|comfortable|willing|satisfied|helpful|aware|usual|common)"
    r"|im(?:possible|patient|polite)|in(?:correct|secure|appropriate|ability)"
    r"|dis(?:agrees?|likes?|respectful|satisfied|honest)|fails? to|failed to"
    r"|lacks?|refuses? to|avoids?|oppose[sd]?|prohibit(?:s|ed)?|forbid(?:s|den)?)\b",
    re.IGNORECASE,
)
# "Whether or not", "no more than" and the like deny nothing.
ENGLISH_NO_NEGATION = re.compile(
    r"\b(?:or not|not only|no matter|no (?:more|less|later) than|no longer"
    r"|yes or no|prefer not|if not|why not|not sure|no[ -]one else|not applicable)\b",
    re.IGNORECASE,
)
# In Spanish "no … nada" and "no … nunca" are one negation.
SPANISH_NEGATION = re.compile(r"\b(?:no|sin|jamás|tampoco)\b", re.IGNORECASE)
SPANISH_NEGATIVE_WORD = re.compile(
    r"\b(?:(?:in(?:capa(?:z|ces)|just[oa]s?|segur[oa]s?|necesari[oa]s?|útil(?:es)?"
    r"|correct[oa]s?|apropiad[oa]s?|cómod[oa]s?)|imposibles?|improbables?)"
    r"|des(?:acuerdo|honest[oa]s?|agradables?)|carece[ns]?|evit[ao]n?|prohíben?"
    r"|se niegan?|me niego|falta de)\b",
    re.IGNORECASE,
)
SPANISH_NO_NEGATION = re.compile(
    r"\b(?:o no|no s[oó]lo|sí o no|no importa|sin embargo|prefier[oea]s? no|por qué no"
    r"|si no|no más de|sin duda|no obstante|no estoy segur[oa])\b",
    re.IGNORECASE,
)
DISAGREE = re.compile(r"\bdisagree|\bdesacuerdo\b", re.IGNORECASE)
ENGLISH_STATEMENT_DENIES = re.compile(
    r"\b(?:not|never|cannot|nobody|\w+n['’]t)\b", re.IGNORECASE
)
SPANISH_STATEMENT_DENIES = re.compile(r"\b(?:no|nunca|nadie|jamás)\b", re.IGNORECASE)

SUBORDINATE = re.compile(
    r"\b(?:when|if|what|who|whom|which|that|because|where|cuando|si|que|quien(?:es)?"
    r"|porque|donde|quién|qué)\b",
    re.IGNORECASE,
)

ENGLISH_LEADING = re.compile(
    r"\b(?:(?:do|did|would|should|could|are|is|was|were|ca|wo)n['’]t"
    r" (?:you|we|it|they)\b"
    r"|isn['’]t (?:it|that|this)\b|obviously\b|of course\b|surely\b|needless to say\b"
    r"|as (?:you|we all|everyone) knows?\b|every(?:one|body) (?:knows|agrees)\b"
    r"|most people (?:think|believe|agree|say|know)\b"
    r"|(?:experts|studies) (?:agree|show)\b"
    r"|(?:do|would) you (?:not )?agree that\b|how much do you (?:love|hate)\b"
    r"|how (?:great|wonderful|excellent|amazing|awful|terrible|bad)\b"
    r"|(?:our|the|this) (?:wonderful|excellent|amazing|great|outstanding|terrible)\b)",
    re.IGNORECASE,
)
SPANISH_LEADING = re.compile(
    r"(?:\b(?:no (?:crees?|piensas?|opinas?) (?:usted )?que|no [tl]e parece)\b"
    r"|\bno es (?:cierto|verdad|así)\b|\bverdad\s*\?|\bobviamente\b|\bes obvio que\b"
    r"|\bpor supuesto\b|\bsin duda\b|\bcomo (?:usted )?sabes?\b|\bcomo todos sabemos\b"
    r"|\btodo el mundo (?:sabe|cree)\b|\bla mayoría (?:de (?:la gente|las personas) )?"
    r"(?:cree|piensa|opina)n?\b|\bestás? (?:usted )?de acuerdo en que\b"
    r"|\b(?:nuestr[oa]|est[ea]) (?:maravillos|excelente|magnífic|terrible)\w*\b)",
    re.IGNORECASE,
)


def check_wording(draft: Draft) -> Iterator[Check]:
    """Look at the labels of what is answered."""
    for page in draft.pages:
        for block in page.blocks:
            for item in block.items:
                if not item.is_answerable or item.kind == "acknowledge":
                    continue
                for language in draft.languages:
                    code = language["code"]
                    if text := item.label.get(code):
                        yield from _check_label(draft, item, text, code)


def _check_label(
    draft: Draft, item: ItemDraft, text: str, code: str
) -> Iterator[Check]:
    values = {"text": shortened(text)}
    if denies_twice(text, code):
        message = _(
            "“%(text)s” has two negatives. People may answer the opposite of what they"
            " mean: say it in a positive way."
        )
        yield hint("double_negative", message % values, item, code)
    elif denies_with_disagreement(draft, item, text, code):
        message = _(
            "“%(text)s” is negative, and people have to disagree to say yes. Say it in"
            " a positive way."
        )
        yield hint("negative_statement", message % values, item, code)
    if words := leading_words(text, code):
        message = _(
            "“%(words)s” may lead people to one answer. Ask in a neutral way."
        ) % {"words": words}
        yield hint("leading", message, item, code)
    # People who mark several answers, or write, can say which part they mean.
    if item.kind in ("select_one", "range") and (ideas := joined_ideas(text, code)):
        message = _(
            "“%(ideas)s” may ask two things at once. If people could answer them"
            " differently, make two questions."
        ) % {"ideas": ideas}
        yield hint("double_barrelled", message, item, code)


def denies_twice(text: str, code: str) -> bool:
    for primary, (negation, negative_word, none) in NEGATIONS.items():
        if not is_language(code, primary):
            continue
        for sentence in sentences(text):
            denied = none.sub(" ", sentence)
            negations = len(negation.findall(denied))
            if negations and negations + len(negative_word.findall(denied)) > 1:
                return True
    return False


NEGATIONS = {
    "en": (ENGLISH_NEGATION, ENGLISH_NEGATIVE_WORD, ENGLISH_NO_NEGATION),
    "es": (SPANISH_NEGATION, SPANISH_NEGATIVE_WORD, SPANISH_NO_NEGATION),
}


def denies_with_disagreement(
    draft: Draft, item: ItemDraft, text: str, code: str
) -> bool:
    """Tell whether disagreeing with this statement denies what it denies."""
    for primary, denies in STATEMENTS.items():
        if is_language(code, primary):
            none = NEGATIONS[primary][2]
            options = draft.option_sets.get(item.option_set, [])
            labels = [option.label.get(code, "") for option in options]
            # "I know who to ask when I do not feel safe" is a positive statement.
            main_clause = SUBORDINATE.split(none.sub(" ", plain(text)))[0]
            return any(map(DISAGREE.search, labels)) and bool(
                denies.search(main_clause)
            )
    return False


STATEMENTS = {"en": ENGLISH_STATEMENT_DENIES, "es": SPANISH_STATEMENT_DENIES}


def leading_words(text: str, code: str) -> str:
    for primary, leading in LEADING.items():
        if is_language(code, primary) and (match := leading.search(plain(text))):
            return match[0].strip()
    return ""


LEADING = {"en": ENGLISH_LEADING, "es": SPANISH_LEADING}


def joined_ideas(text: str, code: str) -> str:
    """Return the words that join two ideas, or an empty text."""
    for primary, ideas in JOINED.items():
        if is_language(code, primary):
            return next(filter(None, map(ideas, sentences(text))), "")
    return ""


JOINED: dict[str, Callable[[str], str]] = {
    "en": english_joined_ideas,
    "es": spanish_joined_ideas,
}
