"""A survey as a respondent sees it, drafts too, without saving anything.

The shell, the pages and the browser's code are the respondents' own, in a
frame. What they ask of a server, `static/js/preview.js` answers in the
browser; and what it let through would still find no route, and is refused by
the frame's own Content-Security-Policy.
"""

from __future__ import annotations

import json
import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from csp.constants import NONE, SELF
from csp.decorators import csp_replace, csp_update
from django.http import Http404, HttpResponse, JsonResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.crypto import salted_hmac
from django.views.decorators.cache import never_cache
from django.views.decorators.clickjacking import xframe_options_sameorigin
from django.views.decorators.http import require_safe

from accounts.access import needs
from accounts.http import StaffRequest
from accounts.permissions import Capability
from survey.console.surveys.views import survey_or_404
from survey.definitions.publishing import (
    NotPublishable,
    canonical_json,
    compile_definition,
)
from survey.models import Survey
from survey.taking import bootstrap, messages, rendering
from survey.taking.completion import find_gaps
from survey.taking.published import Published, build_published, published_survey
from survey.taking.saved_answers import SavedAnswers, now_in_microseconds
from survey.taking.session import RespondentSession
from survey.taking.unavailable import wants_json

# Seconds, and how many in a process.
DRAFT_KEPT = 20
MOST_DRAFTS = 8
LARGEST_SEED = 2**32 - 1
# Names of items that the review is told by its address.
MOST_MISSING = 100


@dataclass(frozen=True, slots=True)
class Preview:
    survey: Survey
    published: Published
    seed: int
    language: str


@needs(Capability.MANAGE_SURVEYS)
@never_cache
@require_safe
@csp_update({"frame-src": [SELF]})  # type: ignore[arg-type]
def survey_preview(request: StaffRequest, pk: int) -> HttpResponse:
    """The frame, and what is around it: width, language, another person."""
    survey = survey_or_404(request, pk)
    seed = _number(request.GET.get("seed", ""))
    language = refusal = ""
    try:
        language = _language(request, _published(survey))
    except NotPublishable as error:
        refusal = str(error)
    frame = reverse("survey_preview_take", args=[pk, seed])
    return render(
        request,
        "survey/console/survey_preview.html",
        {
            "survey": survey,
            "refusal": refusal,
            "seed": seed,
            "next_seed": seed + 1 if seed < LARGEST_SEED else 0,
            "largest_seed": LARGEST_SEED,
            "language": language,
            "frame": f"{frame}?language={language}",
        },
    )


@needs(Capability.MANAGE_SURVEYS)
@require_safe
def survey_preview_take(request: StaffRequest, pk: int, seed: int) -> HttpResponse:
    """The shell, or only its data, as `survey_display` gives it."""
    preview = _preview(request, pk, seed)
    data = shell_data(request, preview)
    if wants_json(request):
        return _framed(request, preview, JsonResponse(data))
    return _framed(
        request,
        preview,
        render(
            request,
            "survey/console/survey_preview_take.html",
            {**_frame(preview), "take": data},
        ),
    )


@needs(Capability.MANAGE_SURVEYS)
@require_safe
def survey_preview_content(
    request: StaffRequest, pk: int, seed: int, language: str, n: int
) -> HttpResponse:
    """A page's HTML or the outline, as `survey_content` gives it; never kept."""
    published = _preview(request, pk, seed).published
    if language not in published.languages or n > len(published.answerable):
        raise Http404
    response = (
        HttpResponse(rendering.render_page(published.definition, language, n))
        if n
        else JsonResponse(rendering.outline(published.definition, language))
    )
    response["Cache-Control"] = "private, no-store"
    return response


@needs(Capability.MANAGE_SURVEYS)
@require_safe
def survey_preview_complete(request: StaffRequest, pk: int, seed: int) -> HttpResponse:
    """The review and the thanks.

    The answers are in the browser, where the rules run as well: it comes
    first without `pages`, works out what is missing, and comes again.
    """
    preview = _preview(request, pk, seed)
    frame = {**_frame(preview), "languages": preview.published.definition["languages"]}
    if "pages" not in request.GET:
        template = "survey/console/survey_preview_reviewing.html"
    else:
        template = "survey/console/survey_preview_complete.html"
        frame |= _review(request, preview)
    data = {**shell_data(request, preview), "answers": {}}
    context = {**frame, "take": data, "addresses": addresses(preview)}
    return _framed(request, preview, render(request, template, context))


def _review(request: StaffRequest, preview: Preview) -> dict[str, Any]:
    definition = preview.published.definition
    names = request.GET.getlist("missing")[:MOST_MISSING]
    missing = {name: "required" for name in names if name in definition["items"]}
    return {
        "missing": find_gaps(definition, missing, preview.language),
        "finished_at": timezone.now() if "finished" in request.GET else None,
        "pages": _number(request.GET["pages"]),
    }


# What the browser's code is told


def shell_data(request: StaffRequest, preview: Preview) -> dict[str, Any]:
    """As a respondent's, for a person who is nobody."""
    published, now = preview.published, timezone.now()
    taking = RespondentSession(
        0, 0, 0, published.digest, preview.language, tag="preview"
    )
    taken = SavedAnswers(
        answers={},
        revision=now_in_microseconds(),
        seen=[0] * len(published.answerable),
        fingerprint=(0, 0),
        completed_at=None,
        closes_at=now + timedelta(days=1),
    )
    data = bootstrap.bootstrap_data(request, taking, published, taken, preview.language)
    return {
        **data,
        "seed": preview.seed,
        "csrf": "",
        "queueKey": _queue_key(request, preview),
        "urls": _urls(preview),
    }


def addresses(preview: Preview) -> dict[str, str]:
    """Where the links of the review lead."""
    urls = _urls(preview)
    asked = f"?language={preview.language}"
    return {
        "take": urls["renew"] + asked,
        "complete": urls["complete"],
        "login": urls["login"] + asked,
    }


def _urls(preview: Preview) -> dict[str, str]:
    place = [preview.survey.pk, preview.seed]
    take = reverse("survey_preview_take", args=place)
    outline = reverse("survey_preview_content", args=[*place, "en", 0])
    return {
        # No route: nothing could be saved there.
        "page": take.replace("/take/", "/nowhere/{n}/"),
        "content": outline.replace("/en/0/", "/{language}/{n}/"),
        "complete": reverse("survey_preview_complete", args=place),
        "login": take,
        "renew": take,
    }


def _queue_key(request: StaffRequest, preview: Preview) -> str:
    """Drafts of a page wait encrypted in the browser here as well."""
    secret = f"{request.user.pk}:{preview.survey.pk}:{preview.seed}"
    digest = salted_hmac("survey.console.preview", secret, algorithm="sha256")
    return digest.hexdigest()[:43]


def _frame(preview: Preview) -> dict[str, Any]:
    return {
        "words": messages.messages_in(preview.language),
        "language": preview.language,
        "direction": messages.direction(preview.language),
        "title": preview.published.title_in(preview.language),
    }


# Finding it


def _preview(request: StaffRequest, pk: int, seed: int) -> Preview:
    survey = survey_or_404(request, pk)
    try:
        published = _published(survey)
    except NotPublishable:
        raise Http404 from None
    if seed > LARGEST_SEED:
        raise Http404
    return Preview(survey, published, seed, _language(request, published))


def _language(request: StaffRequest, published: Published) -> str:
    asked = request.GET.get("language", "")
    return asked if asked in published.languages else published.languages[0]


def _published(survey: Survey) -> Published:
    """As it was published, or as it would be. Raises NotPublishable."""
    if survey.published_at is not None:
        digest = survey.published.values_list("digest", flat=True).get()
        return published_survey(digest)
    return _draft(survey)


_drafts: OrderedDict[tuple[int, datetime], tuple[Published, float]] = OrderedDict()


def _draft(survey: Survey) -> Published:
    """Compiled anew after some seconds: a hundred pages are asked for at once.

    Another workbook of the same version is another row.
    """
    key = (survey.pk, survey.created_at)
    kept, until = _drafts.get(key, (None, 0.0))
    if kept is not None and time.monotonic() < until:
        return kept
    if not survey.languages:
        raise NotPublishable("It has no language.")
    # By way of its text, as a published one comes out of the database.
    definition = json.loads(canonical_json(compile_definition(survey)))
    draft = build_published(f"draft-{survey.pk}", definition)
    _drafts[key] = (draft, time.monotonic() + DRAFT_KEPT)
    while len(_drafts) > MOST_DRAFTS:
        _drafts.popitem(last=False)
    return draft


def _number(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or len(text) > 10:
        return 1
    return min(int(text), LARGEST_SEED)


# In a frame of our own, and speaking to nothing but the preview


def _framed(
    request: StaffRequest, preview: Preview, response: HttpResponse
) -> HttpResponse:
    place = reverse("survey_preview", args=[preview.survey.pk])
    policy: Mapping[str, Any] = {
        "frame-ancestors": [SELF],
        "connect-src": [request.build_absolute_uri(place)],
        "form-action": [NONE],
    }
    place_in_frame: Any = csp_replace(dict(policy))
    framed: HttpResponse = xframe_options_sameorigin(
        place_in_frame(lambda _: response)
    )(request)
    framed["Cache-Control"] = "private, no-store"
    return framed
