"""Make reports of a school, with scores and a trend, in English, Spanish and Arabic.

The survey is the demonstration's for parents, which has these languages; made-up
people of three schools have answered two waves. Runs in .venv, on an empty database
that is deleted afterwards.
"""

from __future__ import annotations

import random
import sys
from datetime import timedelta
from pathlib import Path

import django

django.setup()

from django.utils import timezone, translation  # noqa: E402

from accounts.models import District, Membership, School, User  # noqa: E402
from accounts.permissions import Permissions  # noqa: E402
from reports.results.hiding import hide_small_groups  # noqa: E402
from reports.results.rollup import roll_up_results  # noqa: E402
from reports.rollup import roll_up  # noqa: E402
from reports.school_report.pdf import html_of, pdf_files  # noqa: E402
from reports.school_report.report import (  # noqa: E402
    report_language_for,
    school_report,
)
from reports.scores.scoring import score_administration  # noqa: E402
from survey.administrations import open_administration  # noqa: E402
from survey.definitions.measures import measures_of  # noqa: E402
from survey.definitions.publishing import publish_survey  # noqa: E402
from survey.models import (  # noqa: E402
    Administration,
    PublishedSurvey,
    Respondent,
    Response,
)
from survey.simulation import demo  # noqa: E402
from survey.taking.published import published_survey  # noqa: E402
from survey.xlsform import import_survey, read_xlsform  # noqa: E402

SURVEY = Path(demo.__file__).with_name("parents.xlsx")
LANGUAGES = ("en", "es", "ar")
SCHOOLS = ("Lincoln High School", "Roosevelt Elementary School", "Washington School")
PEOPLE = 40


def main(folder: Path) -> None:
    district = District.objects.create(code="riverside", name="Riverside")
    schools = [
        district.schools.create(code=name.split()[0].lower(), name=name)
        for name in SCHOOLS
    ]
    content = SURVEY.read_bytes()
    reading = read_xlsform(content, name=SURVEY.stem)
    if reading.draft is None:
        sys.exit(f"{SURVEY.name}: {reading.problems}")
    survey = publish_survey(
        survey=import_survey(draft=reading.draft, source=content, district=None)
    )
    for wave, shift in (("first", 0.0), ("second", 0.6)):
        administration = answered_wave(survey, wave, schools, shift)
    user = User.objects.create(email="reports@example.org")
    Membership.objects.create(user=user, role=Membership.Role.STATE)
    documents = {}
    for language in LANGUAGES:
        with translation.override(report_language_for(language)):
            report = school_report(
                Permissions(user), administration, schools[0], language
            )
            measures = [measure for _, group in report.essentials for measure in group]
            if not any(measure.trend for measure in (*measures, *report.others)):
                sys.exit(f"The report in {language} has no trend: {report.reason}")
            documents[f"report-{language}"] = html_of(report)
    for name, content in pdf_files(documents).items():
        (folder / f"{name}.pdf").write_bytes(content)


def answered_wave(
    survey: PublishedSurvey, name: str, schools: list[School], shift: float
) -> Administration:
    """Return a closed administration with scores."""
    now = timezone.now()
    administration = open_administration(
        name=name,
        published=survey,
        # A report for parents needs to know how many students there are.
        role="student",
        opens_at=now - timedelta(days=3),
        closes_at=now + timedelta(days=3),
    )
    draw = random.Random(name)  # noqa: S311
    for number, school in enumerate(schools):
        take_part(administration, school, draw, shift + number / 2)
    age = timedelta(days=30) if name == "first" else timedelta(hours=1)
    administration.closes_at = now - age
    administration.opens_at = administration.closes_at - timedelta(days=3)
    administration.save(update_fields=["opens_at", "closes_at"])
    roll_up()
    roll_up_results(administration)
    hide_small_groups(administration)
    score_administration(administration)
    return administration


def take_part(
    administration: Administration, school: School, draw: random.Random, shift: float
) -> None:
    """Let people of a school answer the items of all measures, and finish."""
    now = timezone.now()
    published = published_survey(administration.published_id)
    definition, content = (
        published.definition,
        measures_of(administration.published.survey),
    )
    people = Respondent.objects.bulk_create(
        Respondent(
            administration=administration,
            school=school,
            code_digest=f"{administration.name} {school.pk} {n}".encode(),
            code_key_version=1,
            started_at=now,
            completed_at=now,
        )
        for n in range(PEOPLE)
    )
    responses = []
    for person in people:
        inclination = draw.gauss(shift, 1)
        for measure in content["measures"] if content else ():
            for scored in measure["items"]:
                item = definition["items"][scored["name"]]
                options = definition["option_sets"][item["option_set"]]
                values = [
                    option["value"]
                    for option in options
                    if option["value"] not in measure["missing"]
                ]
                place = round((len(values) - 1) / 2 + inclination + draw.gauss(0, 1))
                value = values[min(max(place, 0), len(values) - 1)]
                responses.append(
                    Response(
                        administration_id=administration.pk,
                        respondent_id=person.pk,
                        item_id=item["id"],
                        state=Response.State.ANSWERED,
                        value=value,
                        revision=1,
                        saved_at=now,
                    )
                )
    Response.objects.bulk_create(responses)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
