"""Count requests in each process, for Prometheus.

Each metric's HELP text says what it means to an engineer on call. Counting
takes 1 to 3 µs per metric, in the process that serves the request.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import sys
from collections.abc import Hashable, Mapping
from itertools import count
from math import isfinite
from pathlib import Path
from threading import Lock
from typing import IO, Any

from django.conf import settings
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Histogram,
    values,
)
from prometheus_client.mmap_dict import MmapedDict

log = logging.getLogger(__name__)

HOT_VIEWS = frozenset(
    (
        "survey_login",
        "survey_display",
        "survey_change_page",
        "survey_plain_page",
        "survey_content",
        "survey_complete",
        "message_person",
    )
)
SAVE_OUTCOMES = {
    200: "saved",
    401: "session_over",
    409: "conflict",
    422: "invalid",
    500: "failed",
    503: "unavailable",
}
# More precise outcomes, which a view may set as `response.outcome`.
VIEW_OUTCOMES = frozenset(
    ("retried", "superseded", "finished", "withdrawn", "closed", "reissued")
    + ("uncertain", "resumed", "saved", "invalid", "declined")
)
# A plain form is answered with the next page, so only its view knows the outcome.
SAVE_VIEWS = frozenset(("survey_change_page", "survey_plain_page"))
LOGIN_OUTCOMES = {
    200: "admitted",
    302: "admitted",
    403: "forbidden",
    422: "refused",
    500: "failed",
    503: "unavailable",
}

# Outcomes of a login with a wrong code -> which count reached its limit with it.
WRONG_CODES = {
    "wrong_code": "none",
    "wrong_codes_of_block": "block",
    "wrong_codes_in_all": "all",
}

# Size of each process's file of counters, and of its file of histograms: room for
# all possible labels.
FILE_SIZE = 1 << 17


class Slot:
    """A number for this process's files that no other running process has.

    Numbered slots are used instead of process ids, because workers restart all
    day and each would leave its files behind. A file lock frees the number
    when its process ends, however it ends, and the next process continues
    counting in the same files.
    """

    def __init__(self) -> None:
        self._acquiring = Lock()
        self.number = -1
        self._lock_file: IO[str] | None = None

    def acquire(self, folder: Path) -> None:
        """Take the lowest free number. Raises OSError if no file can be created."""
        with self._acquiring:
            if self._lock_file is not None:
                return
            folder.mkdir(parents=True, exist_ok=True)
            for number in count():
                lock_file = (folder / f"{number}.lock").open("a")
                try:
                    fcntl.flock(lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    for kind in ("counter", "histogram"):
                        _prepare(folder / f"{kind}_{number}.db")
                except OSError as error:
                    lock_file.close()
                    if not isinstance(error, BlockingIOError):
                        raise
                else:
                    self._lock_file, self.number = lock_file, number
                    return

    def forget(self) -> None:
        """Release the number. After a fork, the parent process still holds it."""
        if self._lock_file is not None:
            self._lock_file.close()
        self._acquiring, self.number, self._lock_file = Lock(), -1, None


def _prepare(path: Path) -> None:
    if not is_whole(path):
        log.warning("a damaged file of counts is replaced")
        path.unlink(missing_ok=True)
    # Reserve the space. Otherwise, on a full disk, writing to the mapped file would
    # kill the process. Like this it is an error, and nothing is counted.
    with path.open("ab") as file:
        os.posix_fallocate(file.fileno(), 0, FILE_SIZE)


def is_whole(path: Path) -> bool:
    """Return False for a file that a power loss truncated or filled with zeros."""
    try:
        with path.open("rb") as file:
            used = int.from_bytes(file.read(4), sys.byteorder, signed=True)
        if used and not 8 <= used <= path.stat().st_size:
            return False
        for key, *numbers in MmapedDict.read_all_values_from_file(str(path)):
            _, _, labels, _ = json.loads(key)
            if not (isinstance(labels, dict) and all(map(isfinite, numbers))):
                return False
        return True
    except FileNotFoundError:
        return True
    except Exception:
        return False


slot = Slot()
values.ValueClass = (
    values.MultiProcessValue(lambda: slot.number)
    if settings.METRICS_FOLDER
    else values.MutexValue
)

registry = CollectorRegistry()
seconds_of = Histogram(
    "groundswell_request_seconds",
    "Time that the application took for a request, by view. The service level is"
    " 0.25 at p99. Waiting time before it is not included: see"
    " groundswell_listen_queue.",
    ["view", "method"],
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15),
    registry=registry,
)
store_seconds = Counter(
    "groundswell_store_seconds",
    "Time that requests waited for each store, by view: primary and replica are"
    " PostgreSQL, with pgbouncer's queue; rabbitmq is the waking of workers; files are"
    " made, opened and deleted. Its rate / that of groundswell_request_seconds_count is"
    " the mean of a request; what is left is the application's own. Every 16th page"
    " save is measured.",
    ["view", "store"],
    registry=registry,
)
saves = Counter(
    "groundswell_page_saves",
    "Page saves by outcome. saved: on disk. retried: already on disk."
    " superseded: a newer tab or device wrote. conflict: superseded, finished,"
    " declined, withdrawn or closed. session_over: the browser asks for the code again."
    " unavailable: no database; the browser keeps the page and retries."
    " failed: a defect, see the log. Only saved and retried are shown as saved.",
    ["outcome"],
    registry=registry,
)
logins = Counter(
    "groundswell_logins",
    "Logins by outcome. Many refused at once: a wrong stack of cards, or someone"
    " guessing codes. forbidden: no CSRF cookie, so a browser without cookies or"
    " another site.",
    ["outcome"],
    registry=registry,
)
wrong_codes = Counter(
    "groundswell_wrong_codes",
    "Logins with a complete code that nobody has. limit: block, if it was the 200th"
    " of an hour from neighbouring addresses (or the 400th, and so on); all, if it"
    " was the 5,000th of all. Each of these has a line in the log. Nobody is refused.",
    ["limit"],
    registry=registry,
)
messages = Counter(
    "groundswell_messages",
    "Requests of message platforms with a valid API key, by platform and outcome."
    " hit: from Redis. miss: read from the database. unknown: not a person of this"
    " platform. unavailable: Redis is down, or too many people were missing there."
    " Platform 0, unauthorized: no valid API key.",
    ["platform", "outcome"],
    registry=registry,
)
email_events = Counter(
    "groundswell_email_events",
    "Posts and events of the e-mail provider. recorded: a bounce, complaint or"
    " opting out. repeated: recorded before. unknown: no e-mail has this id."
    " ignored: about something else. refused: without the right secret or signature."
    " malformed: not in the provider's form.",
    ["outcome"],
    registry=registry,
)
feed_stage_seconds = Histogram(
    "groundswell_feed_stage_seconds",
    "Time of the stages of scans of roster feeds. result: done; failed, with a reason"
    " on the feed's page; interrupted, by a worker that stopped, and repeated.",
    ["stage", "result"],
    buckets=(0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800),
    registry=registry,
)
feed_stage_rows = Histogram(
    "groundswell_feed_stage_rows",
    "Rows that a stage of a scan handled: written by parse, compared, and changed by"
    " apply. Many in apply each night: the source gives people new IDs or values.",
    ["stage"],
    buckets=(0, 10, 100, 1000, 10_000, 100_000, 1_000_000),
    registry=registry,
)
feed_stage_bytes = Histogram(
    "groundswell_feed_stage_bytes",
    "Bytes that a stage of a scan downloaded, or of the rosters that it wrote.",
    ["stage"],
    buckets=(0, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000),
    registry=registry,
)
errors = Counter(
    "groundswell_errors",
    "Responses of 500 and above by view. After a 503 the browser retries; each 500"
    " has a line with its stack in the log.",
    ["view", "status"],
    registry=registry,
)


class NullMetric:
    """Ignore counts if a metric cannot be written."""

    def inc(self, amount: float = 1) -> None:
        pass

    def observe(self, seconds: float) -> None:
        pass


NULL_METRIC = NullMetric()


class Children(dict[Any, Any]):
    """The children of a metric by labels, each looked up once per process."""

    def __init__(self, metric: Counter | Histogram) -> None:
        self.metric = metric

    def __missing__(self, labels: Hashable) -> Any:
        try:
            if settings.METRICS_FOLDER:
                slot.acquire(Path(settings.METRICS_FOLDER))
            values = labels if isinstance(labels, tuple) else (labels,)
            child: Any = self.metric.labels(*values)
        except Exception:
            # The request is more important than its count.
            log.exception("not counted")
            child = NULL_METRIC
        self[labels] = child
        return child


_seconds, _saves = Children(seconds_of), Children(saves)
_stores = Children(store_seconds)
_logins, _errors = Children(logins), Children(errors)
_wrong_codes, _messages = Children(wrong_codes), Children(messages)
_email_events = Children(email_events)
_feed_seconds = Children(feed_stage_seconds)
_feed_rows, _feed_bytes = Children(feed_stage_rows), Children(feed_stage_bytes)
ALL_CHILDREN = (
    *(_seconds, _stores, _saves, _logins, _errors, _wrong_codes, _messages),
    *(_email_events, _feed_seconds, _feed_rows, _feed_bytes),
)


def _forget_slot() -> None:
    # A child process must not write into its parent's files.
    slot.forget()
    for children in ALL_CHILDREN:
        children.clear()


os.register_at_fork(after_in_child=_forget_slot)


def count_email_event(outcome: str) -> None:
    _email_events[outcome].inc()


def observed(
    view: str, seconds: float, status: int, *, method: str = "POST", outcome: str = ""
) -> None:
    """Count one request. `view` is the name of its URL.

    `outcome` may be one of VIEW_OUTCOMES or WRONG_CODES, where the status says
    too little.
    """
    if view not in HOT_VIEWS:
        view = "other"
    if method not in ("GET", "POST"):
        method = "other"
    _seconds[view, method].observe(seconds)
    if view in SAVE_VIEWS and method == "POST":
        is_known = outcome in VIEW_OUTCOMES
        _saves[outcome if is_known else SAVE_OUTCOMES.get(status, "refused")].inc()
    elif view == "survey_login" and method == "POST":
        _logins[LOGIN_OUTCOMES.get(status, "refused")].inc()
        if outcome in WRONG_CODES:
            _wrong_codes[WRONG_CODES[outcome]].inc()
    if status >= 500:
        _errors[view, status].inc()


def count_stores(view: str, seconds: Mapping[str, float], weight: int) -> None:
    """Count the seconds that a request waited for each store, `weight` times."""
    if view not in HOT_VIEWS:
        view = "other"
    for store, waited in seconds.items():
        _stores[view, store].inc(waited * weight)


def count_message(platform_id: int, outcome: str) -> None:
    """Count one request of a message platform."""
    _messages[str(platform_id), outcome].inc()


def observe_feed_stage(
    stage: str, seconds: float, result: str, *, rows: int, size: int
) -> None:
    """Count one attempt of a stage of a scan; rows and bytes only if it is done."""
    _feed_seconds[stage, result].observe(seconds)
    if result == "done":
        _feed_rows[stage].observe(rows)
        _feed_bytes[stage].observe(size)
