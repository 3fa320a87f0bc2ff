"""Take surveys through the web host's pool until SIGTERM, and log each attempt."""

from __future__ import annotations

import os
import signal
import sys
import threading

import django

from provisioning.prove.fault_injection.answers import AnswerSource
from provisioning.prove.fault_injection.attempts import LAST_LINE, Attempt
from provisioning.prove.fault_injection.saver import PAGES, Saver

CLIENTS = 12


def main() -> int:
    log, seed, rate, people = sys.argv[1:]
    django.setup()
    # Not at the top: it needs Django to be set up.
    from provisioning.prove.failovers.respondents import take_surveys

    is_over = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: is_over.set())
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def write(attempt: Attempt) -> None:
        os.write(descriptor, attempt.line().encode())

    saver = Saver(AnswerSource(int(seed), PAGES), write)
    pause = CLIENTS / float(rate)
    threads = [
        threading.Thread(
            target=take_surveys,
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
