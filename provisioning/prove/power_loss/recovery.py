"""Start PostgreSQL on an image, and compare its answers with the log of the saves."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import psycopg2

from provisioning.commands import Refusal, output_of, reason
from provisioning.install.postgresql import (
    DATABASE,
    postgresql_programs,
    running_server,
)
from provisioning.measure.load.respondent import UNKNOWN
from provisioning.prove.fault_injection.answers import AnswerSource
from provisioning.prove.fault_injection.attempts import Attempt
from provisioning.prove.fault_injection.saver import ADMINISTRATION
from provisioning.prove.fault_injection.verdict import (
    Judge,
    StoredAnswer,
    Verdict,
    read_back,
)
from provisioning.prove.power_loss.images import Image

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
    done = subprocess.run(
        [str(postgresql_programs() / "pg_amcheck"), "--install-missing"]
        + ["--heapallindexed", f"--host={folder}", f"--username={USER}", DATABASE],
        capture_output=True,
        text=True,
        errors="replace",
    )
    return reason(done.stdout or done.stderr) if done.returncode else ""
