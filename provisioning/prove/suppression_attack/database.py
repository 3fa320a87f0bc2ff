"""Store an invented state, and let the product count, release and publish it."""

from __future__ import annotations

import io
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from itertools import count
from typing import Any

from django.core.cache import cache as shared_cache
from django.utils import timezone
from openpyxl import Workbook

from accounts.models import District, Membership, School, User
from provisioning.prove.suppression_attack.states import (
    CHOICES,
    FIRST_PAGE,
    GRADE,
    ITEMS,
    LEVELS,
    MEASURED,
    MULTIPLE,
    NOT_APPLICABLE,
    SKIPPED,
    Person,
    State,
)
from reports.models import ResultsRollUp
from reports.publishing.freezing import basis_of
from reports.publishing.publications import (
    PublicationRefused,
    administration_to_publish,
    request_publication,
)
from reports.rates.rollup import roll_up
from reports.releases.rollup import roll_up_results
from survey.fieldwork.administrations import open_administration
from survey.instrument.definitions.publishing import publish_survey
from survey.instrument.xlsform import import_survey, read_xlsform
from survey.models import (
    Administration,
    CountedGroup,
    Job,
    PublishedSurvey,
    Respondent,
    Response,
    Role,
)
from survey.work import jobs

# Roles of readers who log in; everybody else reads public pages.
STATE, DISTRICT, ANALYST, COORDINATOR = "state", "district", "analyst", "coordinator"
_numbers = count(1)


@dataclass
class Stored:
    """A state in the database. The people of an administration may change."""

    state: State
    districts: list[District]
    schools: list[School]
    users: dict[str, User]
    # School of the coordinator, district of the analyst and the district's staff.
    school: int
    district: int
    # Respondents by administration, in the order of the state's people.
    respondents: dict[int, list[Respondent]] = field(default_factory=dict)


def store(state: State, school: int | None = None) -> Stored:
    """Create the places and a user of each role; the coordinator has `school`."""
    number = next(_numbers)
    districts = District.objects.bulk_create(
        District(code=f"{number}d{n}", name=f"District {number}-{n}")
        for n in range(max(state.districts) + 1)
    )
    schools = School.objects.bulk_create(
        School(code=f"{number}s{n}", name=f"School {number}-{n}", district=districts[d])
        for n, d in enumerate(state.districts)
    )
    if school is None:
        sizes = [
            sum(person.school == n for person in state.people)
            for n in range(len(schools))
        ]
        school = sizes.index(max(sizes))
    district = state.districts[school]
    places: dict[str, tuple[str, dict[str, Any]]] = {
        STATE: (Membership.Role.STATE, {}),
        DISTRICT: (Membership.Role.DISTRICT, {"district": districts[district]}),
        ANALYST: (Membership.Role.ANALYST, {"district": districts[district]}),
        COORDINATOR: (Membership.Role.COORDINATOR, {"school": schools[school]}),
    }
    users = {}
    for name, (role, place) in places.items():
        users[name] = User.objects.create(email=f"{name}{number}@example.org")
        Membership.objects.create(user=users[name], role=role, **place)
    return Stored(state, districts, schools, users, school, district)


@cache
def survey(district: int | None = None) -> PublishedSurvey:
    """Publish the survey, once for each owner."""
    rows: list[list[str]] = [["type", "name", "label", "relevant", "appearance"]]
    for page in (FIRST_PAGE, ITEMS[len(FIRST_PAGE) :]):
        rows.append(["begin group", f"page_{page[0]}", "", "", "field-list"])
        for item in page:
            kind = {"hours": "integer", "comment": "text"}.get(item, "")
            if item in CHOICES:
                kind = f"select_one {'level' if item in MEASURED else item}"
            elif item in MULTIPLE:
                kind = f"select_multiple {item}"
            relevant = "${bullied} = 'yes'" if item == "who" else ""
            rows.append([kind, item, item, relevant, ""])
        rows.append(["end group", "", "", "", ""])
    lists = {"level": LEVELS, **CHOICES, **MULTIPLE}
    book = Workbook()
    sheets = {
        "survey": rows,
        "choices": [
            ["list_name", "name", "label"],
            *(
                [name, option, option]
                for name, options in lists.items()
                for option in options
            ),
        ],
        "settings": [["form_title", "form_id", "version"], ["Climate", "climate", "1"]],
        "measures": [
            ["type", "name", "label", "essential", "direction", "items", "missing"],
            ["essential", "calm", "Calm", "", "", "", ""],
            ["measure", "trust", "Trust", "calm", "", " ".join(MEASURED), ""],
        ],
    }
    for title, lines in sheets.items():
        sheet = book.create_sheet(title)
        for line in lines:
            sheet.append(line)
    del book["Sheet"]
    file = io.BytesIO()
    book.save(file)
    reading = read_xlsform(file.getvalue())
    if reading.draft is None:
        raise ValueError([str(problem) for problem in reading.problems])
    owner = District.objects.get(pk=district) if district else None
    draft = import_survey(draft=reading.draft, source=file.getvalue(), district=owner)
    return publish_survey(survey=draft)


def administer(
    stored: Stored,
    *,
    people: Mapping[int, Person] | None = None,
    owner: District | None = None,
    closed: timedelta = timedelta(hours=1),
) -> Administration:
    """Offer the survey to all people, or these, who have answered; it has closed."""
    now = timezone.now()
    opened = now - closed - timedelta(days=3)
    districts = [owner] if owner else stored.districts
    administration = open_administration(
        name=f"attacked-{next(_numbers)}",
        published=survey(owner.pk if owner else None),
        role=Role.STUDENT,
        district=owner,
        districts=districts,
        minimum_group=stored.state.minimum,
        opens_at=opened,
        closes_at=now + timedelta(days=1),
        subgroups=dict.fromkeys(stored.state.attributes, ()),
    )
    administration.closes_at = now - closed
    administration.save(update_fields=["closes_at"])
    if people is None:
        people = dict(enumerate(stored.state.people))
    respondent_of = _add_respondents(stored, administration, people, opened)
    stored.respondents[administration.pk] = [
        respondent_of.get(number) or Respondent()
        for number in range(len(stored.state.people))
    ]
    return administration


def _add_respondents(
    stored: Stored,
    administration: Administration,
    people: Mapping[int, Person],
    opened: datetime,
) -> dict[int, Respondent]:
    """Store people with their answers; return the respondent of each."""
    respondents = [
        Respondent(
            administration=administration,
            school=stored.schools[person.school],
            grade=person.groups[GRADE],
            attributes={name: person.groups[name] for name in stored.state.attributes},
            code_digest=f"person {next(_numbers)}".encode(),
            code_key_version=1,
            started_at=opened + timedelta(hours=1) if person.answered else None,
            completed_at=opened + timedelta(hours=2) if person.finished else None,
        )
        for person in people.values()
    ]
    Respondent.objects.bulk_create(respondents)
    items = dict(administration.published.survey.items.values_list("name", "pk"))
    states = {SKIPPED: "s", NOT_APPLICABLE: "h"}
    Response.objects.bulk_create(
        Response(
            administration_id=administration.pk,
            respondent_id=respondent.pk,
            item_id=items[item],
            state=states.get(value, "a"),
            value=None if value in states else value,
            revision=1,
            saved_at=opened + timedelta(hours=2),
        )
        for respondent, person in zip(respondents, people.values(), strict=True)
        for item, value in person.answers.items()
    )
    CountedGroup.objects.bulk_create(
        # Whom a roster added after the opening: nobody counts them before others come.
        CountedGroup(
            respondent=respondent,
            administration=administration,
            attributes={},
            changed_at=timezone.now(),
        )
        for respondent, person in zip(respondents, people.values(), strict=True)
        if person.is_late
    )
    return dict(zip(people, respondents, strict=True))


def release(administration: Administration, *, scores: bool = True) -> None:
    """Count rates, results and scores, share them with schools and publish them."""
    current = Administration.objects.select_related("published__survey").get(
        pk=administration.pk
    )
    roll_up([current])
    roll_up_results(current, release=True)
    if scores:
        calculate_scores(current)
    rows = ResultsRollUp.objects.filter(pk=current.pk, shared_at=None)
    rows.update(shared_at=timezone.now())
    shared_cache.clear()


def calculate_scores(administration: Administration) -> None:
    # It needs SciPy.
    from reports.scores.scoring import score_administration

    current = Administration.objects.select_related("published__survey").get(
        pk=administration.pk
    )
    score_administration(current, recalculate=True)


def publish(administration: Administration, by: User) -> bool:
    """Publish the results for everybody; False if the product refuses that."""
    current = administration_to_publish(administration.pk)
    try:
        request_publication(
            administration=current,
            basis=basis_of(current),
            embargo_until=None,
            by=by,
        )
    except PublicationRefused:
        return False
    run_jobs()
    return True


def run_jobs(kinds: Collection[str] = ()) -> None:
    """Run the jobs that wait, as a worker does."""
    waiting = Job.objects.filter(state=Job.State.WAITING)
    if kinds:
        waiting = waiting.filter(kind__in=kinds)
    for job in waiting.order_by("pk"):
        jobs.run(job.pk)
