"""Offer lists of options that are ready-made, for scales that many surveys use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from django.utils.translation import gettext_lazy as _

from survey.instrument.drafts.commands import CommandRefused, languages_of, set_options
from survey.instrument.drafts.option_rows import is_unwritten, options_of
from survey.instrument.drafts.workbook import DraftBook

NAMES = {
    "agree": _("Agree or disagree"),
    "agree_5": _("Agree, neither, or disagree"),
    "often": _("How often"),
    "yes": _("Yes or no"),
    "good": _("Good or poor"),
    "satisfied": _("Satisfied or not"),
}
# By the code of a language. No translations of the console: respondents read them.
TEXTS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "agree": {
        "en": ("Strongly agree", "Agree", "Disagree", "Strongly disagree"),
        "es": (
            *("Totalmente de acuerdo", "De acuerdo"),
            *("En desacuerdo", "Totalmente en desacuerdo"),
        ),
    },
    "agree_5": {
        "en": (
            *("Strongly agree", "Agree", "Neither agree nor disagree"),
            *("Disagree", "Strongly disagree"),
        ),
        "es": (
            *("Totalmente de acuerdo", "De acuerdo"),
            "Ni de acuerdo ni en desacuerdo",
            *("En desacuerdo", "Totalmente en desacuerdo"),
        ),
    },
    "often": {
        "en": ("Always", "Often", "Sometimes", "Rarely", "Never"),
        "es": ("Siempre", "A menudo", "A veces", "Rara vez", "Nunca"),
    },
    "yes": {"en": ("Yes", "No"), "es": ("Sí", "No")},
    "good": {
        "en": ("Very good", "Good", "Fair", "Poor", "Very poor"),
        "es": ("Muy bueno", "Bueno", "Regular", "Malo", "Muy malo"),
    },
    "satisfied": {
        "en": (
            *("Very satisfied", "Satisfied", "Neither satisfied nor dissatisfied"),
            *("Dissatisfied", "Very dissatisfied"),
        ),
        "es": (
            *("Muy satisfecho/a", "Satisfecho/a"),
            "Ni satisfecho/a ni insatisfecho/a",
            *("Insatisfecho/a", "Muy insatisfecho/a"),
        ),
    },
}


@dataclass(frozen=True, slots=True)
class ReadyList:
    """`texts` are its answers in the survey's first language, in one line."""

    key: str
    name: str
    texts: str


def ready_lists(book: DraftBook, option_set: str) -> list[ReadyList]:
    """Return what a list can be filled with; empty once somebody has written in it."""
    known = TEXTS["yes"].keys()
    first = languages_of(book)[0].code
    if first not in known:
        return []
    rows = options_of(book, option_set)
    if not rows or not all(is_unwritten(book, row) for row in rows):
        return []
    return [
        ReadyList(key, str(name), ", ".join(TEXTS[key][first]))
        for key, name in NAMES.items()
    ]


def fill_ready(book: DraftBook, option_set: str, ready: str) -> None:
    """Make a list one of the ready-made ones, in the survey's languages."""
    if ready not in {row.key for row in ready_lists(book, option_set)}:
        raise CommandRefused(_("Choose a list of options."))
    codes = [row.code for row in languages_of(book) if row.code in TEXTS[ready]]
    texts = zip(*(TEXTS[ready][code] for code in codes), strict=True)
    options = [
        (str(number), dict(zip(codes, labels, strict=True)))
        for number, labels in enumerate(texts, 1)
    ]
    set_options(book, option_set, options)
