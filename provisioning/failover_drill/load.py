"""Save pages through the web host's pool until SIGTERM, and log each attempt.

Each page is saved once, so that no later save hides its loss; one in ten is
answered again at once.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
import time
from contextlib import closing
from itertools import count
from pathlib import Path

import django
from django.db import connection

from provisioning.fault_injection.answers import AnswerSource
from provisioning.fault_injection.attempts import LAST_LINE, Attempt
from provisioning.fault_injection.saver import PAGES, Saver
from provisioning.load.respondent import UNKNOWN

CLIENTS = 12


def main() -> int:
    log, seed, rate, people = sys.argv[1:]
    django.setup()
    is_over = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: is_over.set())
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def write(attempt: Attempt) -> None:
        os.write(descriptor, attempt.line().encode())

    saver = Saver(AnswerSource(int(seed), PAGES), write)
    pause = CLIENTS / float(rate)
    threads = [
        threading.Thread(
            target=save_pages,
            args=(saver, range(client + 1, int(people) + 1, CLIENTS), pause, is_over),
        )
        for client in range(CLIENTS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    os.write(descriptor, LAST_LINE.encode())
    return 0


def save_pages(
    saver: Saver, respondents: range, pause: float, is_over: threading.Event
) -> None:
    with closing(connection):
        for respondent in respondents:
            for page in PAGES:
                revisions = 2 if random.random() < 0.1 else 1  # noqa: S311
                for revision in range(1, revisions + 1):
                    began = time.monotonic()
                    save_with_retries(saver, respondent, page, revision, is_over)
                    spent = time.monotonic() - began
                    if is_over.wait(max(0.0, pause - spent)):
                        return


def save_with_retries(
    saver: Saver, respondent: int, page: int, revision: int, is_over: threading.Event
) -> None:
    for attempt in count():
        # As the browser's queue does, but sooner.
        if attempt and is_over.wait(random.uniform(0.3, 0.7)):  # noqa: S311
            return
        if saver.save(respondent, page, revision) != UNKNOWN:
            return


def log_of(folder: Path) -> Path:
    return folder / "attempts.log"
