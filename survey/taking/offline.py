"""The service worker that lets a survey be reloaded without a network.

`static/js/offline_worker.js` is its text. What differs between releases is
written before it: the survey's page without anything of a person or a survey, and
the addresses of the files that this page loads. So browsers take it for a new
worker whenever one of these has changed.
"""

from __future__ import annotations

import hashlib
import json
import re
from functools import cache
from pathlib import Path

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.views.decorators.http import require_safe

from survey.taking import messages
from survey.taking.security_headers import security_headers

# Seconds for which nginx answers without asking again.
CACHED_BY_NGINX = 60
# What a page says that finds nothing of its tab.
UNREACHABLE_WORDS = ("load_failed", "try_again")


@require_safe
def survey_worker(request: HttpRequest) -> HttpResponse:
    """Return the service worker, the same for everyone. 0 SQL, no session read."""
    make = cached_script if settings.COMPRESS_OFFLINE else worker_script
    response = HttpResponse(
        make(settings.WORKS_OFFLINE, request.is_secure()),
        content_type="application/javascript; charset=utf-8",
    )
    # A browser that kept an old worker would keep an old release.
    response["Cache-Control"] = "no-cache"
    response["X-Accel-Expires"] = str(CACHED_BY_NGINX)
    return response


def worker_script(works_offline: bool, secure: bool) -> str:
    source = Path(settings.BASE_DIR, "static/js/offline_worker.js").read_text("utf-8")
    if not works_offline:
        return f"const OFFLINE = null;\n{source}"
    page = offline_page()
    addresses = re.findall(r'(?:src|href)="([^"#]+)"', page)
    values = {
        "page": page,
        "headers": {
            **security_headers(secure=secure),
            "Content-Type": "text/html; charset=utf-8",
        },
        "files": [url for url in addresses if url.startswith(settings.STATIC_URL)],
    }
    digest = hashlib.sha256((json.dumps(values) + source).encode()).hexdigest()
    values["release"] = digest[:12]
    return f"const OFFLINE = {json.dumps(values)};\n{source}"


cached_script = cache(worker_script)


def offline_page() -> str:
    """Render the survey's page without a survey; the tab fills in its own."""
    unreachable = {
        code: {
            "direction": messages.direction(code),
            **{key: messages.messages_in(code)[key] for key in UNREACHABLE_WORDS},
        }
        for code in messages.MESSAGES
    }
    words = messages.messages_in("en")
    return render_to_string(
        "survey/survey_display.html",
        {
            "is_offline": True,
            "unreachable": unreachable,
            "words": words,
            "language": "en",
            "direction": "ltr",
            "title": words["app_name"],
        },
    )
