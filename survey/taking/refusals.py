"""Mark replies: refusals that a tab may believe, and outcomes for the metrics."""

from __future__ import annotations

from django.http import HttpResponse


def refusal(key: str, **more: object) -> dict[str, object]:
    """Return the JSON of a reply with status 4xx.

    School proxies and filters refuse requests too, some with JSON and an
    `error`. To the browser, a refusal without this mark is network trouble: it
    says nothing about the answers (`static/js/send_save.js`).
    """
    return {"error": key, "from": "groundswell", **more}


def set_outcome(response: HttpResponse, outcome: str) -> None:
    """Tell the metrics what became of a request; it is not sent."""
    response.outcome = outcome  # type: ignore[attr-defined]
