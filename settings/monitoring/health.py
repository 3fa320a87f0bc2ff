"""Health checks: is this process alive, and can pages be saved?"""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils.crypto import constant_time_compare

# nginx's monitoring port adds the key in it, and no other port passes it on.
MONITORING_HEADER = "X-Groundswell-Monitoring"
# A peer on a unix socket has no address.
LOCAL_ADDRESSES = frozenset(("", "127.0.0.1", "::1"))

# Consequences of each outage, for an engineer on call.
CONSEQUENCES = {
    "primary": "The primary is down: pages wait in the browsers and are sent again;"
    " logging in and finishing are not possible.",
    "durability": "PostgreSQL reports pages as saved before they are on disk: a crash"
    " would lose them. Set fsync, full_page_writes and synchronous_commit to on, also"
    " for the role that saves.",
    "replica": "The replica is down or behind: reads go to the primary, reports and"
    " exports are delayed. Page saves go on.",
    "memcached": "Memcached is down: workers keep the surveys they have and read others"
    " from the database. Page saves go on.",
    "messages": "Message platforms are told to ask again later. Page saves go on.",
    "redis": "Redis is down: new logins wait. Page saves go on with the resume cookie.",
    "rabbitmq": "RabbitMQ is down: rosters, exports and roll-ups wait, response rates"
    " get old. Page saves go on.",
    "worker": "No Celery worker runs: rosters, exports and roll-ups wait, response"
    " rates get old. Page saves go on.",
}


def healthz(request: HttpRequest) -> HttpResponse:
    """GET /healthz: answer without asking any server.

    Only on the monitoring port with the version: the public need not know it.
    """
    version = f" groundswell {settings.VERSION}" if is_monitoring(request) else ""
    answer = f"ok{version}\n".encode()
    return HttpResponse(
        answer,
        "text/plain",
        headers={"Cache-Control": "no-store", "Content-Length": str(len(answer))},
    )


def is_monitoring(request: HttpRequest) -> bool:
    """Return whether a request came through nginx's monitoring port."""
    key = settings.MONITORING_KEY
    given = request.headers.get(MONITORING_HEADER, "")
    is_local = request.META.get("REMOTE_ADDR", "") in LOCAL_ADDRESSES
    return bool(key and is_local and constant_time_compare(given, key))


def readyz(request: HttpRequest) -> HttpResponse:
    """GET /readyz: 200 while pages can be saved for good, with what is degraded.

    Checks all servers at the same time, for about a second at most. `ok` is
    null for servers that are not configured here, or whose state is unknown.
    """
    state = readiness()
    response = JsonResponse(state, status=200 if state["ready"] else 503)
    response.headers["Cache-Control"] = "no-store"
    return response


def readiness() -> dict[str, Any]:
    from settings.monitoring.dependency_checks import ask_dependencies

    answers = ask_dependencies()
    return {
        "ready": answers["primary"].ok is True
        and answers["durability"].ok is not False,
        "degraded": [
            CONSEQUENCES[name] for name, answer in answers.items() if answer.ok is False
        ],
        "checks": {
            name: {"ok": answer.ok, "ms": answer.ms, "detail": answer.detail}
            for name, answer in answers.items()
        },
    }
