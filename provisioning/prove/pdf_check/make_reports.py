"""Make reports of a school, with scores and a trend, in English, Spanish and Arabic.

The survey is the demonstration's for parents, which has these languages; made-up
people of three schools have answered two waves. Needs an empty database.
"""

from __future__ import annotations

import random
from datetime import timedelta
from pathlib import Path

from django.utils import timezone, translation

from accounts.models import District, Membership, School, User
from accounts.permissions import Permissions
from reports.rates.rollup import roll_up
from reports.releases.apply_suppression import hide_small_groups
from reports.releases.rollup import roll_up_results
from reports.school_report.pdf import html_of, pdf_files
from reports.school_report.report import (
    report_language_for,
    school_report,
)
from reports.scores.scoring import score_administration
from survey.fieldwork.administrations import open_administration
from survey.instrument.definitions.measures import measures_of
from survey.models import (
    Administration,
    PublishedSurvey,
    Respondent,
    Response,
)
from survey.simulation.demo.load import FOLDER, publish_workbook
from survey.taking.published import published_survey

LANGUAGES = ("en", "es", "ar")
SCHOOLS = ("Lincoln High School", "Roosevelt Elementary School", "Washington School")
PEOPLE = 40


def make_reports(*, folder: str) -> None:
    district = District.objects.create(code="riverside", name="Riverside")
    schools = [
        district.schools.create(code=name.split()[0].lower(), name=name)
        for name in SCHOOLS
    ]
    survey = publish_workbook(FOLDER / "parents.xlsx")
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
            if not any(
                measure.trend for measure in (*measures, *report.other_measures)
            ):
                raise SystemExit(f"{language} has no trend: {report.reason}")
            documents[f"report-{language}"] = html_of(report)
    for name, content in pdf_files(documents).items():
        Path(folder, f"{name}.pdf").write_bytes(content)


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
