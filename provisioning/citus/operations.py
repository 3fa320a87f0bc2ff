"""Do on a cluster what the product does, and say what works."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

from provisioning.benchmarks.stack import Application
from provisioning.benchmarks.timed_requests import send_requests
from provisioning.commands import Refusal
from provisioning.load.crowd import Person
from provisioning.load.respondent import (
    RehearsalSurvey,
    Respondent,
    login_requests,
    save_requests,
)
from provisioning.load.target import Target


class Operation(NamedTuple):
    name: str
    # Empty where it works.
    problem: str


def respondent_operations(
    rehearsal: dict[str, Any], code: str, target: Target
) -> Iterator[Operation]:
    """Let one person log in, save, resume and finish."""
    survey = RehearsalSurvey.of(rehearsal)
    person = Respondent(code, survey, target)

    def resume() -> Person:
        yield person.display()

    def finish() -> Person:
        yield person.review()
        yield person.finish()
        yield person.thanks()

    pages = range(1, len(survey.pages) + 1)
    # Generators: each begins with what the one before has received.
    steps = {
        "log in": login_requests(person),
        "save all pages": save_requests(person, pages),
        "resume": resume(),
        "finish": finish(),
    }
    for name, requests in steps.items():
        yield attempt(name, partial(send_requests, target, [requests]))


def staff_operations(application: Application) -> Iterator[Operation]:
    """Open an administration, upload its roster, roll up and export."""
    small = ("--respondents=60", "--pages=2", "--items=5", "--json")
    roster = ("open_rehearsal", "--name=on-cluster", *small)
    export = ("measure_exports", "--name=export", "--respondents=60", "--items=10")
    commands: Sequence[tuple[str, Sequence[str]]] = [
        ("open an administration, upload its roster", roster),
        (
            "upload the roster again",
            ("open_rehearsal", *roster[1:2], "--respondents=90", *small[1:]),
        ),
        ("roll up response rates", ("roll_up_rates", "--all", "--json")),
        ("roll up answers", ("roll_up_results", "on-cluster")),
        ("export answers", (*export, "--rounds=1", "--json")),
        ("count rows without a respondent", ("check_references",)),
    ]
    for name, command in commands:
        yield attempt(name, partial(application.manage, *command))


def attempt(name: str, act: Callable[[], object]) -> Operation:
    try:
        act()
    except Refusal as refusal:
        return Operation(name, str(refusal)[:200])
    return Operation(name, "")
