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
# What no management command does.
IN_DJANGO = {
    "export answers": """
from reports.management.commands.measure_exports import time_export
export, _ = time_export(measured, "wide")
assert export.responses > 0, "no answers in the export"
""",
    "issue a person's code anew": """
from survey.access_codes import reissue
from survey.taking.login import log_in_respondent
person = people.first()
assert log_in_respondent(reissue(respondent=person)).respondent_id == person.pk
""",
    "issue all codes of a school anew": """
from survey.access_codes import code_of, reissue_all
from survey.taking.login import log_in_respondent
assert reissue_all(people) == len(people)
for person in people.all():
    assert log_in_respondent(code_of(person)).respondent_id == person.pk
""",
    "lock people of all shards, to undo a roster": """
from django.db import transaction
from survey.rosters.undo import not_started
with transaction.atomic():
    not_started(people.values_list("pk", flat=True))
""",
    "start with an open code of one seat, and return it": """
from datetime import timedelta
from django.utils import timezone
from accounts.models import School
from survey.administrations import open_administration
from survey.models import Denominator, OpenCodeSeat, Role
from survey.open_codes.codes import code_of, create_open_code
from survey.open_codes.lookup import find_open_code
from survey.open_codes.seats import return_unused_seats
from survey.open_codes.starts import begin, new_form
from survey.taking.login import LoginRefused
now, device = timezone.now(), "d" * 32
opened = open_administration(
    name="parents", role=Role.PARENT, denominator=Denominator.COUNT,
    opens_at=now - timedelta(1), closes_at=now + timedelta(1),
    published=measured.published,
)
code = create_open_code(
    administration=opened, school=School.objects.first(), by="a drill", limit=1
)
known, digests = find_open_code(code_of(code))
forms = [new_form(known, device) for _ in range(2)]
def start(form):
    options = {"form": form, "device": device, "language": "en"}
    return begin(known, digests, **options).respondent_id
assert start(forms[0]) == start(forms[0])
try:
    start(forms[1])
    raise SystemExit("two people have one seat")
except LoginRefused:
    pass
OpenCodeSeat.objects.update(claimed_at=now - timedelta(days=2))
assert return_unused_seats() == 1
""",
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
    for name, statements in IN_DJANGO.items():
        run = partial(application.run_python, "-c", PROLOGUE + statements, failing=name)
        yield attempt(name, run)


def attempt(name: str, act: Callable[[], object]) -> Operation:
    try:
        act()
    except Refusal as refusal:
        return Operation(name, str(refusal)[:160])
    return Operation(name, "")
