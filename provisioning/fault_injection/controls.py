"""Negative controls: with a protection taken away, the checker has to object.

Each runs the product's own statement against a PostgreSQL of the checker's,
cuts one guard out of it, and lets the same log and the same verdict find what
follows. A checker that stays content here proves nothing anywhere else. The
twin of each, with the guard in place, has to be clean.
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

from provisioning.commands import ROOT, output_of
from provisioning.environment import PYTHON
from provisioning.fault_injection.answers import (
    Item,
    answers_for,
    as_stored,
    fingerprint,
)
from provisioning.fault_injection.attempts import ACKED, REJECTED, UNKNOWN, Attempt
from provisioning.fault_injection.cluster import Cluster, private_cluster
from provisioning.fault_injection.reading import stored_rows
from provisioning.fault_injection.verdict import Judge, Verdict
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
# How long a control saves before something happens to it.
SECONDS = 1.0

GUARD = """WHERE survey_response.revision < excluded.revision
  AND (survey_response.revision <= %s OR survey_response.revision >= %s)
"""
KEY = "survey_response_pkey"


@dataclass
class Saver:
    """Sends pages by the product's statement, or by one without a guard."""

    cluster: Cluster
    seed: int
    on_conflict: str = ON_CONFLICT
    attempts: list[Attempt] = field(default_factory=list)
    stopped: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def session(self) -> Iterator[Callable[[int, int, int], str]]:
        connection = self.cluster.connect()
        try:
            with connection.cursor() as cursor:
                yield partial(self.save, cursor)
        finally:
            connection.close()

    def save(self, cursor: Any, respondent: int, page: int, revision: int) -> str:
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
        self, cursor: Any, respondent: int, page: int, revision: int, answers: Any
    ) -> tuple[str, str]:
        items = PAGES[page]
        parameters: list[Any] = [
            respondent,
            ADMINISTRATION,
            1,
            ADMINISTRATION,
            revision,
        ]
        for item in items:
            parameters += (item.id, *as_stored(answers[item.name]))
        if "%s" in self.on_conflict:
            parameters += (EVERY_REVISION, 0)
        try:
            cursor.execute(self._text(len(items)), parameters)
            written = cursor.fetchall()
        except psycopg2.Error:
            return UNKNOWN, ""
        if len(written) != len(items):
            return REJECTED, ""
        # A receipt's moment is the row's, so that two rows give two receipts.
        return ACKED, written[0][0].isoformat(timespec="seconds")

    def _text(self, count: int) -> str:
        rows = ", ".join(
            ["(%s::bigint, %s::text, %s::text)"] + ["(%s, %s, %s)"] * (count - 1)
        )
        return POSTGRESQL.format(rows=rows, on_conflict=self.on_conflict)

    def verdict(self) -> Verdict:
        with closing(self.cluster.connect()) as connection:
            rows = stored_rows(connection, ADMINISTRATION)
            return Judge(self.seed, PAGES, self.attempts, rows).verdict()


def in_parallel(tasks: Iterable[Callable[[], None]]) -> None:
    """Threads: the waiting is for PostgreSQL, which has a process for each."""
    with ThreadPoolExecutor(CLIENTS) as threads:
        for done in [threads.submit(task) for task in tasks]:
            done.result()


# What each control does with a fresh table


def save_until_killed(saver: Saver) -> None:
    """The whole cluster is killed in the middle of the load, and comes back.

    The log's writer is held, as a slow disk would: killing loses only what
    has not reached the kernel, and it hands over each page that fills.
    """
    saver.cluster.hold("walwriter")
    clients = [
        threading.Thread(target=_save_until_gone, args=(saver, n))
        for n in range(CLIENTS)
    ]
    for client in clients:
        client.start()
    time.sleep(SECONDS)
    saver.cluster.kill()
    for client in clients:
        client.join()
    saver.cluster.start()


def _save_until_gone(saver: Saver, client: int) -> None:
    with saver.session() as save:
        for revision in range(1, 1_000_000):
            for respondent in range(client + 1, RESPONDENTS, CLIENTS):
                for page in PAGES:
                    if save(respondent, page, revision) == UNKNOWN:
                        return


def save_each_at_once(saver: Saver) -> None:
    """Every client sends the same page in the same moment."""
    ready = threading.Barrier(CLIENTS)

    def send() -> None:
        with saver.session() as save:
            for respondent in range(1, 51):
                ready.wait(10)
                save(respondent, 1, 7)

    in_parallel([send] * CLIENTS)


def save_out_of_order(saver: Saver) -> None:
    """The revisions of each page arrive shuffled."""
    random = Random(saver.seed)  # noqa: S311

    def send(respondents: Sequence[int], orders: Sequence[Sequence[int]]) -> None:
        with saver.session() as save:
            for respondent, order in zip(respondents, orders, strict=True):
                for revision in order:
                    save(respondent, 1, revision)

    in_parallel(
        partial(
            send,
            range(client + 1, 401, CLIENTS),
            [random.sample(range(1, 6), 5) for _ in range(client + 1, 401, CLIENTS)],
        )
        for client in range(CLIENTS)
    )


def save_then_lose_a_row(saver: Saver) -> None:
    save_in_order(saver)
    saver.cluster.execute(
        "DELETE FROM survey_response WHERE (respondent_id, item_id) IN"
        " (SELECT respondent_id, item_id FROM survey_response"
        "  ORDER BY md5(respondent_id::text || item_id || %s) LIMIT 1)",
        values=[str(saver.seed)],
    )


def save_in_order(saver: Saver) -> None:
    with saver.session() as save:
        for respondent in range(1, 101):
            for page in PAGES:
                save(respondent, page, 1)


@dataclass(frozen=True)
class Control:
    name: str
    # The count that has to be raised, and what is enough.
    count: str
    run: Callable[[Saver], None]
    fails: Callable[[int], bool]
    on_conflict: str = ON_CONFLICT
    settings: dict[str, str] = field(default_factory=dict)
    # SQL that takes the protection away.
    without: str = ""


# Buffers that do not fill within a second's saves.
LAZY = {"synchronous_commit": "off", "wal_buffers": "64MB"}


def _without(guard: str, text: str = ON_CONFLICT) -> str:
    assert guard in text, "The guard that this control cuts out is not there"  # noqa: S101
    return text.replace(guard, "")


def controls() -> list[Control]:
    some = (0).__lt__
    return [
        Control(
            "commits not flushed, cluster killed",
            "lost",
            save_until_killed,
            some,
            settings=LAZY,
        ),
        Control(
            "unique key dropped, sent at once",
            "duplicated",
            save_each_at_once,
            some,
            on_conflict="RETURNING saved_at",
            without=f"ALTER TABLE survey_response DROP CONSTRAINT {KEY}",
        ),
        Control(
            "revision guard off, reordered",
            "regressions",
            save_out_of_order,
            some,
            on_conflict=_without(GUARD),
        ),
        Control("one row deleted", "lost", save_then_lose_a_row, (1).__eq__),
    ]


def twin_of(control: Control) -> Control:
    """The same with every protection in place: has to be clean."""
    run = save_in_order if control.run is save_then_lose_a_row else control.run
    return Control(control.name, control.count, run, (0).__eq__)


@dataclass(frozen=True)
class Controlled:
    name: str
    count: str
    found: int
    twin: int
    acknowledged: int
    seconds: float
    as_required: bool


def run_controls(seed: int, chosen: Sequence[Control]) -> Iterator[Controlled]:
    with private_cluster() as cluster:
        cluster.start()
        _make_tables(cluster)
        for control in chosen:
            began = time.monotonic()
            without = _run(cluster, control, seed)
            twin = _run(cluster, twin_of(control), seed)
            found = without.count(control.count)
            yield Controlled(
                name=control.name,
                count=control.count,
                found=found,
                twin=sum(one.count != "recovered" for one in twin.findings),
                acknowledged=without.acknowledged,
                seconds=time.monotonic() - began,
                as_required=control.fails(found) and twin.holds(),
            )


def _run(cluster: Cluster, control: Control, seed: int) -> Verdict:
    cluster.stop()
    cluster.start(control.settings)
    cluster.execute(
        "TRUNCATE survey_response",
        # The other controls want it back.
        f"ALTER TABLE survey_response DROP CONSTRAINT IF EXISTS {KEY}",
        f"ALTER TABLE survey_response ADD CONSTRAINT {KEY}"
        " PRIMARY KEY (administration_id, respondent_id, item_id)",
        *([control.without] if control.without else []),
        # Else the next crash would take these along as well.
        "CHECKPOINT",
    )
    saver = Saver(cluster, seed, control.on_conflict)
    control.run(saver)
    return saver.verdict()


def _make_tables(cluster: Cluster) -> None:
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
    output_of(
        [PYTHON, ROOT / "manage.py", "migrate", "--verbosity=0"],
        failing="The checker's tables can't be made",
        env=environment,
    )
    cluster.execute(
        PEOPLE, values={"administration": ADMINISTRATION, "people": RESPONDENTS}
    )


# Rows of other tables are not what is tested: no foreign key is asked for.
PEOPLE = """
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
