"""Two versions of a survey with every kind of item, respondents and exports."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import pytest
from django.utils import timezone

from accounts.models import District, School
from accounts.tests.conftest import staff  # noqa: F401
from reports.exports import anonymise
from reports.models import Export, ResultsRollUp
from reports.releases.rollup import roll_up_results
from reports.tests.exports import reference
from survey.fieldwork.administrations import open_administration
from survey.instrument.definitions.publishing import publish_survey
from survey.instrument.xlsform import import_survey, read_xlsform
from survey.models import (
    Administration,
    Identity,
    Job,
    PublishedSurvey,
    Respondent,
    Response,
    Role,
    Survey,
    SurveyMeasures,
    Wave,
)
from survey.tests.conftest import empty_caches  # noqa: F401
from survey.tests.database_flush import quick_flush  # noqa: F401
from survey.tests.workbooks import form
from survey.work import jobs

_numbers = count(1)

HEADER = ["type", "name", "label::English (en)", "label::Español (es)"]
HEADER += ["relevant", "calculation", "parameters", "appearance"]
CHOICES = [
    ["list_name", "name", "label::English (en)", "label::Español (es)"],
    ["agree", 1, "Disagree", "En desacuerdo"],
    ["agree", 2, "Agree", "De acuerdo"],
    ["agree", -1, "Rather not say", "Prefiero no decir"],
    ["pets", "cat", "Cat", "Gato"],
    ["pets", "dog", "+Dog", "Perro"],
]


def group(name: str, english: str, spanish: str) -> list[str | None]:
    return ["begin group", name, english, spanish, None, None, None, "field-list"]


FIRST = [
    HEADER,
    group("p1", "School", "Escuela"),
    ["select_one agree", "safe", "I am safe.", "Estoy a salvo."],
    ["select_multiple pets", "pets", "Your pets?", "¿Mascotas?"],
    ["integer", "age", "How old?", "¿Edad?"],
    ["decimal", "far", "How far?", "¿Distancia?"],
    ["text", "comment", "Anything else?", "¿Algo más?"],
    ["end group"],
    group("p2", "Home", "Casa"),
    ["note", "hello", "Hello", "Hola"],
    ["date", "born", "Born?", "¿Nacimiento?"],
    ["range", "bus", "On the bus?", "¿En el bus?", None, None, "start=0 end=60 step=5"],
    ["acknowledge", "promise", "I promise.", "Prometo."],
    ["end group"],
    group("p3", "Later", "Después"),
    ["select_one agree", "teen", "Teens?", "¿Jóvenes?", "${age} >= 13"],
    ["time", "wake", "Up at?", "¿Hora?", "selected(${pets}, 'cat')"],
    ["end group"],
    ["calculate", "score", None, None, None, "${safe} * 10"],
    group("p4", "End", "Fin"),
    ["text", "last", "Last?", "¿Último?"],
    ["end group"],
]
SECOND = [
    *FIRST[:5],
    ["text", "lunch", "How is lunch?", "¿El almuerzo?"],
    ["text", "far", "How far, in words?", "¿Qué tan lejos?"],
    *FIRST[6:],
]


def settings_of(version: str) -> list[list[str]]:
    return [
        ["form_title", "form_id", "version", "default_language"],
        ["Our school", "climate", version, "English (en)"],
    ]


def published(
    rows: list[list[Any]],
    version: str,
    district: District | None = None,
    choices: list[list[Any]] = CHOICES,
) -> PublishedSurvey:
    return publish_survey(survey=draft(rows, version, district, choices))


def draft(
    rows: list[list[Any]],
    version: str,
    district: District | None = None,
    choices: list[list[Any]] = CHOICES,
) -> Survey:
    content = form(rows, choices, settings_of(version))
    reading = read_xlsform(content)
    assert reading.draft, [str(problem) for problem in reading.problems]
    return import_survey(draft=reading.draft, source=content, district=district)


def opened(
    survey: PublishedSurvey,
    name: str,
    role: str = Role.STUDENT,
    # Exact cells, so that most tests need only a few people.
    minimum_group: int = 1,
) -> Administration:
    now = timezone.now()
    return open_administration(
        name=name,
        published=survey,
        role=role,
        minimum_group=minimum_group,
        opens_at=now - timedelta(days=3),
        closes_at=now + timedelta(days=3),
        subgroups=dict.fromkeys(("track", "<b>x</b>", "age", "sex", "=grade"), ()),
    )


@pytest.fixture(scope="module")
def first_survey(module_data: None) -> PublishedSurvey:
    return published(FIRST, "1")


@pytest.fixture(scope="module")
def second_survey(module_data: None) -> PublishedSurvey:
    return published(SECOND, "2")


@pytest.fixture
def fall(db: None, first_survey: PublishedSurvey) -> Administration:
    return opened(first_survey, "fall")


@pytest.fixture
def spring(db: None, second_survey: PublishedSurvey) -> Administration:
    return opened(second_survey, "spring")


@pytest.fixture
def measured(db: None) -> Administration:
    """Offer a survey with one measure, the last item of which is reversed."""
    hall = ["select_one agree", "hall", "People push.", "La gente empuja."]
    survey = draft([*FIRST[:3], hall, *FIRST[3:]], "3")
    safety = {"name": "safety", "label": {"en": "Safe school"}, "description": {}}
    calm = {
        "name": "calm",
        "label": {"en": "Calm school", "es": "Calma"},
        "description": {"en": "No pushing."},
        "essential": "safety",
        "direction": "positive",
        "items": [
            {"name": name, "reversed": name == "hall"}
            for name in ("safe", "teen", "hall")
        ],
        "missing": ["-1"],
    }
    SurveyMeasures.objects.create(
        survey=survey, content={"essentials": [safety], "measures": [calm]}
    )
    return opened(publish_survey(survey=survey), "winter")


@pytest.fixture
def helped(db: None) -> Administration:
    """Offer a survey in which a label of an option quotes an answer."""
    label = "jr:choice-name(${helper}, '${helper}')"
    rows = [
        HEADER,
        group("p1", "You", "Usted"),
        ["text", "child", "Your child’s name?", "¿Nombre?"],
        ["end group"],
        group("p2", "Help", "Ayuda"),
        ["select_one people", "helper", "Who helps?", "¿Quién ayuda?"],
        ["end group"],
        ["calculate", "said", None, None, None, label],
    ]
    choices = [CHOICES[0], ["people", "t", "${child}’s teacher", "Docente de ${child}"]]
    return opened(published(rows, "4", choices=choices), "help")


@pytest.fixture
def enrol(db: None) -> Callable[..., Respondent]:
    def enrolled(
        administration: Administration, school: School, **fields: Any
    ) -> Respondent:
        person = respondent_of(administration, school, **fields)
        person.save(force_insert=True)
        return person

    return enrolled


def respondent_of(
    administration: Administration, school: School, **fields: Any
) -> Respondent:
    """Return a respondent who has started and is not saved yet."""
    fields.setdefault("started_at", datetime(2027, 3, 1, 14, 5, 6, 789, UTC))
    fields.setdefault("grade", "07")
    return Respondent(
        administration=administration,
        school=school,
        code_digest=f"code {next(_numbers)}".encode(),
        code_key_version=1,
        **fields,
    )


SKIP, HIDE = object(), object()

COLUMNS = [
    ("safe", None),
    ("pets", "cat"),
    ("pets", "dog"),
    ("age", None),
    ("far", None),
    ("comment", None),
    ("born", None),
    ("bus", None),
    ("promise", None),
    ("teen", None),
    ("wake", None),
    ("score", None),
    ("last", None),
]


def answer(respondent: Respondent, answers: Mapping[str, Any]) -> None:
    """Store answers by item name; each is SKIP, HIDE or a text."""
    answer_all(respondent.administration, [(respondent, answers)])


def answer_all(
    administration: Administration,
    answered: Iterable[tuple[Respondent, Mapping[str, Any]]],
) -> None:
    """Store the answers of many people, as `answer` does."""
    items = item_ids(administration)
    Response.objects.bulk_create(
        Response(
            administration_id=administration.pk,
            respondent_id=respondent.pk,
            item_id=items[name],
            state={SKIP: "s", HIDE: "h"}.get(value, "a"),
            value=None if value in (SKIP, HIDE) else value,
            revision=1,
            saved_at=datetime(2027, 3, 1, 14, 7, 8, 9, UTC),
        )
        for respondent, answers in answered
        for name, value in answers.items()
    )


def enrol_and_answer(
    administration: Administration,
    people: Iterable[tuple[School, str, Mapping[str, Any]]],
) -> None:
    """Enrol people of a school and grade who give these answers, in 3 statements."""
    people = list(people)
    respondents = Respondent.objects.bulk_create(
        respondent_of(administration, school, grade=grade)
        for school, grade, _answers in people
    )
    answers = (given for _school, _grade, given in people)
    answer_all(administration, zip(respondents, answers, strict=True))


def item_ids(administration: Administration) -> dict[str, int]:
    survey = administration.published.survey
    return dict(survey.items.values_list("name", "pk"))


def identify(respondent: Respondent, **fields: str) -> Identity:
    return Identity.objects.create(
        respondent=respondent,
        administration_id=respondent.administration_id,
        district=respondent.school.district,
        **{"external_id": f"S{respondent.pk}", **fields},
    )


def requested(by: Any, *administrations: Administration, **choices: Any) -> Export:
    """Create an export and its job, which has not run."""
    choices.setdefault("format", Export.Format.WIDE)
    choices.setdefault("language", "en")
    choices.setdefault("places", {"state": True})
    export = Export.objects.create(by=by, **choices)
    export.administrations.set(administrations)
    export.job = Job.objects.create(kind="export.make", subject_id=export.pk, by=by)
    export.save(update_fields=["job"])
    return export


def released(administration: Administration) -> Administration:
    """Close an administration, and count its results."""
    administration.closes_at = timezone.now() - timedelta(hours=1)
    administration.save(update_fields=["closes_at"])
    roll_up_results(
        Administration.objects.select_related("published__survey").get(
            pk=administration.pk
        ),
        release=True,
    )
    return administration


def with_release(*administrations: Administration) -> None:
    """Make a release of each administration that has none."""
    for administration in administrations:
        if not ResultsRollUp.objects.filter(pk=administration.pk).exists():
            released(administration)


def made(by: Any, *administrations: Administration, **choices: Any) -> Export:
    """Create an export and run its job; first a release, if it needs one."""
    if not choices.get("identities"):
        with_release(*administrations)
    return made_as_it_is(by, *administrations, **choices)


def made_as_it_is(by: Any, *administrations: Administration, **choices: Any) -> Export:
    """Create an export and run its job."""
    export = requested(by, *administrations, **choices)
    jobs.run(export.job_id)
    export.refresh_from_db()
    export.job.refresh_from_db()
    return export


FULL = {
    "safe": "2",
    "pets": "cat dog",
    "age": "12",
    "far": "-1.50",
    "comment": 'fine, "really"\nso 🙂',
    "born": "2014-02-28",
    "bus": "15",
    "promise": "OK",
    "wake": "07:30",
    "last": "bye",
}


@pytest.fixture
def maya(staff, fall, enrol) -> Respondent:  # noqa: F811
    respondent = enrol(
        fall,
        staff.lincoln,
        language="es",
        response_language="en",
        completed_at=datetime(2027, 3, 2, 5, 30, tzinfo=UTC),
        attributes={"sex": "f", "=grade": "@x"},
    )
    answer(respondent, {**FULL, "teen": HIDE})
    return respondent


@pytest.fixture
def other_people(staff, fall, enrol) -> list[Respondent]:  # noqa: F811
    halfway = enrol(fall, staff.washington, grade="-08")
    answer(halfway, {"safe": SKIP, "pets": SKIP, "age": "-5", "far": "3"})
    answer(halfway, {"comment": "-5"})
    masked = enrol(fall, staff.roosevelt)
    # The age was corrected after `teen` had been answered.
    answer(masked, {"safe": "-1", "age": "9", "comment": "=1+1", "teen": "2"})
    return [halfway, masked]


@pytest.fixture
def known_key(monkeypatch):
    """Make the reference implementation find the same research ids."""
    monkeypatch.setattr(anonymise, "new_key", lambda: reference.KEY)


@pytest.fixture
def waves(fall, spring) -> list[Administration]:
    for administration, name in ((fall, "Fall 2026"), (spring, "Spring 2027")):
        administration.joins_waves, administration.wave = (
            True,
            Wave.objects.create(name=name),
        )
        administration.save(update_fields=["joins_waves", "wave"])
    return [fall, spring]


@pytest.fixture
def take_part(enrol):
    """Enrol somebody who answers; the age tells rows apart."""

    def took_part(administration, school, external_id, age, **fields):
        person = enrol(administration, school, **fields)
        if external_id:
            identify(person, external_id=external_id)
        answer(person, {"age": str(age)})
        return person

    return took_part


def panel_of(user, waves, **choices) -> Export:
    return made(user, *waves, is_panel=True, **choices)
