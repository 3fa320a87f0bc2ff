"""For load balancers and engineers: is this process alive, can pages be saved."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse

# What its absence costs, for somebody who was woken up.
CONSEQUENCES = {
    "primary": "The primary is away: pages wait in the browsers and are sent again,"
    " nobody can log in or finish.",
    "replica": "The replica is away or behind: reads go to the primary, reports and"
    " exports are delayed. Page saves go on.",
    "memcached": "Memcached is away: workers keep the surveys they have and ask the"
    " database for others. Page saves go on.",
    "redis": "Redis is away: new logins wait, page saves go on by the resume cookie.",
    "rabbitmq": "RabbitMQ is away: rosters, exports and roll-ups wait, response rates"
    " grow old. Page saves go on.",
    "worker": "No Celery worker listens: rosters, exports and roll-ups wait, response"
    " rates grow old. Page saves go on.",
}


def healthz(request: HttpRequest) -> HttpResponse:
    """GET /healthz: this process answers. Asks nobody."""
    return HttpResponse(
        b"ok\n",
        "text/plain",
        headers={"Cache-Control": "no-store", "Content-Length": "3"},
    )


def readyz(request: HttpRequest) -> HttpResponse:
    """GET /readyz: 200 while pages can be saved, and what is degraded.

    Asks every dependency at once; about a second at most when one hangs.
    `ok` is null where something is not set up here, or could not be seen.
    """
    state = readiness()
    response = JsonResponse(state, status=200 if state["ready"] else 503)
    response.headers["Cache-Control"] = "no-store"
    return response


def readiness() -> dict[str, Any]:
    from settings.monitoring.dependency_checks import ask_dependencies

    answers = ask_dependencies()
    return {
        "ready": answers["primary"].ok is True,
        "degraded": [
            CONSEQUENCES[name] for name, answer in answers.items() if answer.ok is False
        ],
        "checks": {
            name: {"ok": answer.ok, "ms": answer.ms, "detail": answer.detail}
            for name, answer in answers.items()
        },
    }
