"""Negative controls: with a protection removed, the judge has to object.

Each saves pages by the product's own function on private servers, removes one
protection, and lets the same log and the same verdict find the result. A judge
that is content here proves nothing elsewhere. The twin of each, with every
protection in place, has to be clean.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from random import Random
from unittest import mock

import django
from django.core.management import call_command
from django.db import connection

from provisioning import processes
from provisioning.installation.servers import private_servers
from provisioning.measure.load.respondent import UNKNOWN
from provisioning.prove.fault_injection.saver import ADMINISTRATION, PAGES, Saver
from provisioning.prove.fault_injection.saves import AnswerSource, Attempt
from provisioning.prove.fault_injection.stack import RunningStack
from provisioning.prove.fault_injection.verdict import Judge, Verdict, read_back
from survey.taking import storage

RESPONDENTS = 2000
CLIENTS = 8
# How long a control saves before the cluster is killed.
SECONDS = 1.0

KEY = "survey_response_pkey"
RESTORE = f"""
TRUNCATE survey_response;
ALTER TABLE survey_response DROP CONSTRAINT IF EXISTS {KEY};
ALTER TABLE survey_response ADD CONSTRAINT {KEY}
    PRIMARY KEY (administration_id, respondent_id, item_id);
"""
CHANGED_SETTINGS = """
SELECT count(*)::text FROM pg_file_settings
WHERE sourcefile LIKE '%postgresql.auto.conf'
"""
DELETE_ONE_ROW = """
DELETE FROM survey_response WHERE (respondent_id, item_id) IN (
    SELECT respondent_id, item_id FROM survey_response ORDER BY random() LIMIT 1
)
"""


@dataclass
class ControlledSaver(Saver):
    """Keep the attempts on a stack, and judge them."""

    stack: RunningStack
    attempts: list[Attempt]

    def in_parallel(self, send: Callable[[int], None]) -> None:
        """Run clients in threads, each with a connection of its own.

        Threads are enough: PostgreSQL, which they wait for, has a process for
        each.
        """

        def run(client: int) -> None:
            with closing(connection):
                send(client)

        with ThreadPoolExecutor(CLIENTS) as threads:
            list(threads.map(run, range(CLIENTS)))

    def verdict(self) -> Verdict:
        with closing(self.stack.connect()) as final:
            stored, _ = read_back(final, ADMINISTRATION)
            return Judge(self.source, self.attempts, stored).verdict()


# Each way of saving begins with an empty table


def save_until_killed(saver: ControlledSaver) -> None:
    """Kill the whole cluster in the middle of the load, and start it again.

    The log's writer is suspended, as if the disk were slow: a kill loses only
    what has not reached the kernel, and it hands over each page that fills.
    """
    stack = saver.stack

    def save_until_gone(client: int) -> None:
        for revision in range(1, 1_000_000):
            for respondent in range(client + 1, RESPONDENTS, CLIENTS):
                for page in PAGES:
                    if saver.save(respondent, page, revision) == UNKNOWN:
                        return

    postgresql = stack.tree("primary")
    writers = [pid for pid in postgresql if "walwriter" in processes.command_line(pid)]
    assert writers, "PostgreSQL has no walwriter"  # noqa: S101
    stack.signal(writers, signal.SIGSTOP)
    threading.Timer(SECONDS, lambda: stack.kill_together(stack.tree("primary"))).start()
    saver.in_parallel(save_until_gone)
    stack.wait_for_database()


def save_at_once(saver: ControlledSaver) -> None:
    """Let every client send the same page at the same moment."""
    ready = threading.Barrier(CLIENTS)

    def send(client: int) -> None:
        for respondent in range(1, 51):
            ready.wait(60)
            saver.save(respondent, 1, 7)

    saver.in_parallel(send)


def save_out_of_order(saver: ControlledSaver) -> None:
    """Send the revisions of each page in random order."""
    random = Random(saver.source.seed)  # noqa: S311
    for respondent in range(1, 101):
        for revision in random.sample(range(1, 6), 5):
            saver.save(respondent, 1, revision)


def save_in_two_tabs(saver: ControlledSaver) -> None:
    """Save each page in a tab, and then in one that has not seen that save."""
    for respondent in range(1, 101):
        saver.save(respondent, 1, 10, tab="first", seen=0)
        saver.save(respondent, 1, 20, tab="second", seen=0)


def save_twice(saver: ControlledSaver) -> None:
    for respondent in range(1, 101):
        saver.save(respondent, 1, 1)
        saver.save(respondent, 1, 1)


def save_in_order(saver: ControlledSaver) -> None:
    for respondent in range(1, 101):
        for page in PAGES:
            saver.save(respondent, page, 1)


@dataclass(frozen=True)
class Control:
    name: str
    # The count that has to be raised, and to what; None is any number.
    count: str
    send: Callable[[ControlledSaver], None]
    expected: int | None = None
    # What removes the protection: settings of PostgreSQL, a part of the saving
    # statement with its replacement, functions of `storage`, or SQL that is
    # executed before or after the saves.
    settings: Mapping[str, str] = field(default_factory=dict)
    statement: tuple[str, str] = ("", "")
    functions: Mapping[str, Callable[..., object]] = field(default_factory=dict)
    before: str = ""
    after: str = ""

    @property
    def on_conflict(self) -> str:
        return storage.ON_CONFLICT.replace(*self.statement, 1)

    def is_as_required(self, findings: int) -> bool:
        return findings > 0 if self.expected is None else findings == self.expected


# The parameters stay, so that the statement is executed as before.
WITHOUT_KEY = (
    "WHERE TRUE"
    + " OR %s IS NULL" * storage.ON_CONFLICT.count("%s")
    + " RETURNING saved_at"
)
CONTROLS = (
    Control(
        "commits not flushed, cluster killed",
        "lost",
        save_until_killed,
        # Buffers that do not fill within a second's saves.
        settings={"synchronous_commit": "off", "wal_buffers": "64MB"},
    ),
    Control(
        "unique key dropped, sent at once",
        "duplicated",
        save_at_once,
        statement=(storage.ON_CONFLICT, WITHOUT_KEY),
        before=f"ALTER TABLE survey_response DROP CONSTRAINT {KEY}",
    ),
    Control(
        "revision guard off, reordered",
        "regressions",
        save_out_of_order,
        statement=("survey_response.revision < excluded.revision", "TRUE"),
    ),
    Control(
        "seen guard off, two tabs",
        "lost_updates",
        save_in_two_tabs,
        statement=("AND (survey_response", "AND (TRUE OR survey_response"),
    ),
    Control(
        "stored page not recognised, sent twice",
        "false_rejected",
        save_twice,
        functions={
            "_explain_refusal": lambda *page: storage.Receipt(
                storage.Outcome.SUPERSEDED
            )
        },
    ),
    Control("one row deleted", "lost", save_in_order, 1, after=DELETE_ONE_ROW),
)


@dataclass(frozen=True)
class ControlResult:
    name: str
    count: str
    findings: int
    # Findings with every protection in place.
    twin: int
    seconds: float
    as_required: bool
    # What the product logged meanwhile, one JSON object per line.
    log: str = ""

    def text(self) -> str:
        """Describe the result, with a count for each kind of line in the log.

        The lines themselves follow only where a control is not as required.
        """
        verdict = "as required" if self.as_required else "NOT as required"
        lines = [
            f"  {self.name:<38} {self.count} {self.findings:>6}, with it"
            f" {self.twin}: {verdict} ({self.seconds:.1f} s)"
        ]
        logged = self.log.splitlines()
        events = Counter(json.loads(line)["event"] for line in logged)
        lines += [
            f"    logged {count} times: {event}" for event, count in events.items()
        ]
        return "\n".join(lines + ([] if self.as_required else logged))


@contextmanager
def servers_with_people(people: int) -> Iterator[RunningStack]:
    """Start private servers with an open administration. Configures Django."""
    with (
        private_servers() as folder,
        closing(RunningStack(folder, run=folder)) as stack,
    ):
        os.environ |= {
            "DJANGO_SETTINGS_MODULE": "settings.stack",
            "GROUNDSWELL_DATABASE_HOST": str(folder),
            "GROUNDSWELL_DATABASE_PORT": "5432",
            "GROUNDSWELL_DATABASE_NAME": "groundswell",
            "GROUNDSWELL_DATABASE_USER": "postgres",
            "GROUNDSWELL_REPLICA_HOST": "",
            "GROUNDSWELL_SECRET_KEY": "x" * 50,
            "GROUNDSWELL_ACCESS_CODE_KEYS": "1=only-for-the-checker",
            "GROUNDSWELL_TIME_ZONE": "UTC",
        }
        django.setup()
        call_command("migrate", verbosity=0)
        connection.close()
        prepare = Path(__file__).with_suffix(".sql").read_text()
        stack.query(prepare.format(administration=ADMINISTRATION, people=people))
        yield stack


@contextmanager
def collected_log() -> Iterator[StringIO]:
    """Collect the product's log lines instead of printing them."""
    collected = StringIO()
    with ExitStack() as stack:
        for handler in logging.getLogger().handlers:
            if isinstance(handler, logging.StreamHandler):
                before = handler.setStream(collected)
                stack.callback(handler.setStream, before)
        yield collected


def run_controls(seed: int, controls: Sequence[Control]) -> Iterator[ControlResult]:
    """Run controls on private servers. Configures Django for this process."""
    with servers_with_people(RESPONDENTS) as stack:
        for control in controls:
            began = time.monotonic()
            with collected_log() as log:
                findings = _run(stack, control, seed).count(control.count)
                twin = _run(stack, Control("", "", control.send), seed).forbidden()
            yield ControlResult(
                name=control.name,
                count=control.count,
                findings=findings,
                twin=len(twin),
                seconds=time.monotonic() - began,
                as_required=control.is_as_required(findings) and not twin,
                log=log.getvalue(),
            )


def _run(stack: RunningStack, control: Control, seed: int) -> Verdict:
    if stack.query(CHANGED_SETTINGS) != str(len(control.settings)):
        stack.query("ALTER SYSTEM RESET ALL")
        for name, value in control.settings.items():
            stack.query(f"ALTER SYSTEM SET {name} = '{value}'")
        stack.stop("primary")
        stack.start("primary")
        stack.wait_for_database()
    stack.query(RESTORE + control.before)
    # Otherwise the next crash would lose these changes too.
    stack.query("CHECKPOINT")
    attempts: list[Attempt] = []
    source = AnswerSource(seed, PAGES)
    saver = ControlledSaver(source, attempts.append, stack, attempts)
    without = {"ON_CONFLICT": control.on_conflict, **control.functions}
    with mock.patch.dict(vars(storage), without), closing(connection):
        storage.postgresql_insert.cache_clear()
        control.send(saver)
    storage.postgresql_insert.cache_clear()
    if control.after:
        stack.query(control.after)
    return saver.verdict()
