"""Tell who changes a window that cards handed out before show the old dates."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from django.contrib import messages
from django.db.models import Count, Max
from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from accounts.http import StaffRequest
from accounts.time_zones import zone_of
from survey.fieldwork.administrations import count_progress
from survey.fieldwork.login_cards.card_text import window_in_words
from survey.models import Administration, CardSet


class PrintedCards(NamedTuple):
    """Files of login cards, and e-mails with codes, that were made so far."""

    files: int
    last_at: datetime | None


def printed_cards(administration: Administration) -> PrintedCards:
    """Count the files that show the window. 1 statement."""
    made = CardSet.objects.filter(
        administration=administration,
        format__in=(CardSet.Format.PDF, CardSet.Format.ZIP, CardSet.Format.EMAIL),
        made_at__isnull=False,
    )
    return PrintedCards(**made.aggregate(files=Count("pk"), last_at=Max("made_at")))


def printed_window(administration: Administration) -> str:
    """Return the days that a card shows; the time of day is on none."""
    zone = zone_of(administration.district)
    return window_in_words(
        "en", administration.opens_at, administration.closes_at, zone
    )


def warn_about_old_dates(
    request: StaffRequest, administration: Administration, *, shown_before: str
) -> None:
    """Add a message if cards show other days now. At most 2 statements.

    The second counts the people who have not finished, so it is not sent where
    nothing was printed or the days stay the same.
    """
    if printed_window(administration) == shown_before:
        return
    if not printed_cards(administration).files:
        return
    progress = count_progress(administration)
    unfinished = progress.not_started + progress.in_progress
    words = ngettext(
        "Cards and e-mails with codes that were made before say “%(before)s” Their"
        " codes still work. %(people)s person has not finished.",
        "Cards and e-mails with codes that were made before say “%(before)s” Their"
        " codes still work. %(people)s people have not finished.",
        unfinished,
    )
    messages.warning(
        request,
        format_html(
            "{} <a href='{}'>{}</a>",
            words % {"before": shown_before, "people": f"{unfinished:,}"},
            reverse("cards_list", args=[administration.pk]),
            _("Print cards again"),
        ),
    )
