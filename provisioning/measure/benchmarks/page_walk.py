"""Follow the console's links in one process, for `provisioning/run pages`."""

from __future__ import annotations

import html
import re
import statistics
import sys
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any
from urllib.parse import urldefrag, urljoin

from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import Resolver404, resolve, reverse

from provisioning.measure.benchmarks.pages import PageTime
from reports.tasks import roll_up_rates
from survey.models import Administration, Respondent
from survey.simulation.demo.load import FOLDER
from survey.work import jobs

FIRST = "/console/"
LINK = re.compile(r'<a\s(?:[^>]*\s)?href="([^"]*)"')
LOGIN = "/console/account/login/"
# Of each route: three schools are as good as thirty.
MOST = 3
# It would end the walk.
LEFT_OUT = ("account_logout",)


def walk(*, demo: dict[str, Any], times: int) -> list[PageTime]:
    _do_some_work(demo)
    pages: list[PageTime] = []
    for login in demo["staff"]:
        client = logged_in(login["email"], demo["staff_password"])
        # Without its place.
        role = login["role"].partition(",")[0]
        pages += timed_pages(client, role, times)
    return pages


def logged_in(email: str, password: str) -> Client:
    client = Client(raise_request_exception=False, SERVER_NAME="127.0.0.1")
    reply = client.post(LOGIN, {"login": email, "password": password})
    if reply.status_code != 302:
        sys.exit(f"{email} was not let in: {reply.status_code}")
    return client


def timed_pages(client: Client, role: str, times: int) -> Iterator[PageTime]:
    for route, path, status, _ in followed(client):
        took = []
        for _ in range(times):
            began = time.perf_counter()
            body_of(client.get(path))
            took.append((time.perf_counter() - began) * 1000)
        with CaptureQueriesContext(connection) as statements:
            size = len(body_of(client.get(path)))
        median = statistics.median(took) if took else 0.0
        yield PageTime(route, role, path, status, median, len(statements), size)


def followed(client: Client) -> Iterator[tuple[str, str, int, bytes]]:
    """Yield route, address, status and body of linked pages, breadth first."""
    waiting, known = [FIRST], {FIRST}
    visits: Counter[str] = Counter()
    for path in waiting:
        try:
            route = resolve(path.partition("?")[0]).url_name or path
        except Resolver404:
            route = "(no route)"
        visits[route] += 1
        if route in LEFT_OUT or visits[route] > MOST:
            continue
        reply = client.get(path)
        body = body_of(reply)
        yield route, path, reply.status_code, body
        for address in links_of(path, reply, body):
            if address.startswith(FIRST) and address not in known:
                known.add(address)
                waiting.append(address)


def body_of(reply: Any) -> bytes:
    body = b"".join(reply.streaming_content) if reply.streaming else reply.content
    return bytes(body)


def links_of(path: str, reply: Any, body: bytes) -> list[str]:
    if "Location" in reply:
        return [urljoin(path, reply["Location"])]
    if not reply.get("Content-Type", "").startswith("text/html"):
        return []
    addresses = map(html.unescape, LINK.findall(body.decode()))
    return [urldefrag(urljoin(path, address)).url for address in addresses]


def _do_some_work(demo: dict[str, Any]) -> None:
    """Roll up rates; upload a roster and a survey; order cards and an export."""
    roll_up_rates()
    emails = [login["email"] for login in demo["staff"] if "state" in login["role"]]
    state = logged_in(emails[0], demo["staff_password"])
    students = Administration.objects.get(name="demo-students")
    school = Respondent.objects.filter(administration=students)[0].school_id
    with (FOLDER / "students.csv").open("rb") as roster:
        form = {"file": roster, "complete_for": "changes"}
        state.post(reverse("roster_upload", args=[students.pk]), form)
    cards = f"{reverse('cards_list', args=[students.pk])}?school={school}"
    state.post(cards, {"format": "pdf"})
    # With names, because the demonstration's survey is open and has no results.
    names = {"identities": "on", "reason": "The pages of an export are measured."}
    export = {"administrations": students.pk, "format": "wide", **names}
    state.post(reverse("export_new"), export)
    with (FOLDER / "students.xlsx").open("rb") as workbook:
        state.post(reverse("survey_upload"), {"file": workbook, "owner": "state"})
    for queue in (jobs.QUICK, jobs.LONG):
        for pk in list(jobs.runnable_jobs(queue).values_list("pk", flat=True)):
            jobs.run(pk)
