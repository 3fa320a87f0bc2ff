"""Offer lists of options that are ready-made, for scales that many surveys use."""

from __future__ import annotations

from collections.abc import Mapping

from django.utils.translation import gettext_lazy as _

from survey.instrument.drafts.commands import CommandRefused, languages_of, set_options
from survey.instrument.drafts.option_rows import is_unwritten, options_of
from survey.instrument.drafts.workbook import DraftBook

NAMES = {
    "agree": _("Agree or disagree"),
    "often": _("How often"),
    "yes": _("Yes or no"),
    "good": _("Good or poor"),
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
    "often": {
        "en": ("Always", "Often", "Sometimes", "Rarely", "Never"),
        "es": ("Siempre", "A menudo", "A veces", "Rara vez", "Nunca"),
    },
    "yes": {"en": ("Yes", "No"), "es": ("Sí", "No")},
    "good": {
        "en": ("Very good", "Good", "Fair", "Poor", "Very poor"),
        "es": ("Muy bueno", "Bueno", "Regular", "Malo", "Muy malo"),
    },
}


def ready_lists(book: DraftBook, option_set: str) -> list[tuple[str, str]]:
    """Return what a list can be filled with; empty once somebody has written in it."""
    known = TEXTS["yes"].keys()
    if languages_of(book)[0].code not in known:
        return []
    rows = options_of(book, option_set)
    if not rows or not all(is_unwritten(book, row) for row in rows):
        return []
    return [(ready, str(name)) for ready, name in NAMES.items()]


def fill_ready(book: DraftBook, option_set: str, ready: str) -> None:
    """Make a list one of the ready-made ones, in the survey's languages."""
    if ready not in dict(ready_lists(book, option_set)):
        raise CommandRefused(_("Choose a list of options."))
    codes = [row.code for row in languages_of(book) if row.code in TEXTS[ready]]
    texts = zip(*(TEXTS[ready][code] for code in codes), strict=True)
    options = [
        (str(number), dict(zip(codes, labels, strict=True)))
        for number, labels in enumerate(texts, 1)
    ]
    set_options(book, option_set, options)
