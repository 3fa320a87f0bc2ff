"""Do on a cluster what the product does, each as the database role of its process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from provisioning.commands import Refusal
from provisioning.measure.benchmarks.stack import Application
from provisioning.measure.benchmarks.timed_requests import send_requests
from provisioning.measure.load.respondent import (
    RehearsalSurvey,
    Respondent,
    login_requests,
    save_requests,
)
from provisioning.measure.load.target import Target

# What no management command does, with the role of the process that does it.
IN_DJANGO = {
    "add a person by hand": ("console", "add_person"),
    "run all periodic tasks, and jobs that wait": ("worker", "run_tasks"),
    "open all pages of the console": ("console", "open_pages"),
    "export answers": ("worker", "export"),
    "issue a person's code anew": ("console", "reissue_code"),
    "issue all codes of a school anew": ("console", "reissue_codes"),
    "lock people of all shards, to undo a roster": ("worker", "lock_people"),
    "start with an open code of one seat, and return it": ("groundswell", "use_seat"),
}


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

    # Generators: each begins with what the one before has received.
    steps = {
        "log in": login_requests(person),
        "save all pages": save_requests(person, range(1, len(survey.pages) + 1)),
        "resume": (build() for build in (person.display,)),
        "finish": (build() for build in (person.review, person.finish, person.thanks)),
    }
    for name, requests in steps.items():
        yield attempt(name, partial(send_requests, target, [requests]))


def as_process(application: Application, role: str) -> Application:
    """Return the application with the database role of one of the stack's processes."""
    variables = {"GROUNDSWELL_DATABASE_USER": role}
    if role == "worker":
        variables["GROUNDSWELL_REPORTS_USER"] = "reports"
    return replace(application, environment={**application.environment, **variables})


def staff_operations(application: Application) -> Iterator[Operation]:
    """Upload rosters, use the console, run tasks, roll up and export."""
    roster = ("open_rehearsal", "--name=on-cluster", "--pages=2", "--items=5")
    # By hand, as the owner: the first two and the last.
    commands = {
        "open an administration, upload its roster": (*roster, "--respondents=60"),
        "upload the roster again": (*roster, "--respondents=90"),
        "roll up response rates": ("roll_up_rates", "--all"),
        "roll up answers": ("roll_up_results", "measured"),
        "count rows without a respondent": ("check_references",),
    }
    worker = as_process(application, "worker")
    for name, command in commands.items():
        by = worker if command[0].startswith("roll_up") else application
        yield attempt(name, partial(by.manage, *command))
    for name, (role, function) in IN_DJANGO.items():
        process = as_process(application, role)
        yield attempt(name, partial(process.call, f"prove.citus.in_django.{function}"))


def attempt(name: str, act: Callable[[], object]) -> Operation:
    try:
        act()
    except Refusal as refusal:
        return Operation(name, str(refusal)[:160])
    return Operation(name, "")
