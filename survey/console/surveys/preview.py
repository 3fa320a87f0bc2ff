"""Preview a survey or a draft as respondents see it, without saving anything.

The pages and the browser's code are those of respondents, in a frame. Requests
that save are answered in the browser by `static/js/preview.js`. Should one get
through, it finds no route, and the frame's Content-Security-Policy blocks it.
"""

from __future__ import annotations

import json
import time
from collections import OrderedDict
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import cast

from csp.constants import NONE, SELF
from csp.decorators import csp_replace, csp_update
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    JsonResponse,
)
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.crypto import salted_hmac
from django.utils.translation import gettext as _
from django.views.decorators.clickjacking import xframe_options_sameorigin
from django.views.decorators.http import require_safe

from accounts.access import needs
from accounts.http import StaffRequest
from accounts.language import language_to_read
from accounts.permissions import Capability
from survey.console.surveys.contents import contents_of
from survey.console.surveys.views import refreshed, survey_or_404
from survey.instrument.definitions.ownership import may_change
from survey.instrument.definitions.publishing import (
    NotPublishable,
    canonical_json,
    compile_definition,
)
from survey.instrument.drafts.reading import read_rows_of
from survey.models import Role, Survey
from survey.taking import bootstrap, messages, rendering
from survey.taking.published import Published, build_published, published_survey
from survey.taking.review import find_gaps
from survey.taking.saved_answers import SavedAnswers, now_in_microseconds
from survey.taking.session import RespondentSession
from survey.taking.unavailable import wants_json
from survey.templatetags.respondent_words import saved_text

# Compiled drafts are cached in the process, for so many seconds.
DRAFT_LIFETIME = 20
MAX_DRAFTS = 8
MAX_SEED = 2**32 - 1
# Missing items that the address of the review may name.
MAX_MISSING = 100
BANNER = "test_banner"


@dataclass(frozen=True, slots=True)
class Preview:
    published: Published
    seed: int
    language: str
    # The address under which its pages are, and the only one that they may reach.
    base: str
    reaches: str
    # Drafts of a page are stored encrypted in the browser here as well.
    secret: str
    # Opened by a test link: there is no console around it that says so.
    is_test: bool = False


@needs(Capability.MANAGE_SURVEYS)
@require_safe
def survey_preview(request: StaffRequest, pk: int) -> HttpResponseBase:
    """Show the page around the frame: width, language, another person."""
    survey = survey_or_404(request, pk)
    problems = refreshed(survey)
    seed = _number(request.GET.get("seed", ""))
    language = refusal = ""
    try:
        language = language_of(request, published_or_draft(survey))
    except NotPublishable as error:
        refusal = str(error)
    frame = reverse("survey_preview_take", args=[pk, seed])
    response = render(
        request,
        "survey/console/survey_preview.html",
        {
            "survey": survey,
            "refusal": refusal,
            "seed": seed,
            "next_seed": seed + 1 if seed < MAX_SEED else 0,
            "largest_seed": MAX_SEED,
            "language": language,
            "frame": f"{frame}?language={language}",
            "measures": contents_of(survey).measures,
            "problem_count": len(problems),
            "may_edit": survey.published_at is None
            and survey.corrects_id is None
            and may_change(request.permissions, survey),
        },
    )
    return csp_update({"frame-src": [SELF]})(lambda _: response)(request)


@needs(Capability.MANAGE_SURVEYS)
@require_safe
def survey_preview_take(request: StaffRequest, pk: int, seed: int) -> HttpResponseBase:
    """Return the respondent's page, or only its data, as `survey_display` does."""
    return show_take(
        request, _preview(request, pk, seed), "survey/console/survey_preview_take.html"
    )


@needs(Capability.MANAGE_SURVEYS)
@require_safe
def survey_preview_content(
    request: StaffRequest, pk: int, seed: int, language: str, n: int
) -> HttpResponse:
    """Return a page's HTML or the outline, as `survey_content` does, uncached."""
    return show_content(_preview(request, pk, seed).published, language, n)


@needs(Capability.MANAGE_SURVEYS)
@require_safe
def survey_preview_complete(
    request: StaffRequest, pk: int, seed: int
) -> HttpResponseBase:
    """Show the review, the thanks, and the page after *Stop for now*.

    The answers are in the browser, where the rules run as well: it requests
    this page without `pages`, finds out what is missing, and requests it again.
    """
    return show_complete(request, _preview(request, pk, seed))


def show_take(
    request: HttpRequest, preview: Preview, template: str
) -> HttpResponseBase:
    data = shell_data(request, preview)
    if wants_json(request):
        return _framed(request, preview, JsonResponse(data))
    context = {**_frame(preview), "take": data}
    return _framed(request, preview, render(request, template, context))


def show_content(published: Published, language: str, n: int) -> HttpResponse:
    if language not in published.languages or n > len(published.answerable):
        raise Http404
    response = (
        HttpResponse(rendering.render_page(published.definition, language, n))
        if n
        else JsonResponse(rendering.outline(published.definition, language))
    )
    response["Cache-Control"] = "private, no-store"
    return response


def show_complete(request: HttpRequest, preview: Preview) -> HttpResponseBase:
    frame = {**_frame(preview), "languages": preview.published.definition["languages"]}
    is_over = "stopped" in request.GET or "finished" in request.GET
    if preview.is_test and is_over:
        template = "survey/console/survey_test_end.html"
        frame["is_finished"] = "finished" in request.GET
    elif "stopped" in request.GET:
        template = "survey/survey_stopped.html"
    elif "pages" not in request.GET:
        template = "survey/console/survey_preview_reviewing.html"
    else:
        template = "survey/console/survey_preview_complete.html"
        definition = preview.published.definition
        names = request.GET.getlist("missing")[:MAX_MISSING]
        missing = {name: "required" for name in names if name in definition["items"]}
        numbers = range(1, len(definition["pages"]) + 1)
        frame |= {
            "missing": find_gaps(definition, missing, preview.language, {}, numbers),
        }
        if "finished" in request.GET:
            now, pages = timezone.now(), _number(request.GET["pages"])
            frame["finished_at"] = now
            frame["saved_text"] = saved_text(
                cast("dict[str, str]", frame["words"]),
                pages=pages,
                stored=pages,
                moment=now,
            )
    data = {**shell_data(request, preview), "answers": {}}
    context = {**frame, "take": data, "addresses": review_links(preview)}
    return _framed(request, preview, render(request, template, context))


def shell_data(request: HttpRequest, preview: Preview) -> dict[str, object]:
    """Return the data of the respondent's page, for a made-up respondent."""
    published, now = preview.published, timezone.now()
    session = RespondentSession(
        0, 0, 0, published.digest, preview.language, tag="preview"
    )
    saved = SavedAnswers(
        answers={},
        revision=now_in_microseconds(),
        fingerprint=(0, 0),
        completed_at=None,
        closes_at=now + timedelta(days=1),
        hidden=False,
        is_finished=False,
        # A survey has no role before it is offered to one.
        role=Role.STUDENT,
        item_ids=published.item_ids,
    )
    digest = salted_hmac("survey.console.preview", preview.secret, algorithm="sha256")
    person = bootstrap.personal_data(request, session, published, saved)
    data = bootstrap.shared_data(published, preview.language, saved.role, person)
    if preview.is_test:
        # Not among the words of a tab, which may change its language.
        words = messages.messages_in(preview.language)
        shown = cast("dict[str, str]", data["messages"])
        data["messages"] = {**shown, BANNER: words[BANNER]}
    return {
        **data,
        "seed": preview.seed,
        "csrf": "",
        "queueKey": digest.hexdigest()[:43],
        "urls": _urls(preview),
    }


def review_links(preview: Preview) -> dict[str, str]:
    """Return the targets of the links in the review."""
    urls = _urls(preview)
    query = f"?language={preview.language}"
    return {
        "take": urls["renew"] + query,
        "complete": urls["complete"],
        "stop": urls["stop"],
        "login": urls["login"] + query,
    }


def _urls(preview: Preview) -> dict[str, str]:
    take, complete = f"{preview.base}take/", f"{preview.base}complete/"
    return {
        # No route: nothing could be saved there.
        "page": f"{preview.base}nowhere/{{n}}/",
        "content": f"{preview.base}content/{{language}}/{{n}}/",
        "complete": complete,
        "stop": f"{complete}?stopped=yes",
        "login": take,
        "renew": take,
    }


def _frame(preview: Preview) -> dict[str, object]:
    frame = bootstrap.frame_context(preview.published, preview.language)
    return {**frame, "is_test": preview.is_test}


def _preview(request: StaffRequest, pk: int, seed: int) -> Preview:
    survey = survey_or_404(request, pk)
    try:
        published = published_or_draft(survey)
    except NotPublishable:
        raise Http404 from None
    if seed > MAX_SEED:
        raise Http404
    return Preview(
        published,
        seed,
        language_of(request, published),
        base=reverse("survey_preview_take", args=[pk, seed]).removesuffix("take/"),
        reaches=reverse("survey_preview", args=[pk]),
        secret=f"{request.user.pk}:{pk}:{seed}",
    )


def language_of(request: HttpRequest, published: Published) -> str:
    asked = request.GET.get("language", "")
    if asked in published.languages:
        return asked
    return language_to_read(published.languages)


_drafts: OrderedDict[tuple[int, datetime, int], tuple[Published, float]] = OrderedDict()


def published_or_draft(survey: Survey) -> Published:
    """Return the survey as published, or compile a draft. Raises NotPublishable."""
    if survey.published_at is not None:
        digest = survey.published.values_list("digest", flat=True).get()
        return published_survey(digest)
    # Cached for some seconds: a hundred pages are requested at once. Another
    # workbook of the same version is another row.
    key = (survey.pk, survey.created_at, survey.last_change)
    cached, until = _drafts.get(key, (None, 0.0))
    if cached is not None and time.monotonic() < until:
        return cached
    if not survey.languages:
        raise NotPublishable(_("It has no language."))
    # Through its JSON, like a published survey that is read from the database.
    compiled = (
        read_rows_of(survey).definition
        if survey.last_change
        else compile_definition(survey)
    )
    if compiled is None:
        raise NotPublishable(_("It has no question yet."))
    definition = json.loads(canonical_json(compiled))
    draft = build_published(f"draft-{survey.pk}", definition)
    _drafts[key] = (draft, time.monotonic() + DRAFT_LIFETIME)
    while len(_drafts) > MAX_DRAFTS:
        _drafts.popitem(last=False)
    return draft


def _number(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or len(text) > 10:
        return 1
    return min(int(text), MAX_SEED)


def _framed(
    request: HttpRequest, preview: Preview, response: HttpResponse
) -> HttpResponseBase:
    """Allow the console to frame the response, which may only reach the preview."""
    policy = {
        "frame-ancestors": [SELF],
        "connect-src": [request.build_absolute_uri(preview.reaches)],
        "form-action": [NONE],
    }
    framed = xframe_options_sameorigin(csp_replace(policy)(lambda _: response))(request)
    framed["Cache-Control"] = "private, no-store"
    return framed
