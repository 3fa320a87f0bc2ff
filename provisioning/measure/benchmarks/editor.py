"""Time the survey editor: opening a draft, and edits of texts, places and rules.

Runs on private servers, over HTTP, with a connection for each request, so that both
worker processes answer. Two drafts in three languages: one of 60 pages and 300
questions, and the largest that a workbook may be. Each figure stands beside an empty
page of the console in the same run. Ends with 1 if the usual draft is slower than
wanted.
"""

from __future__ import annotations

import gzip
import http.client
import re
import statistics
import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import urlencode

from provisioning.commands import (
    Refusal,
    command_parser,
    conclude,
    missed,
    print_table,
    step,
)
from provisioning.measure.benchmarks.stack import Application, private_application
from provisioning.measure.benchmarks.timed_requests import served
from provisioning.measure.load.tally import percentile
from provisioning.measure.load.target import Target

MOST = {"open_ms": 1000, "edit_ms_p95": 100}
# A list without rows: the frame of every page of the console.
EMPTY_PAGE = "/console/settings/calendar/"
# Pages, questions and options: the usual draft, and the largest of a workbook.
SIZES = {"usual": (60, 300, 20), "largest": (500, 1000, 9_900)}
PAGE_OF_OUTLINE = re.compile(
    r'<li data-digest="(\w+)" class="[^"]*" data-page="\d+" data-key="(\w+)"'
)
EDITS = ("text", "option", "move", "add", "rule")


class Reply(NamedTuple):
    milliseconds: float
    body: bytes


@dataclass(frozen=True, slots=True)
class Browser:
    """Sends requests with the cookies of a state administrator.

    As the editor does, it says which pages of the outline it shows already.
    """

    target: Target
    cookies: Mapping[str, str]
    # Digests of the outline's pages, by their keys.
    shown: dict[str, str] = field(default_factory=dict)

    def get(self, path: str) -> Reply:
        return self._send("GET", path)

    def post(self, path: str, form: Mapping[str, str]) -> Reply:
        return self._send("POST", path, urlencode(form))

    def _send(self, method: str, path: str, body: str = "") -> Reply:
        headers = {"Cookie": "; ".join(f"{n}={v}" for n, v in self.cookies.items())}
        if body:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
            headers["Accept"] = "application/json"
            token = (v for n, v in self.cookies.items() if n.endswith("csrftoken"))
            headers["X-CSRFToken"] = next(token)
            headers["X-Outline"] = "".join(self.shown.values())
        began = time.perf_counter()
        with closing(http.client.HTTPConnection(self.target.host)) as connection:
            connection.request(method, path, body or None, headers)
            reply = connection.getresponse()
            content = reply.read()
        if reply.status != 200:
            raise Refusal(f"{method} {path} was answered with {reply.status}")
        took = (time.perf_counter() - began) * 1000
        pages = PAGE_OF_OUTLINE.findall(content.decode().replace(r"\"", '"'))
        self.shown.update((key, digest) for digest, key in pages)
        return Reply(took, content)


def main() -> int:
    options = command_parser(
        __doc__,
        times=(20, "that each sort of edit is sent"),
        openings=(7, "of each draft"),
    ).parse_args()
    figures: dict[str, Any] = {}
    with private_application() as application:
        application.collect_static()
        cookies = application.call("staff_login.cookies_of_state")
        with served(application, "--workers=2") as target:
            browser = Browser(target, cookies)
            empty = [browser.get(EMPTY_PAGE).milliseconds for _ in range(30)]
            # The first ones import modules and compile templates.
            figures["empty_page_ms"] = round(statistics.median(empty[10:]), 1)
            for name, size in SIZES.items():
                figures[name] = _measure(
                    application, browser, name, size, options, figures["empty_page_ms"]
                )
    usual = figures["usual"]
    wanted = {**usual, "edit_ms_p95": usual["edit_ms"]["p95"]}
    return conclude(figures, missed(wanted, least={}, most=MOST))


def _measure(
    application: Application,
    browser: Browser,
    name: str,
    size: tuple[int, int, int],
    options: Any,
    empty: float,
) -> dict[str, Any]:
    pages, questions, listed = size
    with step(f"Writing {pages} pages, {questions:,} questions, {listed:,} options"):
        draft = application.call(
            "measure.benchmarks.editor_drafts.create_draft", name=name, size=size
        )
    browser.shown.clear()
    opened = [browser.get(draft["page"]) for _ in range(options.openings)]
    canvas = browser.get(draft["canvas"])
    edits = _send_edits(application, browser, draft, options.times)
    statements = application.call(
        "measure.benchmarks.editor_drafts.count_statements",
        draft=draft,
        number=options.times + 1,
    )
    times = [reply.milliseconds for replies in edits.values() for reply in replies]
    open_ms = statistics.median(reply.milliseconds for reply in opened)
    median = statistics.median(times)
    _print_edits(edits, statements)
    return {
        "open_ms": round(open_ms, 1),
        # Nothing of the draft is in memory yet.
        "first_open_ms": round(opened[0].milliseconds, 1),
        "edit_ms": {"median": round(median, 1), "p95": round(percentile(times, 95), 1)},
        "edit_ms_by_sort": {
            sort: round(statistics.median(each.milliseconds for each in replies), 1)
            for sort, replies in edits.items()
        },
        "bytes": {
            "page": _sizes(opened[-1].body),
            "canvas": _sizes(canvas.body),
            "edit": _sizes(max((each[-1].body for each in edits.values()), key=len)),
        },
        "queries": {
            "open": statements["open"],
            "edit": max(statements[sort] for sort in EDITS),
        },
        "ratio_to_empty_page": {
            "open": round(open_ms / empty, 1),
            "edit": round(median / empty, 1),
        },
    }


def _send_edits(
    application: Application, browser: Browser, draft: dict[str, Any], times: int
) -> dict[str, list[Reply]]:
    """Send each sort of edit in turns, as somebody who writes does."""
    rounds = application.call(
        "measure.benchmarks.editor_drafts.rounds_of_edits", draft=draft, times=times
    )
    replies: dict[str, list[Reply]] = {sort: [] for sort in EDITS}
    for forms in rounds:
        for sort in EDITS:
            replies[sort].append(browser.post(draft["change"], forms[sort]))
    return replies


def _print_edits(
    edits: Mapping[str, list[Reply]], statements: Mapping[str, int]
) -> None:
    rows = []
    for sort, replies in edits.items():
        times = [reply.milliseconds for reply in replies]
        rows.append(
            (
                sort,
                f"{statistics.median(times):.1f}",
                f"{percentile(times, 95):.1f}",
                max(len(reply.body) for reply in replies),
                statements[sort],
            )
        )
    print_table(("edit, ms", "median", "p95", "bytes", "statements"), rows)


def _sizes(body: bytes) -> dict[str, int]:
    # As nginx compresses it.
    return {"plain": len(body), "gzip": len(gzip.compress(body, 1))}
