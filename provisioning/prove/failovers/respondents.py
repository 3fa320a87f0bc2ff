"""Simulate respondents who open a survey, answer its pages, and come back.

They reach the database through the web host's pool. Runs in Django.
"""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import closing, suppress
from functools import partial

from django.db import Error, connection

from provisioning.measure.load.respondent import UNKNOWN
from provisioning.prove.fault_injection.saver import ADMINISTRATION, PAGES, Saver
from provisioning.prove.fault_injection.saves import LAST_LINE, AnswerSource, Attempt
from survey.taking.published import Published
from survey.taking.saved_answers import SavedAnswers, read_saved_answers
from survey.taking.session import RespondentSession
from survey.taking.storage import TABS
from survey.taking.unavailable import ServiceUnavailable, run_with_retry

CLIENTS = 12
# Who comes back has answered in the last half a minute: perhaps by the clock of
# another primary.
REMEMBERED = 50
SHARE = 0.1
PUBLISHED = Published(
    digest="",
    definition={},  # type: ignore[typeddict-item]
    answerable=tuple(
        {item.name: {"id": item.id} for item in items}  # type: ignore[typeddict-item]
        for items in PAGES.values()
    ),
    ruled=(),
    names={item.id: item.name for items in PAGES.values() for item in items},
)


def run(*, log: str, seed: int, rate: int, people: int, first: int = 1) -> None:
    """Take surveys until SIGTERM, and log each attempt; the people begin at `first`."""
    is_over = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: is_over.set())
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def write(attempt: Attempt) -> None:
        os.write(descriptor, attempt.line().encode())

    saver = Saver(AnswerSource(seed, PAGES), write)
    threads = []
    for client in range(1, CLIENTS + 1):
        respondents = range(first - 1 + client, people + 1, CLIENTS)
        arguments = (saver, respondents, CLIENTS / rate, is_over)
        threads.append(threading.Thread(target=take_surveys, args=arguments))
        threads[-1].start()
    for thread in threads:
        thread.join()
    os.write(descriptor, LAST_LINE.encode())


def take_surveys(
    saver: Saver, respondents: range, pause: float, is_over: threading.Event
) -> None:
    earlier: deque[int] = deque(maxlen=REMEMBERED)
    with closing(connection):
        for respondent in respondents:
            answer_pages(saver, respondent, pause, is_over)
            earlier.append(respondent)
            if random.random() < SHARE:  # noqa: S311
                earlier_respondent = random.choice(earlier)  # noqa: S311
                answer_pages(saver, earlier_respondent, pause, is_over)
            if is_over.is_set():
                return


def answer_pages(
    saver: Saver, respondent: int, pause: float, is_over: threading.Event
) -> None:
    """Open the survey in a new tab, and save each page, some of them twice."""
    saved = open_survey(respondent, is_over)
    tab = random.randrange(TABS)  # noqa: S311
    if saved is None:
        return
    # As in page_slots.js: above all stored revisions, and the tab's own.
    revision = saved.revision + (tab - saved.revision) % TABS
    for page in PAGES:
        for _ in range(2 if random.random() < SHARE else 1):  # noqa: S311
            seen, began = saved.seen[page - 1], time.monotonic()
            save = partial(saver.save, respondent, page, revision, tab=str(tab))
            for _ in attempts(is_over):
                if save(seen=seen) != UNKNOWN:
                    break
            revision += TABS
            if is_over.wait(max(0.0, began + pause - time.monotonic())):
                return


def open_survey(respondent: int, is_over: threading.Event) -> SavedAnswers | None:
    """Read what a tab begins with; None when the load is over before."""
    session = RespondentSession(
        ADMINISTRATION, respondent, issue=1, digest="", language="", tag=""
    )
    for _ in attempts(is_over):
        with suppress(Error, ServiceUnavailable):
            return run_with_retry(
                lambda: read_saved_answers(session, PUBLISHED, device="")
            )
    return None


def attempts(is_over: threading.Event) -> Iterator[None]:
    """Yield at once, and then after pauses: as the browser's queue, but sooner."""
    yield
    while not is_over.wait(random.uniform(0.3, 0.7)):  # noqa: S311
        yield
