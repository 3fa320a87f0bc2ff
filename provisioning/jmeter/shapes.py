"""How many people must come, and when, for a rate of requests a second."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from provisioning.commands import Refusal

# Shares of the plan, in percent of page saves or pages.
DOUBLE_CLICKS = 1
CHANGES = 5
RELOADS = 1
# Login page and code, shell, outline; review, finish, thanks.
OUTSIDE_PAGES = 7
CLASS = 30
# A person's pauses vary, and so does the time until the survey is finished.
SLOWEST = 1.6
SETTLED = 1.25
# For what is not a pause: a person's requests, were they all rather slow.
SERVED = 3
DEFAULT_THINK = 3.0


@dataclass(frozen=True, slots=True)
class Load:
    """Times in seconds from the start; `arrivals` are people a second."""

    shape: str
    rate: float
    people: int
    users: int
    arrivals: float
    ramp: float
    plateau: float
    last: float
    think: float
    # A person's stay, and the requests of it.
    life: float
    requests: float
    # In between, the rate is what was asked for, counted over `duration`.
    begins: float
    ends: float
    duration: float

    @property
    def seconds(self) -> float:
        return 2 * self.ramp + self.plateau + self.last

    def drawn(self, arrived: Iterable[float]) -> float:
        """Requests a second that those who came bring, by when they came.

        Arrivals are drawn, so it is not exactly what was asked for. A person's
        requests lie evenly in the stay.
        """
        busy = sum(
            max(0.0, min(self.ends, came + self.life) - max(self.begins, came))
            for came in arrived
        )
        return busy / self.life * self.requests / self.duration

    def properties(self, *, servers: int = 1) -> dict[str, str]:
        """For the plan; each of several load servers brings its part."""
        return {
            "arrivals": f"{self.arrivals / servers:.4f}",
            "ramp": f"{self.ramp:.1f}",
            "plateau": f"{self.plateau:.1f}",
            "last": f"{self.last:.1f}",
            "think.least": f"{self.think * 500:.0f}",
            "think.range": f"{self.think * 1000:.0f}",
            "double_clicks": str(DOUBLE_CLICKS),
            "changes": str(CHANGES),
            "reloads": str(RELOADS),
        }

    def __str__(self) -> str:
        if self.shape == "bell":
            return (
                f"{self.people:,} people, {self.people / CLASS:.0f} classes of {CLASS},"
                f" within {self.plateau:.0f} s, each busy for about"
                f" {self.duration:.0f} s"
            )
        return (
            f"{self.arrivals:.1f} people a second, {self.people:,} in all,"
            f" about {self.users:,} at a time"
        )


def requests_per_person(pages: float) -> float:
    shares = DOUBLE_CLICKS + CHANGES + RELOADS
    return OUTSIDE_PAGES + pages * (2 + shares / 100)


def day(
    *, rate: float, duration: float, pages: float, think: float, ramp: float
) -> Load:
    """People keep coming: as many leave as come while the rate is measured."""
    arrivals = rate / requests_per_person(pages)
    life = pages * think + SERVED
    plateau = SETTLED * life + duration
    return Load(
        shape="day",
        rate=rate,
        people=round(arrivals * (plateau + ramp)),
        users=round(arrivals * life),
        arrivals=arrivals,
        ramp=ramp,
        plateau=plateau,
        last=SLOWEST * life,
        think=think,
        life=pages * think,
        requests=requests_per_person(pages),
        begins=ramp + SETTLED * life,
        ends=ramp + SETTLED * life + duration,
        duration=duration,
    )


def bell(*, rate: float, duration: float, pages: float, within: float) -> Load:
    """Everybody comes within seconds, and is busy for `duration`."""
    people = round(rate * duration / requests_per_person(pages))
    return Load(
        shape="bell",
        rate=rate,
        people=people,
        users=people,
        arrivals=people / within,
        ramp=0,
        plateau=within,
        last=SLOWEST * duration + SERVED,
        think=max(0, duration - SERVED) / pages,
        life=duration,
        requests=requests_per_person(pages),
        begins=0,
        ends=within + duration,
        duration=duration,
    )


def load_of(options: argparse.Namespace, pages: float) -> Load:
    if options.shape == "bell":
        return bell(
            rate=options.rate,
            duration=options.duration,
            pages=pages,
            within=options.within,
        )
    return day(
        rate=options.rate,
        duration=options.duration,
        pages=pages,
        think=options.think or DEFAULT_THINK,
        ramp=options.ramp,
    )


# What jmeter_data wrote


def read_properties(path: Path) -> dict[str, str]:
    """Names and values; the values as they are escaped."""
    lines = path.read_text(encoding="ascii").splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line)


def mean_pages(properties: Mapping[str, str]) -> float:
    """How many pages a take has, on average."""
    taken = [
        int(value)
        for name, value in properties.items()
        if re.fullmatch(r"take\.\d+\.pages", name)
    ]
    if not taken or not sum(taken):
        raise Refusal("The file given with --pages has no page to take")
    return sum(taken) / len(taken)
