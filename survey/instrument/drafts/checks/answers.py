"""Check options: scales in mixed directions, overlaps, ways to decline an answer."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import cast

from django.utils.translation import gettext as _

from survey.instrument.definitions.scales import agreement_scales
from survey.instrument.definitions.schema import SurveyDefinition
from survey.instrument.drafts.checks.check import Check, problem
from survey.instrument.drafts.checks.texts import plain, shortened
from survey.instrument.xlsform.draft import Draft, ItemDraft, OptionDraft

NEGATIVE_END = re.compile(
    r"\b(?:disagree|never|not at all|none|poor|bad|unlikely|dissatisfied|unsafe|unhappy"
    r"|unimportant|not (?:very|true|important|safe|likely)|rarely|hardly|worst|no days"
    r"|very (?:low|difficult|hard)|desacuerdo|nunca|para nada|nada|ningun[oa]?|ningún"
    r"|mal[oa]?s?|improbable|insatisfech[oa]|insegur[oa]|infeliz|pocas veces|casi nunca"
    r"|muy (?:baj[oa]|difícil|poco))\b",
    re.IGNORECASE,
)
POSITIVE_END = re.compile(
    r"\b(?:agree|always|excellent|good|great|likely|satisfied|safe|happy|a lot"
    r"|extremely|completely|often|best|every day"
    r"|very (?:much|true|important|high|easy|well)"
    r"|de acuerdo|siempre|excelente|buen[oa]?s?|bien|probable|satisfech[oa]"
    r"|segur[oa]|feliz|much[oa]s?|completamente|a menudo|todos los días"
    r"|muy (?:alt[oa]|fácil|importante))\b",
    re.IGNORECASE,
)


def check_directions(draft: Draft) -> Iterator[Check]:
    """Find scales that begin at the other end than most, or in one language only."""
    first_items: dict[str, ItemDraft] = {}
    scales = agreement_scales(_definition_of(draft), draft.measures)
    items = {item.name: item for item in draft.items()}
    for name in scales:
        first_items.setdefault(items[name].option_set, items[name])
    directions: dict[str, int] = {}
    for option_set, item in first_items.items():
        off_scale = scales[item.name]
        options = [
            option
            for option in draft.option_sets.get(option_set, [])
            if option.value not in off_scale
        ]
        by_language = {
            language["code"]: direction_of(options, language["code"])
            for language in draft.languages
        }
        known = {code: sign for code, sign in by_language.items() if sign}
        if len(set(known.values())) > 1:
            message = _(
                "The answers “%(first)s” to “%(last)s” run the other way in one"
                " language. Give each answer the same meaning in all languages."
            ) % _ends(draft, options)
            yield problem("direction_by_language", message, item, [*known][-1])
        elif known:
            directions[option_set] = next(iter(known.values()))
    usual = 1 if sum(directions.values()) >= 0 else -1
    for option_set, direction in directions.items():
        if direction != usual:
            options = draft.option_sets[option_set]
            message = _(
                "The answers “%(first)s” to “%(last)s” run the other way than in other"
                " questions. People may not notice: use one direction."
            ) % _ends(draft, options)
            yield problem("mixed_directions", message, first_items[option_set])


def direction_of(options: Sequence[OptionDraft], code: str) -> int:
    """Return 1 if the good end is last, -1 if it is first, 0 if that is unknown."""
    if len(options) < 2:
        return 0
    first, last = (_sign(option.label.get(code, "")) for option in _outer(options))
    return (last > first) - (last < first) if first * last < 0 else 0


def _outer(options: Sequence[OptionDraft]) -> tuple[OptionDraft, OptionDraft]:
    return options[0], options[-1]


def _sign(label: str) -> int:
    # "Not good" and "muy en desacuerdo" contain words of the good end.
    if NEGATIVE_END.search(label):
        return -1
    return 1 if POSITIVE_END.search(label) else 0


def _ends(draft: Draft, options: Sequence[OptionDraft]) -> dict[str, str]:
    code = draft.languages[0]["code"]
    first, last = (shortened(option.label.get(code, "")) for option in _outer(options))
    return {"first": first, "last": last}


def _definition_of(draft: Draft) -> SurveyDefinition:
    """Return the parts of a definition from which scales are recognised."""
    definition = {
        "option_sets": {
            name: [
                {"value": option.value, "label": option.label, "attributes": {}}
                for option in options
            ]
            for name, options in draft.option_sets.items()
        },
        "pages": [
            {
                "blocks": [
                    {
                        "grid": block.is_grid,
                        "items": [item.name for item in block.items],
                    }
                    for block in page.blocks
                ]
            }
            for page in draft.pages
        ],
        "items": {
            item.name: {
                "kind": item.kind,
                "option_set": item.option_set,
                "appearance": item.rules.get("appearance", []),
                "randomize": item.rules.get("randomize", False),
            }
            for item in draft.items()
        },
    }
    return cast(SurveyDefinition, definition)


# Bounded, as all repetitions here, so that no label takes long.
NUMBER = r"[$€]?\s?(?<![\d.,])(\d[\d,]{0,12}(?:\.\d{1,6})?)(?!\d)"
BETWEEN = re.compile(rf"{NUMBER}\s*(?:-|–|—|\bto\b|\band\b|\ba\b|\by\b)\s*{NUMBER}")
AT_LEAST = re.compile(
    rf"{NUMBER}\s*(?:\+|(?:\w+ )?(?:or (?:more|older|above|over)|o más|o mayor))"
    rf"|(?:at least|al menos|por lo menos|como mínimo) {NUMBER}"
)
MORE_THAN = re.compile(rf"(?:more than|over|above|más de) {NUMBER}")
LESS_THAN = re.compile(rf"(?:less than|fewer than|under|below|menos de) {NUMBER}")
AT_MOST = re.compile(
    rf"{NUMBER}\s*(?:\w+ )?(?:or (?:less|fewer|younger|below|under)|o menos|o menor)"
    rf"|(?:up to|at most|hasta|como máximo) {NUMBER}"
)
UNIT = re.compile(r"[^\W\d_]+")


@dataclass(frozen=True, slots=True)
class Range:
    """Numbers that an option names; an open end does not contain its number."""

    label: str
    low: float
    high: float
    has_low: bool = True
    has_high: bool = True
    unit: str = ""

    def overlaps(self, following: Range) -> bool:
        if self.low > following.low:
            return following.overlaps(self)
        if self.high == following.low:
            return self.has_high and following.has_low
        return self.high > following.low


def check_overlaps(draft: Draft) -> Iterator[Check]:
    seen: set[str] = set()
    code = draft.languages[0]["code"]
    for item in draft.items():
        # In a choice of several, an answer may well contain another.
        if item.kind != "select_one" or item.option_set in seen:
            continue
        seen.add(item.option_set)
        options = draft.option_sets.get(item.option_set, [])
        ranges = [
            parsed
            for option in options
            if (parsed := range_of(plain(option.label.get(code, ""))))
        ]
        ranges.sort(key=lambda parsed: (parsed.low, parsed.high))
        for first, second in zip(ranges, ranges[1:], strict=False):
            if first.unit == second.unit and first.overlaps(second):
                message = _(
                    "“%(first)s” and “%(second)s” overlap. Change one, so that only one"
                    " answer is right for each person."
                ) % {"first": first.label, "second": second.label}
                yield problem("overlapping_options", message, item, code)


def range_of(label: str) -> Range | None:
    """Read an option such as "5-10 hours" or "more than 10"; None if it is neither."""
    text = label.lower()
    for pattern, form in FORMS:
        if match := pattern.search(text):
            numbers = [
                float(number.replace(",", "")) for number in match.groups() if number
            ]
            rest = text[: match.start()] + " " + text[match.end() :]
            unit = " ".join(UNIT.findall(rest)).removesuffix("s")
            low, high = (numbers[0], numbers[-1])
            if form == "between":
                return Range(label, low, high, unit=unit) if low < high else None
            if form in ("at least", "more than"):
                is_closed = form == "at least"
                return Range(label, low, math.inf, has_low=is_closed, unit=unit)
            is_closed = form == "at most"
            return Range(label, -math.inf, high, has_high=is_closed, unit=unit)
    return None


FORMS = (
    (BETWEEN, "between"),
    (MORE_THAN, "more than"),
    (LESS_THAN, "less than"),
    (AT_MOST, "at most"),
    (AT_LEAST, "at least"),
)

SENSITIVE_NAME = re.compile(
    r"(?:^|_)(?:gender|sex|race|ethnicity|ethnic|disability|religion|orientation|income"
    r"|genero|sexo|raza|etnia|discapacidad|ingresos)(?:_|$)",
    re.IGNORECASE,
)
SENSITIVE_WORDS = re.compile(
    r"\b(?:your|child['’]s|their|his|her) (?:own )?(?:gender|sex|race|ethnicity"
    r"|religion|income|disabilit(?:y|ies)|weight)\b"
    r"|\b(?:(?:racial|ethnic) (?:group|background|identity)|sexual orientation"
    r"|transgender|disabilit(?:y|ies)|immigra\w+|citizenship|homeless|household income"
    r"|lunch program|religio\w+|suicid\w+|self-harm|kill yourself|depress\w+|anxiety"
    r"|mental health|medication|eating disorder|pregnan\w+|abuse\w*|molest\w*|rape\w?"
    r"|sexual\w*|alcohol|marijuana|cannabis|drugs?|vap(?:e|ed|ing)|tobacco|cigarettes?"
    r"|weapons?|guns?|gangs?|arrested|hit you|hurt you|bullied"
    r"|tu género|su género|tu sexo|su sexo|(?:tu|su) raza|raza o etnia|grupo étnico"
    r"|orientación sexual|discapacidad(?:es)?|inmigra\w+|ciudadanía|ingresos"
    r"|religi[oó]n|suicid\w+|hacerte daño|depres\w+|ansiedad|salud mental"
    r"|medicament\w+|embaraz\w+|abus\w+|alcohol|marihuana|drogas?|vapea\w*|tabaco|cigarrillos?|armas?|pandillas?"
    r"|acoso|golpea\w+)\b",
    re.IGNORECASE,
)
DECLINES = re.compile(
    r"\b(?:prefer not|rather not|(?:do not|don['’]t) (?:want|wish) to|decline|no answer"
    r"|refuse[sd]?|choose not|skip|no_answer|prefiero no|prefiere no|no quiero|no deseo"
    r"|no contest\w+|sin respuesta)\b",
    re.IGNORECASE,
)


def check_sensitive(draft: Draft) -> Iterator[Check]:
    """Find sensitive questions that people must answer, without a way to decline."""
    for item in draft.items():
        # An expression requires the answer of some people, which is no better.
        is_required = item.rules.get("required", False) is not False
        if not (is_required and item.is_answerable and is_sensitive(item)):
            continue
        options = draft.option_sets.get(item.option_set, [])
        texts = [
            text
            for option in options
            for text in (option.value, *option.label.values())
        ]
        if not any(map(DECLINES.search, texts)):
            message = _(
                "“%(text)s” is sensitive, and people must answer it. Make it optional,"
                " or add the answer “I prefer not to say”."
            ) % {"text": shortened(item.label.get(draft.languages[0]["code"], ""))}
            yield problem("required_sensitive", message, item)


def is_sensitive(item: ItemDraft) -> bool:
    texts = map(plain, item.label.values())
    return bool(SENSITIVE_NAME.search(item.name)) or any(
        map(SENSITIVE_WORDS.search, texts)
    )
