"""Tell how far the people of a class are alike, by the classes of the roster.

Of students who sit together, each one tells less than of others. The intraclass
correlation is that of classes within schools, by analysis of variance; the design
effect of a school's mean is 1 + ρ (Σ m² / n - 1) for classes of m of its n people
(Kish 1965). Figures are of the whole state, where enough schools have several classes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from django.db import connections

from reports.answers.people import People
from reports.rasch.responses import Floats
from reports.scores.scale import FEWEST_SCHOOLS
from reports.technical.estimates import Codes, clustered_error
from survey.database.replica.reports import reports_database
from survey.models import Administration

CLASSROOMS = """
SELECT id, classroom FROM survey_respondent
WHERE administration_id = %s AND classroom <> ''
"""
UNKNOWN = -1


@dataclass(frozen=True)
class ClassErrors:
    """What classes do to the errors of one measure, in the whole state."""

    schools: int
    intraclass_correlation: float
    # Of a school's mean, as the mean of schools.
    design_effect: float
    # The standard error of the state's mean, clustered by class.
    clustered: float


def classes_of(administration: Administration, people: People) -> Codes:
    """Return the number of each person's class, or UNKNOWN. 1 statement.

    Classes of two schools with the same name are two classes.
    """
    with connections[reports_database()].cursor() as cursor:
        cursor.execute(CLASSROOMS, [administration.pk])
        classrooms = dict(cursor.fetchall())
    numbers: dict[tuple[int, str], int] = {}
    return np.array(
        [
            numbers.setdefault((school, classroom), len(numbers))
            if (classroom := classrooms.get(person))
            else UNKNOWN
            for person, school in zip(
                people.ids.tolist(), people.schools.tolist(), strict=True
            )
        ],
        dtype=np.intp,
    )


def class_errors(
    measured: Floats, schools: Codes, classes: Codes
) -> ClassErrors | None:
    """Return what classes do to errors; None where few schools have several classes.

    Of the people with a measure and a class.
    """
    known = np.isfinite(measured) & (classes != UNKNOWN)
    measured, schools = measured[known], schools[known]
    _codes, first, of_person = np.unique(
        classes[known], return_index=True, return_inverse=True
    )
    school_of_class = schools[first]
    several = np.bincount(school_of_class, minlength=1) > 1
    if several.sum() < FEWEST_SCHOOLS:
        return None
    used = several[schools]
    people = np.bincount(of_person[used], minlength=len(first)).astype(float)
    in_school = np.bincount(schools[used], minlength=len(several)).astype(float)
    squares = np.asarray(
        np.bincount(school_of_class, people**2, len(several)), dtype=np.float64
    )
    correlation = _correlation(
        measured[used],
        of_person[used],
        school_of_class,
        people,
        in_school,
        squares,
    )
    effects = 1 + correlation * (squares[several] / in_school[several] - 1)
    return ClassErrors(
        int(several.sum()),
        correlation,
        float(effects.mean()),
        clustered_error(measured, of_person),
    )


def _correlation(
    measured: Floats,
    of_person: Codes,
    school_of_class: Codes,
    people: Floats,
    in_school: Floats,
    squares: Floats,
) -> float:
    """Return the intraclass correlation of classes within schools, at least 0.

    `people` are those of each class, `in_school` those of each school, and `squares`
    the sums of the squared sizes of its classes.
    """
    sums = np.bincount(of_person, measured, len(people))
    means = np.divide(sums, people, out=np.zeros_like(sums), where=people > 0)
    of_school = np.bincount(school_of_class, sums, len(in_school))
    school_means = np.divide(
        of_school, in_school, out=np.zeros_like(of_school), where=in_school > 0
    )
    classes, schools = int((people > 0).sum()), int((in_school > 0).sum())
    within = ((measured - means[of_person]) ** 2).sum() / (len(measured) - classes)
    distances = means - school_means[school_of_class]
    between = (people * distances**2).sum() / (classes - schools)
    shares = np.divide(
        squares, in_school, out=np.zeros_like(squares), where=in_school > 0
    )
    size = (len(measured) - shares.sum()) / (classes - schools)
    variance = max((between - within) / size, 0.0)
    return float(variance / (variance + within))
