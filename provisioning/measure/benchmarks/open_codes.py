"""Compare starts by open codes with logins by personal codes, in one run.

A start is the request that creates a respondent, a login the first one by a personal
code; the pages that a person opens before are fetched beforehand. The variants take
turns in short rounds, and ratios are those of the rounds: so everything else on this
machine slows all of them alike.
"""

from __future__ import annotations

import gc
import json
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import cycle, islice
from statistics import median
from typing import Any

from provisioning.commands import Refusal, missed
from provisioning.measure.benchmarks import growth
from provisioning.measure.benchmarks.phases import Size
from provisioning.measure.benchmarks.stack import Stack
from provisioning.measure.load.crowd import send
from provisioning.measure.load.driver import OUT_OF_PEOPLE
from provisioning.measure.load.engine import TIMEOUT
from provisioning.measure.load.respondent import (
    BEGIN,
    RehearsalSurvey,
    Request,
    Respondent,
)
from provisioning.measure.load.tally import percentile_of
from provisioning.measure.load.target import refuse_real_respondents

ROUNDS = 5
# People of a variant in one round, for each second of --seconds.
PEOPLE = 40
# Requests at a time: below nginx's bound for people who begin.
TOGETHER = 16
# Schools, each with a code of its own, where everybody has another one.
SCHOOLS = 50
WANTED_PER_S = 400.0
# Of the fastest starts, so much is offered where 400 a second would be more.
SHARE = 0.6
P95_LIMIT_MS = 50.0
MOST_STATEMENTS = 2
# Variant, compared with, at least. `starts` and `same_code` are the same: their
# ratio is what the machine's noise makes of nothing.
REQUIRED = (
    ("starts", "logins", 0.8),
    ("same_code", "different_codes", 0.95),
    ("limited", "starts", 0.5),
)
NOISE = ("same_code", "starts")
VARIANTS = {
    "logins": "first logins by personal codes",
    "starts": "starts by one unlimited code",
    "same_code": "the same, once more",
    "different_codes": f"starts by the codes of {SCHOOLS} schools",
    "limited": "starts by a limited code: seats, SKIP LOCKED",
}
SHOWN = (
    *(f"{name}_per_s" for name in VARIANTS),
    *("statements", "ratios", "offered_per_s", "scale", "p95_ms", "failed"),
)
STATEMENTS = """
SELECT coalesce(sum(s.calls), 0) FROM pg_stat_statements s
JOIN pg_roles r ON r.oid = s.userid AND r.rolname = 'taking'
"""


@dataclass(frozen=True, slots=True)
class Codes:
    """The survey behind the open codes, and codes by variant, used in turn."""

    stack: Stack
    survey: RehearsalSurvey
    by_variant: dict[str, Iterator[str]]

    def people(self, variant: str, count: int) -> list[Respondent]:
        """Return people who have opened all pages before the one that counts."""
        codes = islice(self.by_variant[variant], count)
        people = [Respondent(each, self.survey, self.stack.target) for each in codes]
        if len(people) < count:
            raise Refusal(OUT_OF_PEOPLE)
        _send(self.stack, [opening_requests(each, variant) for each in people])
        return people


def opening_requests(person: Respondent, variant: str) -> Iterator[Request]:
    if variant == "logins":
        yield person.login_page()
    else:
        yield person.start_page()
        yield person.offer()


def deciding_request(person: Respondent, variant: str) -> Iterator[Request]:
    yield person.login() if variant == "logins" else person.begin()


def measure(stack: Stack, size: Size) -> dict[str, Any]:
    """Return the figures, and in `missed` what is not as required."""
    refuse_real_respondents(
        lambda statement: json.loads(stack.sql(statement)[0][0]),
        consequence="this loads the stack as much as it can serve",
    )
    # As in a load process: a pause here would count as the server's.
    gc.freeze()
    gc.disable()
    count = max(TOGETHER, round(PEOPLE * size.seconds))
    with prepared_codes(stack, size, count * ROUNDS) as codes:
        rounds, statements = take_turns(codes, count)
        rates = {name: round(median(by_round), 1) for name, by_round in rounds.items()}
        offered = offer_starts(codes, size, min(WANTED_PER_S, SHARE * rates["starts"]))
    figures = {
        **{f"{name}_per_s": rate for name, rate in rates.items()},
        "ratios": {
            f"{variant}/{reference}": ratio_of(rounds, variant, reference)
            for variant, reference, *_ in (*REQUIRED, NOISE)
        },
        "statements": statements,
        **offered,
        "rounds": {name: [round(rate, 1) for rate in rounds[name]] for name in rounds},
    }
    return {**figures, "missed": shortcomings(figures)}


@contextmanager
def prepared_codes(stack: Stack, size: Size, people: int) -> Iterator[Codes]:
    """Create codes of two rehearsals; delete them and the people afterwards."""
    shape = f"{size.pages}x{size.items}"
    options = [f"--pages={size.pages}", f"--items={size.items}"]
    roster = [f"--name=rehearsal-bench-{shape}", *options, "--empty"]
    everyone = [f"--name=rehearsal-open-{shape}", *options]
    command = "open_code_rehearsal"
    with ExitStack() as cleaning:
        cleaning.callback(stack.open_rehearsal, *roster, "--respondents=1")
        _, personal = stack.open_rehearsal(*roster, f"--respondents={people}")
        cleaning.callback(
            stack.open_rehearsal, *everyone, "--unlimited=0", command=command
        )
        everyone += [f"--unlimited={1 + SCHOOLS}", f"--seats={people}"]
        details, codes = stack.open_rehearsal(*everyone, command=command)
        unlimited, *schools, limited = codes
        by_variant = {
            "logins": iter(personal),
            "starts": cycle([unlimited]),
            "same_code": cycle([unlimited]),
            "different_codes": cycle(schools),
            "limited": cycle([limited]),
        }
        growth.settle(stack, details["administration_id"])
        yield Codes(stack, RehearsalSurvey.of(details), by_variant)


def take_turns(
    codes: Codes, count: int
) -> tuple[dict[str, list[float]], dict[str, float]]:
    """Return the rates of each variant by round, and its statements per request."""
    rates: dict[str, list[float]] = {name: [] for name in VARIANTS}
    statements: Counter[str] = Counter()
    for number in range(ROUNDS):
        # There and back, so that none always follows the same one.
        for name in list(VARIANTS)[:: -1 if number % 2 else 1]:
            people = codes.people(name, count)
            before = _statements(codes.stack)
            requests = [deciding_request(each, name) for each in people]
            rates[name].append(_send(codes.stack, requests))
            statements[name] += _statements(codes.stack) - before
        figures = (f"{name} {measured[-1]:,.0f}" for name, measured in rates.items())
        print(f"  round {number + 1}, per second: {', '.join(figures)}", flush=True)
    return rates, {
        name: round(measured / count / ROUNDS, 2)
        for name, measured in statements.items()
    }


def offer_starts(codes: Codes, size: Size, rate: float) -> dict[str, float]:
    """Let people begin by one code at a rate, whatever the server does."""
    # Arrivals are random; so is their number.
    expected = rate * (size.warm + size.seconds)
    people = codes.people("starts", math.ceil(expected + 6 * expected**0.5))
    crowd = send(
        codes.stack.target,
        [deciding_request(each, "starts") for each in people],
        rate=rate,
        seconds=size.seconds,
        warm=size.warm,
    )
    if crowd.out_of_people:
        raise Refusal(OUT_OF_PEOPLE)
    tally = crowd.tally
    # One who is told to come again waits longer than anybody who is answered.
    latencies = tally.latencies.get(BEGIN, Counter()) + Counter(
        {TIMEOUT: tally.failed()}
    )
    return {
        "offered_per_s": round(rate, 1),
        "scale": round(rate / WANTED_PER_S, 2),
        "p95_ms": round(percentile_of(latencies, 95) * 1000, 2),
        "failed": tally.failed(),
    }


def ratio_of(rounds: dict[str, list[float]], variant: str, reference: str) -> float:
    pairs = zip(rounds[variant], rounds[reference], strict=True)
    return round(median(rate / divisor for rate, divisor in pairs), 3)


def shortcomings(figures: dict[str, Any]) -> list[str]:
    compared = {**figures["ratios"], "statements": figures["statements"]["starts"]}
    return missed(
        {**compared, "p95_ms": figures["p95_ms"]},
        least={
            f"{variant}/{reference}": least for variant, reference, least in REQUIRED
        },
        # A worker's other statements, such as one for a new survey, are a few of 1,000.
        most={"statements": MOST_STATEMENTS + 0.01, "p95_ms": P95_LIMIT_MS},
    )


def _send(stack: Stack, people: Sequence[Iterator[Request]]) -> float:
    """Send all requests of these people; return the number of people a second."""
    tally = send(stack.target, people, together=TOGETHER).tally
    tally.refuse_failures()
    return len(people) / tally.seconds


def _statements(stack: Stack) -> int:
    return int(stack.sql(STATEMENTS)[0][0])
