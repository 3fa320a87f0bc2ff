"""The handbook for school coordinators, to read and to print."""

from __future__ import annotations

from functools import cache

from django.conf import settings
from django.http import HttpResponse
from django.shortcuts import render
from django.utils.translation import get_language
from django.views.decorators.http import require_safe

from accounts.access import staff
from accounts.http import StaffRequest

IMAGES = settings.BASE_DIR / "static" / "img" / "handbook"
# `provisioning/run handbook` takes the images, which are shown in this language
# where the reader's own has none.
FALLBACK = "en"


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
