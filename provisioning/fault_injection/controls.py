"""Negative controls: with a protection removed, the judge has to object.

Each runs the product's own statement against a private PostgreSQL, removes one
guard from it, and lets the same log and the same verdict find the result. A
judge that is content here proves nothing elsewhere. The twin of each, with the
guard in place, has to be clean.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any

import psycopg2

from provisioning.environment import manage
from provisioning.fault_injection.answers import (
    Answers,
    Item,
    answers_for,
    as_stored,
    fingerprint,
)
from provisioning.fault_injection.attempts import Attempt
from provisioning.fault_injection.cluster import Cluster, private_cluster
from provisioning.fault_injection.verdict import Judge, Verdict, read_stored_answers
from provisioning.load.respondent import ACKED, REJECTED, UNKNOWN
from survey.taking.storage import EVERY_REVISION, ON_CONFLICT, POSTGRESQL

ADMINISTRATION = 1
OPTIONS = ("1", "2", "3", "4", "5")
PAGES = {
    page: [
        Item(page * 100 + n, f"p{page}_q{n}", "select_one", OPTIONS) for n in range(5)
    ]
    for page in (1, 2, 3)
}
RESPONDENTS = 2000
CLIENTS = 8
# How long a control saves before the cluster is killed.
SECONDS = 1.0

GUARD = """WHERE survey_response.revision < excluded.revision
  AND (survey_response.revision <= %s OR survey_response.revision >= %s)
"""
KEY = "survey_response_pkey"
RESTORE = f"""
TRUNCATE survey_response;
ALTER TABLE survey_response DROP CONSTRAINT IF EXISTS {KEY};
ALTER TABLE survey_response ADD CONSTRAINT {KEY}
    PRIMARY KEY (administration_id, respondent_id, item_id);
"""
DELETE_ONE_ROW = """
DELETE FROM survey_response WHERE (respondent_id, item_id) IN (
    SELECT respondent_id, item_id FROM survey_response
    ORDER BY md5(respondent_id::text || item_id || %s) LIMIT 1
)
"""
# The rows of other tables are not tested: no foreign key is checked.
PREPARE = """
SET session_replication_role = replica;
INSERT INTO survey_administration (id, name, published_id, role, opens_at, closes_at)
VALUES (%(administration)s, 'control', 'none', 'student', now(), now() + '1 day');
INSERT INTO survey_respondent (id, administration_id, school_id, grade, language,
    attributes, issue, code_digest, code_key_version, started_at)
SELECT n, %(administration)s, 0, '', '', '{}', 1, decode(lpad(n::text, 64, '0'), 'hex'),
    1, now()
FROM generate_series(1, %(people)s) n;
CREATE TABLE survey_response_control PARTITION OF survey_response
FOR VALUES IN (%(administration)s);
"""
# Saves a page of a respondent under a revision, and returns the outcome.
Save = Callable[[int, int, int], str]


@dataclass
class Saver:
    """Send pages by the product's statement, or by one without a guard."""

    cluster: Cluster
    seed: int
    on_conflict: str = ON_CONFLICT
    attempts: list[Attempt] = field(default_factory=list)

    @contextmanager
    def session(self) -> Iterator[Save]:
        with closing(self.cluster.connect()) as connection:
            yield partial(self._save, connection.cursor())

    def _save(self, cursor: Any, respondent: int, page: int, revision: int) -> str:
        answers = answers_for(
            seed=self.seed,
            respondent=respondent,
            page=page,
            revision=revision,
            items=PAGES[page],
        )
        sent = time.time()
        outcome, at = self._execute(cursor, respondent, page, revision, answers)
        self.attempts.append(
            Attempt(
                number=f"{respondent}-{page}-{revision}",
                respondent=respondent,
                page=page,
                revision=revision,
                answers=fingerprint(answers),
                sent=sent,
                answered=time.time(),
                outcome=outcome,
                kind="first",
                reply="",
                receipt=revision if outcome == ACKED else 0,
                at=at,
            )
        )
        return outcome

    def _execute(
        self, cursor: Any, respondent: int, page: int, revision: int, answers: Answers
    ) -> tuple[str, str]:
        """Return the outcome, and the moment that a receipt would name."""
        items = PAGES[page]
        parameters: list[object] = [respondent, ADMINISTRATION, 1]
        parameters += (ADMINISTRATION, revision)
        for item in items:
            parameters += (item.id, *as_stored(answers[item.name]))
        if "%s" in self.on_conflict:
            parameters += (EVERY_REVISION, 0)
        others = ["(%s, %s, %s)"] * (len(items) - 1)
        rows = ", ".join(["(%s::bigint, %s::text, %s::text)", *others])
        statement = POSTGRESQL.format(rows=rows, on_conflict=self.on_conflict)
        try:
            cursor.execute(statement, parameters)
            written = cursor.fetchall()
        except psycopg2.Error:
            return UNKNOWN, ""
        if len(written) != len(items):
            return REJECTED, ""
        # The moment of the row, so that two rows give two receipts.
        return ACKED, written[0][0].isoformat(timespec="seconds")

    def verdict(self) -> Verdict:
        with closing(self.cluster.connect()) as connection:
            stored = read_stored_answers(connection, ADMINISTRATION)
            return Judge(self.seed, PAGES, self.attempts, stored).verdict()


def run_in_parallel(tasks: Iterable[Callable[[], None]]) -> None:
    """Use threads: PostgreSQL, which they wait for, has a process for each."""
    with ThreadPoolExecutor(CLIENTS) as threads:
        for done in [threads.submit(task) for task in tasks]:
            done.result()


# Each control on an empty table


def save_until_killed(saver: Saver) -> None:
    """Kill the whole cluster in the middle of the load, and start it again.

    The log's writer is suspended, as if the disk were slow: a kill loses only
    what has not reached the kernel, and it hands over each page that fills.
    """

    def save_until_gone(client: int) -> None:
        with saver.session() as save:
            for revision in range(1, 1_000_000):
                for respondent in range(client + 1, RESPONDENTS, CLIENTS):
                    for page in PAGES:
                        if save(respondent, page, revision) == UNKNOWN:
                            return

    saver.cluster.suspend("walwriter")
    clients = [
        threading.Thread(target=save_until_gone, args=[n]) for n in range(CLIENTS)
    ]
    for client in clients:
        client.start()
    time.sleep(SECONDS)
    saver.cluster.kill()
    for client in clients:
        client.join()
    saver.cluster.start()


def save_at_once(saver: Saver) -> None:
    """Let every client send the same page at the same moment."""
    ready = threading.Barrier(CLIENTS)

    def send() -> None:
        with saver.session() as save:
            for respondent in range(1, 51):
                ready.wait(10)
                save(respondent, 1, 7)

    run_in_parallel([send] * CLIENTS)


def save_out_of_order(saver: Saver) -> None:
    """Send the revisions of each page in random order."""
    random = Random(saver.seed)  # noqa: S311
    orders = {respondent: random.sample(range(1, 6), 5) for respondent in range(1, 401)}

    def send(client: int) -> None:
        with saver.session() as save:
            for respondent in range(client + 1, 401, CLIENTS):
                for revision in orders[respondent]:
                    save(respondent, 1, revision)

    run_in_parallel(partial(send, client) for client in range(CLIENTS))


def save_then_delete_a_row(saver: Saver) -> None:
    save_in_order(saver)
    saver.cluster.execute(DELETE_ONE_ROW, [str(saver.seed)])


def save_in_order(saver: Saver) -> None:
    with saver.session() as save:
        for respondent in range(1, 101):
            for page in PAGES:
                save(respondent, page, 1)


@dataclass(frozen=True)
class Control:
    name: str
    # The count that has to be raised, and whether a number is enough.
    count: str
    run: Callable[[Saver], None]
    fails: Callable[[int], bool]
    on_conflict: str = ON_CONFLICT
    settings: dict[str, str] = field(default_factory=dict)
    # SQL that removes the protection.
    without: str = ""


CONTROLS = (
    Control(
        "commits not flushed, cluster killed",
        "lost",
        save_until_killed,
        (0).__lt__,
        # Buffers that do not fill within a second's saves.
        settings={"synchronous_commit": "off", "wal_buffers": "64MB"},
    ),
    Control(
        "unique key dropped, sent at once",
        "duplicated",
        save_at_once,
        (0).__lt__,
        on_conflict="RETURNING saved_at",
        without=f"ALTER TABLE survey_response DROP CONSTRAINT {KEY}",
    ),
    Control(
        "revision guard off, reordered",
        "regressions",
        save_out_of_order,
        (0).__lt__,
        on_conflict=ON_CONFLICT.replace(GUARD, ""),
    ),
    Control("one row deleted", "lost", save_then_delete_a_row, (1).__eq__),
)


def twin_of(control: Control) -> Control:
    """Return the same control with every protection in place."""
    deletes = control.run is save_then_delete_a_row
    run = save_in_order if deletes else control.run
    return Control(control.name, control.count, run, (0).__eq__)


@dataclass(frozen=True)
class ControlResult:
    name: str
    count: str
    found: int
    # Findings with every protection in place.
    twin: int
    acknowledged: int
    seconds: float
    as_required: bool

    def line(self) -> str:
        verdict = "as required" if self.as_required else "NOT as required"
        return (
            f"  {self.name:<38} {self.count} {self.found:>6}, with it"
            f" {self.twin}: {verdict} ({self.seconds:.1f} s)"
        )


def run_controls(seed: int, controls: Sequence[Control]) -> Iterator[ControlResult]:
    assert GUARD in ON_CONFLICT, "The guard that a control removes is missing"  # noqa: S101
    with private_cluster() as cluster:
        cluster.start()
        cluster.execute("CREATE DATABASE groundswell", database="postgres")
        environment = {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "settings.stack",
            "GROUNDSWELL_DATABASE_HOST": str(cluster.folder),
            "GROUNDSWELL_DATABASE_PORT": "5432",
            "GROUNDSWELL_DATABASE_NAME": "groundswell",
            "GROUNDSWELL_DATABASE_USER": "postgres",
            "GROUNDSWELL_REPLICA_HOST": "",
            "GROUNDSWELL_SECRET_KEY": "x" * 50,
            "GROUNDSWELL_ACCESS_CODE_KEYS": "1=only-for-the-checker",
        }
        manage("migrate", "--verbosity=0", environment=environment)
        sizes = {"administration": ADMINISTRATION, "people": RESPONDENTS}
        cluster.execute(PREPARE, sizes)
        for control in controls:
            began = time.monotonic()
            without = _run(cluster, control, seed)
            twin = _run(cluster, twin_of(control), seed)
            found = without.count(control.count)
            yield ControlResult(
                name=control.name,
                count=control.count,
                found=found,
                twin=sum(finding.count != "recovered" for finding in twin.findings),
                acknowledged=without.acknowledged,
                seconds=time.monotonic() - began,
                as_required=control.fails(found) and twin.holds(),
            )


def _run(cluster: Cluster, control: Control, seed: int) -> Verdict:
    cluster.stop()
    cluster.start(control.settings)
    cluster.execute(RESTORE + control.without)
    # Otherwise the next crash would lose these changes too.
    cluster.execute("CHECKPOINT")
    saver = Saver(cluster, seed, control.on_conflict)
    control.run(saver)
    return saver.verdict()
