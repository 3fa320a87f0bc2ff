"""The handbook for school coordinators, to read and to print."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from django.conf import settings
from django.http import HttpResponse
from django.shortcuts import render
from django.utils.translation import get_language
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe

from accounts.access import staff
from accounts.http import StaffRequest

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise

IMAGES = settings.BASE_DIR / "static" / "img" / "handbook"
# `provisioning/run handbook` takes the images, which are shown in this language
# where the reader's own has none.
FALLBACK = "en"


@dataclass(frozen=True, slots=True)
class HandbookSection:
    anchor: str
    # As the template has it.
    heading: StrPromise
    # What people search for who read about it there.
    synonyms: StrPromise


SECTIONS = (
    HandbookSection(
        "before", _("1. Before the survey"), _("rosters, consents, preparation")
    ),
    HandbookSection(
        "cards", _("2. Cards and codes"), _("print cards, lost cards, school links")
    ),
    HandbookSection(
        "days", _("3. The survey days"), _("reminders, missing people, absent, offline")
    ),
    HandbookSection(
        "people",
        _("4. People: add, correct, withdraw, opt out"),
        _("opt-outs, refuse, parents, move"),
    ),
    HandbookSection(
        "after", _("5. After the survey"), _("close, extend, destroy cards, results")
    ),
)


@staff
@require_safe
def handbook(request: StaffRequest) -> HttpResponse:
    """Show five pages, one for each subject. No statement of its own."""
    context = {"images": f"img/handbook/{image_language(get_language() or FALLBACK)}"}
    return render(request, "survey/console/handbook.html", context)


@cache
def image_language(language: str) -> str:
    """Return this language, or English if no images were taken in it."""
    return language if (IMAGES / language / "before.webp").exists() else FALLBACK
