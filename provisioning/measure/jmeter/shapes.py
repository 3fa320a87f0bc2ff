"""Compute the people, and their arrivals, for a rate of requests a second."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from provisioning.commands import Refusal
from provisioning.measure.load.respondent import BEGIN, START, VIEWS

# Shares in the plan, in percent of page saves or pages.
DOUBLE_CLICKS = 1
CHANGES = 5
RELOADS = 1
# Login page and code, shell, outline; review, finish, thanks.
OUTSIDE_PAGES = 7
# With an open code: its page; the offer, Begin, the personal code, then shell,
# outline, review, finish and thanks of each child; the offer and Decline.
OPEN_PAGE, OUTSIDE_OPEN, DECLINING = 1, 8, 2
# By name and by place.
FINDING = 2
MESSAGE, FINDER = "message_person", "school_finder"
OPEN_VIEWS = (START, BEGIN, "open_begun", "open_decline", *VIEWS[1:])
# Parts of a spike in which arrivals rise, stay and fall.
SPIKE = (0.1, 0.3, 0.6)
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
    # Everybody arrives soon after a message; the rate is that of the peak.
    is_spike: bool = False
    # With one open code instead of a card.
    is_open: bool = False
    # A message platform asks about everybody, and people look for their school.
    is_reminded: bool = False


SHAPES = {
    "day": Shape(),
    "bell": Shape(),
    # A weak mobile connection, 256 kbit/s.
    "heavy": Shape(
        think=20.0, pages=20, items=50, is_multilingual=True, bandwidth=32_000
    ),
    "one-code": Shape(views=OPEN_VIEWS, within=600.0, is_spike=True, is_open=True),
    "reminder": Shape(
        views=(MESSAGE, FINDER, *VIEWS), within=600.0, is_spike=True, is_reminded=True
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
    fall: float
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
        return self.ramp + self.plateau + self.fall + self.last

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
            "fall": f"{self.fall:.1f}",
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
        if SHAPES[self.shape].is_spike:
            return (
                f"{self.people:,} people within {self.ends - self.last:.0f} s, at most"
                f" {self.arrivals:.1f} a second"
            )
        return (
            f"{self.arrivals:.1f} people a second, {self.people:,} in all,"
            f" about {self.users:,} at a time"
        )


def requests_per_person(pages: float, outside: float = OUTSIDE_PAGES) -> float:
    shares = DOUBLE_CLICKS + CHANGES + RELOADS
    return outside + pages * (2 + shares / 100)


def load_of(
    options: argparse.Namespace, pages: float, outside: float = OUTSIDE_PAGES
) -> Load:
    if SHAPES[options.shape].is_reminded:
        outside += FINDING
    requests = requests_per_person(pages, outside)
    rate: float = options.rate
    duration: float = options.duration
    if options.shape == "bell":
        # Everybody arrives within seconds, and is busy for `duration`.
        people = users = round(rate * duration / requests)
        plateau = options.within or SHAPES["bell"].within
        arrivals, ramp, fall = people / plateau, 0.0, 0.0
        stay, think = duration, max(0, duration - SERVED) / pages
        begins, ends, last = 0.0, plateau + duration, SLOWEST * duration + SERVED
    else:
        think = options.think or SHAPES[options.shape].think
        stay = pages * think
        slow_stay = stay + SERVED
        arrivals, last = rate / requests, SLOWEST * slow_stay
        users = round(arrivals * slow_stay)
    if SHAPES[options.shape].is_spike:
        # The rate is that of the peak; all requests count.
        within = options.within or SHAPES[options.shape].within
        ramp, plateau, fall = (within * part for part in SPIKE)
        people = round(arrivals * (ramp / 2 + plateau + fall / 2))
        # Some answer for two children.
        last *= 2
        begins, ends = 0.0, within + last
        duration = ends
    elif options.shape != "bell":
        # People keep arriving; while the rate is counted, as many leave.
        ramp = fall = options.ramp
        begins = ramp + SETTLED * slow_stay
        ends = begins + duration
        plateau = ends - ramp
        people = round(arrivals * (plateau + ramp))
    return Load(
        shape=options.shape,
        rate=rate,
        people=people,
        users=users,
        arrivals=arrivals,
        ramp=ramp,
        plateau=plateau,
        fall=fall,
        last=last,
        think=think,
        stay=stay,
        requests=requests,
        begins=begins,
        ends=ends,
        duration=duration,
    )


def mean_visit(path: Path) -> tuple[float, float]:
    """Return the pages that a person answers, and the requests around them."""
    text = path.read_text(encoding="ascii")

    def values(name: str) -> dict[str, str]:
        return dict(re.findall(rf"(?m)^take\.(\d+)\.{name}=(.+)$", text))

    children, choices = values("children"), values("choice")
    pages, outside = [], []
    for take, number in values("pages").items():
        times = int(children.get(take, 1))
        if choices.get(take) == "decline":
            pages.append(0)
            outside.append(OPEN_PAGE + DECLINING)
        else:
            pages.append(times * int(number))
            is_open = take in choices
            around = OPEN_PAGE + times * OUTSIDE_OPEN if is_open else OUTSIDE_PAGES
            outside.append(around)
    if not sum(pages):
        raise Refusal("The file given with --pages has no page to take")
    return sum(pages) / len(pages), sum(outside) / len(outside)
