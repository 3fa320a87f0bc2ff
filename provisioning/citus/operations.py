"""Do on a cluster what the product does, and say what works."""

from __future__ import annotations

from collections.abc import Callable, Iterator
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

PROLOGUE = """
import django
django.setup()
from survey.models import Administration, Respondent
measured = Administration.objects.get(name="measured")
people = Respondent.objects.filter(administration=measured)
"""
# What no management command does, and whether a cluster has to do it.
IN_DJANGO = {
    "export answers": (
        """
from reports.management.commands.measure_exports import time_export
export, _ = time_export(measured, "wide")
assert export.responses > 0, "no answers in the export"
""",
        True,
    ),
    "issue a person's code anew": (
        """
from survey.access_codes import reissue
from survey.taking.login import log_in_respondent
person = people.first()
assert log_in_respondent(reissue(respondent=person)).respondent_id == person.pk
""",
        True,
    ),
    "issue all codes of a school anew": (
        """
from survey.access_codes import reissue_all
assert reissue_all(people) > 0
""",
        False,
    ),
}


class Operation(NamedTuple):
    name: str
    # Empty where it works.
    problem: str
    is_required: bool


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
    roster = ("open_rehearsal", "--name=on-cluster", "--pages=2", "--items=5")
    commands = {
        "open an administration, upload its roster": (*roster, "--respondents=60"),
        "upload the roster again": (*roster, "--respondents=90"),
        "roll up response rates": ("roll_up_rates", "--all"),
        "roll up answers": ("roll_up_results", "measured"),
        "count rows without a respondent": ("check_references",),
    }
    for name, command in commands.items():
        yield attempt(name, partial(application.manage, *command))
    for name, (statements, is_required) in IN_DJANGO.items():
        run = partial(application.run_python, "-c", PROLOGUE + statements, failing=name)
        yield attempt(name, run, is_required=is_required)


def attempt(
    name: str, act: Callable[[], object], *, is_required: bool = True
) -> Operation:
    try:
        act()
    except Refusal as refusal:
        return Operation(name, str(refusal)[:160], is_required)
    return Operation(name, "", is_required)
