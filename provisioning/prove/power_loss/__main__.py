"""Run `provisioning/run power_loss` in its environment."""

from __future__ import annotations

import itertools
import mmap
import shutil
import signal
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

import psycopg2
from django.db import connection

from provisioning.commands import (
    Refusal,
    conclude,
    output_of,
    print_table,
    scratch_folder,
    seed_of,
    step,
)
from provisioning.installation.postgresql import (
    DATABASE,
    postgresql_programs,
    running_server,
)
from provisioning.measure.load.respondent import UNKNOWN
from provisioning.prove.fault_injection.controls import (
    CLIENTS,
    ControlledSaver,
    servers_with_people,
)
from provisioning.prove.fault_injection.saver import ADMINISTRATION, PAGES
from provisioning.prove.fault_injection.saves import AnswerSource, Attempt
from provisioning.prove.fault_injection.verdict import (
    Judge,
    StoredAnswer,
    Verdict,
    read_back,
)
from provisioning.prove.power_loss.images import (
    Image,
    build_images,
    draw_losses,
    read_records,
)
from provisioning.prove.power_loss.recorded_disk import recorded_disk
from provisioning.prove.power_loss.start import arguments

USER = "postgres"


@dataclass(frozen=True)
class ImageResult:
    image: Image
    verdict: Verdict
    # Why no server starts, or what is damaged; empty if nothing is.
    damage: str

    @property
    def is_right(self) -> bool:
        return not self.damage and not self.verdict.forbidden()


def attempts_until(attempts: Iterable[Attempt], instant: float) -> Iterator[Attempt]:
    """Yield what was sent before an instant; an answer after it did not arrive."""
    for attempt in attempts:
        if attempt.answered < instant:
            yield attempt
        elif attempt.sent < instant:
            yield replace(attempt, outcome=UNKNOWN, reply="cut", receipt=0, at="")


def judge_image(
    image: Image, source: AnswerSource, attempts: Iterable[Attempt], folder: Path
) -> ImageResult:
    """Start a server on an image, and read all answers and all pages of tables."""
    # Without a server, everything is lost.
    stored: list[StoredAnswer] = []
    try:
        with _server_on(image.path, folder) as address:
            with closing(psycopg2.connect(address)) as connection:
                stored, _ = read_back(connection, ADMINISTRATION)
            damage = _damage(folder)
    except (Refusal, psycopg2.Error) as error:
        damage = str(error).strip()
    known = attempts_until(attempts, image.instant)
    return ImageResult(image, Judge(source, known, stored).verdict(), damage)


@contextmanager
def _server_on(image: Path, folder: Path) -> Iterator[str]:
    """Mount an image, start its server, and yield how to connect to it."""
    mounted_at = folder / "mounted"
    mounted_at.mkdir(exist_ok=True)
    # The file system repairs itself from its journal.
    output_of(["mount", "-o", "loop", image, mounted_at], failing="No file system")
    # Of the server that is gone.
    (mounted_at / "postmaster.pid").unlink(missing_ok=True)
    try:
        with running_server(
            mounted_at,
            "--logging_collector=off",
            f"--unix_socket_directories={folder}",
            # Nothing of it has to survive, and recovery flushes every file.
            "--fsync=off",
            run=folder,
            log=folder / "server.log",
            user=USER,
            # Without a last checkpoint: nothing of it is kept.
            end_by=signal.SIGQUIT,
        ):
            yield f"host={folder} user={USER} dbname={DATABASE}"
    finally:
        output_of(["umount", mounted_at], failing="The image stays mounted")


def _damage(folder: Path) -> str:
    """Check tables and indexes, page by page, with PostgreSQL's own program."""
    command = [str(postgresql_programs() / "pg_amcheck"), "--install-missing"]
    command += ["--heapallindexed", f"--host={folder}", f"--username={USER}", DATABASE]
    try:
        output_of(command, failing="pg_amcheck")
    except Refusal as refusal:
        return str(refusal)
    return ""


# Few, so that each of their pages is written again and again.
RESPONDENTS = 1000
# Seconds between checkpoints, in which PostgreSQL writes the pages of tables
# that a power failure may tear.
CHECKPOINT_PAUSE = 0.3
# Small, for the sake of the disk's record.
LOG_SIZES = {"min_wal_size": "64MB", "max_wal_size": "256MB"}
PROTECTED = "as in production"
SETTINGS: Mapping[str, Mapping[str, str]] = {
    PROTECTED: {},
    "fsync=off": {"fsync": "off"},
    "full_page_writes=off": {"full_page_writes": "off"},
    "synchronous_commit=off": {"synchronous_commit": "off"},
}


def main() -> int:
    options = arguments()
    seed = seed_of(options)
    results = {}
    with (
        scratch_folder(Path(tempfile.gettempdir())) as folder,
        servers_with_people(RESPONDENTS) as stack,
    ):
        # PostgreSQL's user makes its socket there, and reads what is mounted.
        shutil.chown(folder, USER)
        original = stack.folder / "data" / "original"
        for program in ("replica", "pgbouncer", "redis", "memcached", "primary"):
            stack.stop(program)
        (stack.folder / "data" / "primary").rename(original)
        for name, settings in SETTINGS.items():
            share = 1 if name == PROTECTED else 2
            attempts: list[Attempt] = []
            source = AnswerSource(seed, PAGES)
            saver = ControlledSaver(source, attempts.append, stack, attempts)
            with step(f"Recording saves, {name}"):
                log, period = _record(
                    saver, original, folder / "disk", settings, options.seconds / share
                )
            count = options.images if share == 1 else max(20, options.images // 3)
            random = Random(f"{seed} {name}")  # noqa: S311
            with step(f"Starting servers on {count} images"):
                judged = _judge(saver, log, period, folder, random, count)
                results[name] = list(judged)
            shutil.rmtree(folder / "disk")
    return _report(seed, results)


def _record(
    saver: ControlledSaver,
    original: Path,
    folder: Path,
    settings: Mapping[str, str],
    seconds: float,
) -> tuple[Path, tuple[float, float]]:
    """Save on a recorded disk; return the record, and when the saving was."""
    stack = saver.stack
    data = original.with_name("primary")
    data.mkdir()
    with recorded_disk(folder, data) as log:
        copy: list[str | Path] = ["cp", "--archive", f"{original}/.", data]
        output_of(copy, failing="The data folder is not copied")
        with (data / "postgresql.auto.conf").open("a") as file:
            for name, value in {**LOG_SIZES, **settings}.items():
                file.write(f"{name} = '{value}'\n")
        # A server's data folder is older than its last seconds.
        sync = ["sync", "--file-system", str(data)]
        output_of(sync, failing="The disk does not sync")
        stack.start("primary")
        stack.wait_for_database()
        begin = time.time()
        try:
            _save_for(seconds, saver)
        finally:
            end = time.time()
            stack.stop("primary")
    data.rmdir()
    return log, (begin, end)


def _save_for(seconds: float, saver: ControlledSaver) -> None:
    """Save all pages again and again, with frequent checkpoints."""
    is_over = threading.Event()

    def checkpoint() -> None:
        while not is_over.wait(CHECKPOINT_PAUSE):
            saver.stack.query("CHECKPOINT")

    def save(client: int) -> None:
        people = range(client + 1, RESPONDENTS + 1, CLIENTS)
        random = Random(saver.source.seed + client)  # noqa: S311
        for revision in itertools.count(1):
            for respondent in random.sample(people, len(people)):
                for page in PAGES:
                    if is_over.is_set():
                        return
                    saver.save(respondent, page, revision)

    timer = threading.Timer(seconds, is_over.set)
    checkpoints = threading.Thread(target=checkpoint)
    with closing(connection):
        timer.start()
        checkpoints.start()
        try:
            saver.in_parallel(save)
        finally:
            is_over.set()
            timer.cancel()
            checkpoints.join()


def _judge(
    saver: ControlledSaver,
    log: Path,
    period: tuple[float, float],
    folder: Path,
    random: Random,
    count: int,
) -> Iterator[ImageResult]:
    with (
        log.open("rb") as file,
        closing(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)) as content,
    ):
        records = read_records(content)
        losses = draw_losses(random, records, *period, count)
        for image in build_images(content, records, losses, folder, random):
            yield judge_image(image, saver.source, saver.attempts, folder)


def _report(seed: int, results: Mapping[str, list[ImageResult]]) -> int:
    figures = {name: _figures(images) for name, images in results.items()}
    columns = ("images", "wrong_images", "damaged", "lost", "unflushed", "dropped")
    print_table(
        ("", *(column.replace("_", " ") for column in columns)),
        [
            [name, *(images[each] for each in columns)]
            for name, images in figures.items()
        ],
    )
    for result in results[PROTECTED]:
        if not result.is_right:
            print(f"  {result.image}: {result.damage} {result.verdict.counts()}")
    protected = figures.pop(PROTECTED)
    missed = [f"{protected['wrong_images']} images are wrong"]
    missed = missed if protected["wrong_images"] else []
    missed += [
        f"nothing is lost with {name}"
        for name, control in figures.items()
        if not control["wrong_images"]
    ]
    described = {
        "seed": seed,
        **protected,
        "control_lost": {name: each["wrong_images"] for name, each in figures.items()},
        "controls": figures,
    }
    return conclude(described, missed)


def _figures(results: Sequence[ImageResult]) -> dict[str, Any]:
    counts: Counter[str] = Counter()
    for result in results:
        counts.update(result.verdict.counts())
    damages = [result.damage for result in results if result.damage]
    return {
        "images": len(results),
        # In which anything is missing, wrong or damaged.
        "wrong_images": sum(not result.is_right for result in results),
        "damaged": len(damages),
        "first_damage": damages[0] if damages else "",
        # Until the last instant.
        "acknowledged": max(result.verdict.acknowledged for result in results),
        "unflushed": sum(result.image.unflushed for result in results),
        "dropped": sum(result.image.dropped for result in results),
        **counts,
    }
