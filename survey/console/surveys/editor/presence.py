"""Show the people who edit the same draft at the same time.

Each editor asks every ten seconds, and says what it shows. Nothing is stored but in
the cache; two who ask in the same moment may miss each other once.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from django.core import signing
from django.core.cache import cache
from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from accounts.access import needs
from accounts.http import StaffRequest
from accounts.models import User
from accounts.permissions import Capability
from survey.models import Survey

SALT = "survey.presence"
DAY = 24 * 60 * 60
# In seconds: a poll may come late.
SEEN_FOR = 25
MOST_PEOPLE = 20


@dataclass(frozen=True, slots=True)
class Present:
    name: str
    page: int


def presence_address(survey: Survey) -> str:
    """Return where an editor of the draft asks who else edits it.

    The address carries what the permission depends on, so that no poll reads it.
    """
    seat = signing.dumps([survey.pk, survey.district_id], salt=SALT)
    return reverse("survey_edit_presence", args=[seat])


@needs(Capability.MANAGE_SURVEYS)
@require_safe
def survey_edit_presence(request: StaffRequest, seat: str) -> HttpResponse:
    """Say that the user edits a draft, and who else does. 0 statements."""
    try:
        pk, district = signing.loads(seat, salt=SALT, max_age=DAY)
    except signing.BadSignature:
        raise Http404 from None
    if not request.permissions.may_own(district):
        raise Http404
    page = request.GET.get("page", "")
    number = int(page) if page.isascii() and page.isdecimal() and len(page) < 6 else 0
    people = note_presence(pk, request.user, number)
    return render(request, "survey/console/editor/_presence.html", {"people": people})


def note_presence(survey: int, user: User, page: int) -> list[Present]:
    """Remember where a user is, and return the others by name."""
    key, now = f"editors-{survey}", time.time()
    seen = {
        person: entry
        for person, entry in (cache.get(key) or {}).items()
        if entry[2] > now - SEEN_FOR
    }
    seen[user.pk] = (str(user), page, now)
    cache.set(key, dict(list(seen.items())[-MOST_PEOPLE:]), SEEN_FOR)
    return sorted(
        (Present(*entry[:2]) for person, entry in seen.items() if person != user.pk),
        key=lambda present: present.name,
    )
