"""Do on a cluster what the product does, each as the database role of its process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
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
# The role of the stack's process, and what no management command does.
IN_DJANGO = {
    "add a person by hand": (
        "console",
        """
from django.db import connection
from django.test import Client
from django.urls import reverse
from accounts.models import Membership, User
from accounts.tests.logging_in import log_in
from survey.access_codes import code_of, digests
from survey.database.code_routes import find_respondent
school = people.first().school
user = User.objects.create_user("district@drill.example")
Membership.objects.create(user=user, role="district", district=school.district)
client = log_in(Client(SERVER_NAME="127.0.0.1"), user)
address = reverse("people_add", args=[measured.pk])
reply = client.post(f"{address}?school={school.pk}", {"external_id": "by-hand"})
assert reply.status_code == 302, reply.content.decode()
person = Respondent.objects.get(identity__external_id="by-hand")
with connection.cursor() as cursor:
    assert find_respondent(cursor, digests(code_of(person))) == person.pk
""",
    ),
    "run all periodic tasks, and jobs that wait": (
        "worker",
        """
from importlib import import_module
from django.conf import settings
from survey import jobs
for each in settings.CELERY_BEAT_SCHEDULE.values():
    module, _, task = each["task"].rpartition(".")
    getattr(import_module(module), task)()
jobs.wake = lambda *_: None
for queue in (jobs.QUICK, jobs.LONG):
    for job in list(jobs.runnable_jobs(queue)):
        jobs.run(job.pk)
        job.refresh_from_db()
        assert job.state == "done", (job.kind, job.message)
""",
    ),
    "open all pages of the console": (
        "console",
        """
from django.test import Client
from accounts.models import User
from accounts.tests.logging_in import log_in
from provisioning.benchmarks.page_walk import followed
# It reads answers, which the role of the console may not: on no server.
refused = ["results_comments"]
for name in ("state", "district", "coordinator", "analyst"):
    user = User.objects.get(email=f"{name}@groundswell.example")
    client = Client(raise_request_exception=False, SERVER_NAME="127.0.0.1")
    pages = list(followed(log_in(client, user)))
    assert len(pages) > 30, (name, len(pages))
    for route, path, status, _ in pages:
        assert status < 500 or route in refused, (name, path)
""",
    ),
    "export answers": (
        "worker",
        """
from reports.management.commands.measure_exports import release, time_export
closes_at = measured.closes_at
release(measured)
export, _ = time_export(measured, "wide")
measured.closes_at = closes_at
measured.save(update_fields=["closes_at"])
assert export.responses > 0, "no answers in the export"
""",
    ),
    "issue a person's code anew": (
        "console",
        """
from survey.access_codes import reissue
from survey.taking.login import log_in_respondent
person = people.first()
assert log_in_respondent(reissue(respondent=person)).respondent_id == person.pk
""",
    ),
    "issue all codes of a school anew": (
        "console",
        """
from survey.access_codes import code_of, reissue_all
from survey.taking.login import log_in_respondent
assert reissue_all(people) == len(people)
for person in people.all():
    assert log_in_respondent(code_of(person)).respondent_id == person.pk
""",
    ),
    "lock people of all shards, to undo a roster": (
        "worker",
        """
from django.db import transaction
from survey.rosters.undo import not_started
with transaction.atomic():
    not_started(people.values_list("pk", flat=True))
""",
    ),
    "start with an open code of one seat, and return it": (
        "groundswell",
        """
from datetime import timedelta
from django.utils import timezone
from accounts.models import School
from survey.administrations import open_administration
from survey.models import Denominator, OpenCodeSeat, Role
from survey.open_codes.codes import code_of, create_open_code
from survey.open_codes.lookup import find_open_code
from survey.open_codes.seats import return_unused_seats
from survey.open_codes.starts import begin
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
def start(key):
    options = {"key": key, "device": device, "language": "en"}
    return begin(known, digests, **options).respondent_id
assert start("first") == start("first")
try:
    start("second")
    raise SystemExit("two people have one seat")
except LoginRefused:
    pass
OpenCodeSeat.objects.update(claimed_at=now - timedelta(days=2))
assert return_unused_seats() == 1
""",
    ),
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
    for name, (role, statements) in IN_DJANGO.items():
        process = as_process(application, role)
        run = partial(process.run_python, "-c", PROLOGUE + statements, failing=name)
        yield attempt(name, run)


def attempt(name: str, act: Callable[[], object]) -> Operation:
    try:
        act()
    except Refusal as refusal:
        return Operation(name, str(refusal)[:160])
    return Operation(name, "")
