"""Serve the OneRoster ZIPs of synthetic districts, each as slowly as a real server."""

from __future__ import annotations

import io
import math
import random
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from survey.simulation.oneroster_server import District, Faults

# Log-normal: most servers answer at once, and a few are slow.
LATENCY_S, LATENCY_SIGMA, MOST_LATENCY_S = 0.3, 0.8, 5.0
BYTES_PER_S, BYTES_SIGMA, FEWEST_BYTES_PER_S = 1_500_000, 0.7, 200_000
DISTRIBUTION = (
    f"log-normal latency (median {LATENCY_S} s, sigma {LATENCY_SIGMA}, at most"
    f" {MOST_LATENCY_S:.0f} s) and bandwidth (median {BYTES_PER_S / 1e6} MB/s, sigma"
    f" {BYTES_SIGMA}, at least {FEWEST_BYTES_PER_S / 1e6} MB/s)"
)
BAD_SHARE = 0.05
# Longer than any download may last.
FOREVER = 24 * 60 * 60.0


class BadServers(NamedTuple):
    """Numbers of the districts whose servers hang, and of those with broken files."""

    hanging: frozenset[int]
    broken: frozenset[int]

    @property
    def all(self) -> frozenset[int]:
        return self.hanging | self.broken


class DistrictServers:
    """The servers of districts 1 to `count`, and what each of them offers."""

    def __init__(self, folder: Path, count: int, seed: int = 1) -> None:
        self._folder = folder
        chance = random.Random(f"servers {seed}")  # noqa: S311
        self.numbers = range(1, count + 1)
        self._usual = {number: draw_speed(chance) for number in self.numbers}
        self.districts = {
            f"{number}": District(faults=self._usual[number]) for number in self.numbers
        }
        # The file of each district that is healthy, and so has to be applied.
        self.offered: dict[int, Path] = {}

    def path(self, number: int, night: int) -> Path:
        return self._folder / f"night-{night}" / f"district-{number:05}.zip"

    def offer(self, night: int, numbers: Sequence[int] | None = None) -> None:
        """Offer the files of a night in these districts, or in all."""
        for number in self.numbers if numbers is None else numbers:
            path = self.path(number, night)
            self.offered[number] = path
            self.districts[f"{number}"].archive = path.read_bytes()

    def break_some(self, seed: int = 1) -> BadServers:
        """Let some servers hang, and as many others send broken files."""
        count = max(1, round(BAD_SHARE * len(self.numbers)))
        chance = random.Random(f"bad {seed}")  # noqa: S311
        chosen = chance.sample(self.numbers, 2 * count)
        for number in chosen[:count]:
            self.districts[f"{number}"].faults = Faults(latency=FOREVER)
        for n, number in enumerate(chosen[count:]):
            district = self.districts[f"{number}"]
            district.archive = BREAKAGES[n % len(BREAKAGES)](district.archive)
        return BadServers(frozenset(chosen[:count]), frozenset(chosen[count:]))

    def smallest(self, count: int) -> list[int]:
        """Return the numbers of the districts with the smallest files."""
        sizes = {
            number: len(self.districts[f"{number}"].archive) for number in self.numbers
        }
        return sorted(sizes, key=sizes.__getitem__)[:count]

    def make_fast(self) -> None:
        """Answer at once, without a limit of bandwidth."""
        for district in self.districts.values():
            district.faults = Faults()

    def make_usual(self) -> None:
        for number in self.numbers:
            self.districts[f"{number}"].faults = self._usual[number]


def draw_speed(chance: random.Random) -> Faults:
    latency = LATENCY_S * math.exp(chance.gauss(0, LATENCY_SIGMA))
    speed = BYTES_PER_S * math.exp(chance.gauss(0, BYTES_SIGMA))
    return Faults(
        latency=min(latency, MOST_LATENCY_S),
        bytes_per_second=max(speed, FEWEST_BYTES_PER_S),
    )


def cut_in_half(archive: bytes) -> bytes:
    return archive[: len(archive) // 2]


def login_page(_: bytes) -> bytes:
    return b"<!doctype html><title>Log in</title><p>Your password has expired."


def without_users(archive: bytes) -> bytes:
    """Leave out the file of users, which the manifest still announces."""
    result = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(archive)) as old,
        zipfile.ZipFile(result, "w", zipfile.ZIP_DEFLATED) as new,
    ):
        for name in old.namelist():
            if name != "users.csv":
                new.writestr(name, old.read(name))
    return result.getvalue()


BREAKAGES = (cut_in_half, login_page, without_users)
