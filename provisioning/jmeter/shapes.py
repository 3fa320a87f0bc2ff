"""Compute the people, and their arrivals, for a rate of requests a second."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from provisioning.commands import Refusal
from provisioning.load.respondent import VIEWS

# Shares in the plan, in percent of page saves or pages.
DOUBLE_CLICKS = 1
CHANGES = 5
RELOADS = 1
# Login page and code, shell, outline; review, finish, thanks.
OUTSIDE_PAGES = 7
CLASS = 30
# Relative to the mean stay: the longest one, and a warm-up that is enough.
SLOWEST = 1.6
SETTLED = 1.25
# Seconds that a person waits for slow replies, all requests together.
SERVED = 3


@dataclass(frozen=True, slots=True)
class Shape:
    """What people do in a rehearsal, and how much of it unless an option says more."""

    views: tuple[str, ...] = VIEWS
    # Seconds on a page, and in which all people arrive.
    think: float = 3.0
    within: float = 20.0
    # Of a made-up survey.
    pages: int = 10
    items: int = 5
    is_multilingual: bool = False
    # Characters a second that a connection carries; 0: all that it can.
    bandwidth: int = 0


SHAPES = {
    "day": Shape(),
    "bell": Shape(),
    # A weak mobile connection, 256 kbit/s.
    "heavy": Shape(
        think=20.0, pages=20, items=50, is_multilingual=True, bandwidth=32_000
    ),
}


@dataclass(frozen=True, slots=True)
class Load:
    """People and their arrivals; times are in seconds from the start."""

    shape: str
    # Requests a second that were asked for.
    rate: float
    # In all, and at any moment.
    people: int
    users: int
    # People a second.
    arrivals: float
    ramp: float
    plateau: float
    last: float
    think: float
    # A person's stay, and the requests in it.
    stay: float
    requests: float
    # The rate is counted in between, over `duration`.
    begins: float
    ends: float
    duration: float

    @property
    def seconds(self) -> float:
        return 2 * self.ramp + self.plateau + self.last

    def drawn(self, arrived: Iterable[float]) -> float:
        """Return the requests a second of people with these arrival times.

        Arrivals are random, so that it is not exactly the rate asked for. A
        person's requests are spread evenly over the stay.
        """
        busy = sum(
            max(0.0, min(self.ends, moment + self.stay) - max(self.begins, moment))
            for moment in arrived
        )
        return busy / self.stay * self.requests / self.duration

    def properties(self, *, servers: int = 1) -> dict[str, str]:
        """Return the plan's properties; each of several load servers sends its part."""
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


def load_of(options: argparse.Namespace, pages: float) -> Load:
    requests = requests_per_person(pages)
    rate: float = options.rate
    duration: float = options.duration
    if options.shape == "bell":
        # Everybody arrives within seconds, and is busy for `duration`.
        people = users = round(rate * duration / requests)
        plateau = options.within or SHAPES["bell"].within
        arrivals, ramp = people / plateau, 0.0
        stay, think = duration, max(0, duration - SERVED) / pages
        begins, ends, last = 0.0, plateau + duration, SLOWEST * duration + SERVED
    else:
        # People keep arriving; while the rate is counted, as many leave.
        think = options.think or SHAPES[options.shape].think
        stay = pages * think
        slow_stay = stay + SERVED
        arrivals, ramp = rate / requests, options.ramp
        begins, last = ramp + SETTLED * slow_stay, SLOWEST * slow_stay
        ends = begins + duration
        plateau = ends - ramp
        people = round(arrivals * (plateau + ramp))
        users = round(arrivals * slow_stay)
    return Load(
        shape=options.shape,
        rate=rate,
        people=people,
        users=users,
        arrivals=arrivals,
        ramp=ramp,
        plateau=plateau,
        last=last,
        think=think,
        stay=stay,
        requests=requests,
        begins=begins,
        ends=ends,
        duration=duration,
    )


def mean_pages(path: Path) -> float:
    """Return how many pages a person in jmeter_data's file answers, on average."""
    text = path.read_text(encoding="ascii")
    taken = [int(found) for found in re.findall(r"(?m)^take\.\d+\.pages=(\d+)$", text)]
    if not sum(taken):
        raise Refusal("The file given with --pages has no page to take")
    return sum(taken) / len(taken)
