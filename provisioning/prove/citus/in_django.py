"""Operations of the product, each in a process of its own, for `operations`.

The administration 'measured' has people of one school. An operation that does not work
raises.
"""

from __future__ import annotations

from datetime import timedelta
from importlib import import_module

from django.conf import settings
from django.db import connection, transaction
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts.models import Membership, School, User
from provisioning.measure.benchmarks.page_walk import followed
from provisioning.staff_login import log_in
from reports.management.commands.measure_exports import release, time_export
from survey.database.code_routes import find_respondent
from survey.fieldwork.administrations import open_administration
from survey.fieldwork.open_codes import codes
from survey.fieldwork.open_codes.lookup import find_open_code
from survey.fieldwork.open_codes.seats import return_unused_seats
from survey.fieldwork.open_codes.starts import begin
from survey.models import (
    Administration,
    Denominator,
    OpenCodeSeat,
    Respondent,
    Role,
)
from survey.people.access_codes import code_of, digests
from survey.people.new_codes import reissue, reissue_all
from survey.people.rosters.undo import not_started
from survey.taking.login import LoginRefused, log_in_respondent
from survey.work import jobs

# It reads answers, which the role of the console may not: on no server.
REFUSED = ["results_comments"]


def check(is_right: object, problem: object) -> None:
    if not is_right:
        raise SystemExit(f"{problem}")


def measured() -> Administration:
    return Administration.objects.get(name="measured")


def people() -> list[Respondent]:
    return list(Respondent.objects.filter(administration__name="measured"))


def add_person() -> None:
    school = people()[0].school
    user = User.objects.create_user("district@drill.example")
    Membership.objects.create(user=user, role="district", district=school.district)
    client = log_in(Client(SERVER_NAME="127.0.0.1"), user)
    address = f"{reverse('people_add', args=[measured().pk])}?school={school.pk}"
    reply = client.post(address, {"external_id": "by-hand"})
    check(reply.status_code == 302, reply.content.decode())
    person = Respondent.objects.get(identity__external_id="by-hand")
    with connection.cursor() as cursor:
        is_known = find_respondent(cursor, digests(code_of(person))) == person.pk
    check(is_known, "the person's code is not known")


def run_tasks() -> None:
    for each in settings.CELERY_BEAT_SCHEDULE.values():
        module, _, task = each["task"].rpartition(".")
        getattr(import_module(module), task)()
    for queue in (jobs.QUICK, jobs.LONG):
        for job in list(jobs.runnable_jobs(queue)):
            jobs.run(job.pk)
            job.refresh_from_db()
            check(job.state == "done", f"{job.kind}: {job.message}")


def open_pages() -> None:
    for name in ("state", "district", "coordinator", "analyst"):
        user = User.objects.get(email=f"{name}@groundswell.example")
        client = Client(raise_request_exception=False, SERVER_NAME="127.0.0.1")
        pages = list(followed(log_in(client, user)))
        check(len(pages) > 30, f"{name} has {len(pages)} pages")
        for route, path, status, _ in pages:
            check(status < 500 or route in REFUSED, f"{name} can't open {path}")


def export() -> None:
    administration = measured()
    closes_at = administration.closes_at
    # It is released by closing it half an hour ago.
    administration.opens_at -= timedelta(days=1)
    administration.save(update_fields=["opens_at"])
    release(administration)
    exported, _ = time_export(administration, "wide")
    administration.closes_at = closes_at
    administration.save(update_fields=["closes_at"])
    check(exported.responses, "no answers in the export")


def reissue_code() -> None:
    person = people()[0]
    session = log_in_respondent(reissue(respondent=person))
    check(session.respondent_id == person.pk, "the new code is another person's")


def reissue_codes() -> None:
    respondents = Respondent.objects.filter(administration=measured())
    check(reissue_all(respondents) == len(people()), "not all codes are new")
    for person in people():
        session = log_in_respondent(code_of(person))
        check(session.respondent_id == person.pk, "a code is another person's")


def lock_people() -> None:
    with transaction.atomic():
        not_started([person.pk for person in people()])


def use_seat() -> None:
    now = timezone.now()
    parents = open_administration(
        name="parents",
        role=Role.PARENT,
        denominator=Denominator.COUNT,
        opens_at=now - timedelta(1),
        closes_at=now + timedelta(1),
        published=measured().published,
    )
    school = School.objects.all()[0]
    code = codes.create_open_code(
        administration=parents, school=school, by="a drill", limit=1
    )
    known, known_digests = find_open_code(codes.code_of(code))

    def start(key: str) -> int:
        options = {"key": key, "device": "d" * 32, "language": "en"}
        return begin(known, known_digests, **options).respondent_id

    check(start("first") == start("first"), "one device is two people")
    try:
        start("second")
    except LoginRefused:
        OpenCodeSeat.objects.update(claimed_at=now - timedelta(days=2))
        check(return_unused_seats() == 1, "the seat was not returned")
    else:
        raise SystemExit("two people have one seat")
