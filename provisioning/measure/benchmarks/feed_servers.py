"""Serve the OneRoster ZIPs of synthetic districts, each as slowly as a real server."""

from __future__ import annotations

import io
import math
import random
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from survey.simulation.oneroster import SyntheticDistrict
from survey.simulation.oneroster_server import District, Faults

BAD_SHARE = 0.05
# Longer than any download may last.
FOREVER = 24 * 60 * 60.0


class Speeds(NamedTuple):
    """Log-normal: most servers are near the median, and a few are much slower."""

    latency_s: float
    most_latency_s: float
    bytes_per_s: float
    fewest_bytes_per_s: float

    def draw(self, chance: random.Random) -> Faults:
        latency = self.latency_s * math.exp(chance.gauss(0, 0.8))
        speed = self.bytes_per_s * math.exp(chance.gauss(0, 0.7))
        return Faults(
            latency=min(latency, self.most_latency_s),
            bytes_per_second=max(speed, self.fewest_bytes_per_s),
        )

    def __str__(self) -> str:
        return (
            f"log-normal latency (median {self.latency_s} s, sigma 0.8, at most"
            f" {self.most_latency_s:.0f} s) and bandwidth (median"
            f" {self.bytes_per_s / 1e6} MB/s, sigma 0.7, at least"
            f" {self.fewest_bytes_per_s / 1e6} MB/s)"
        )


USUAL = Speeds(0.3, 5.0, 1_500_000, 200_000)


class BadServers(NamedTuple):
    """Numbers of the districts whose servers hang, and of those with broken files."""

    hanging: frozenset[int]
    broken: frozenset[int]

    @property
    def all(self) -> frozenset[int]:
        return self.hanging | self.broken


class DistrictServers:
    """The servers of districts 1 to `count`, and what each of them offers."""

    def __init__(self, folder: Path, count: int) -> None:
        self._folder = folder
        self.numbers = range(1, count + 1)
        self.districts = {f"{number}": District() for number in self.numbers}
        self.set_speeds()
        # The file of each district that is healthy, and so has to be applied.
        self.offered: dict[int, Path] = {}

    def set_speeds(self) -> None:
        """Draw how fast each server is: always the same."""
        chance = random.Random("servers 1")  # noqa: S311
        for district in self.districts.values():
            district.faults = USUAL.draw(chance)

    def path(self, number: int, night: int) -> Path:
        return self._folder / f"night-{night}" / f"district-{number:05}.zip"

    def offer(self, night: int, numbers: Sequence[int] | None = None) -> None:
        """Offer the files of a night in these districts, or in all."""
        for number in self.numbers if numbers is None else numbers:
            path = self.path(number, night)
            self.offered[number] = path
            self.districts[f"{number}"].archive = path.read_bytes()

    def add_large(self, people: int) -> int:
        """Add a district with two nights and a fast server; return its number."""
        number = len(self.districts) + 1
        for night in range(2):
            district = SyntheticDistrict(number, people, night=night)
            district.write(self.path(number, night))
        self.districts[f"{number}"] = District()
        return number

    def break_some(self) -> BadServers:
        """Let some servers hang, and as many others send broken files."""
        count = max(1, round(BAD_SHARE * len(self.numbers)))
        chance = random.Random("bad 1")  # noqa: S311
        chosen = chance.sample(self.numbers, 2 * count)
        for number in chosen[:count]:
            self.districts[f"{number}"].faults = Faults(latency=FOREVER)
        for n, number in enumerate(chosen[count:]):
            district = self.districts[f"{number}"]
            district.archive = BREAKAGES[n % len(BREAKAGES)](district.archive)
        return BadServers(frozenset(chosen[:count]), frozenset(chosen[count:]))


def cut_in_half(archive: bytes) -> bytes:
    return archive[: len(archive) // 2]


def login_page(_: bytes) -> bytes:
    return b"<!doctype html><title>Log in</title><p>Your password has expired."


def without_users(archive: bytes) -> bytes:
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
