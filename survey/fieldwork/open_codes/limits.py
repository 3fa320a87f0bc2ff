"""How often people can begin with one code, and how many at once are unusual.

Everything follows from the school's size: all of its students can begin within
minutes, and from one address, because a school is one address.
"""

from __future__ import annotations

from django.db.models import Case, F, IntegerField, OuterRef, Subquery, When

from survey.models import Role, SchoolCount

# A small school may have one code for several groups of people.
SMALLEST_SIZE = 1_000
# Of a school that has supplied no number; few are larger.
UNKNOWN_SIZE = 3_000
# Parents answer once for each child.
CHILDREN_PER_FAMILY = 2
# In an hour, so often as there are students: one address can't use up what a code
# admits, and people elsewhere can begin.
STARTS_PER_STUDENT = 2
# A school's usual size, where the number is unknown.
USUAL_SIZE = 600
# Classes begin together; parents choose their time.
UNUSUAL_SHARE = {Role.PARENT: 0.25}
LEAST_UNUSUAL = 50


def students_of_school() -> Subquery:
    """Return the number of students that the school of a code has supplied.

    For a query of open codes; None where there is none.
    """
    students = Case(
        When(unit=SchoolCount.Unit.FAMILIES, then=F("count") * CHILDREN_PER_FAMILY),
        default=F("count"),
        output_field=IntegerField(),
    )
    counts = SchoolCount.objects.current().filter(
        administration=OuterRef("administration"), school=OuterRef("school")
    )
    return Subquery(counts.values_list(students))


def most_per_address(students: int | None) -> int:
    """Return how many may begin from one address in an hour with one code."""
    return max(students, SMALLEST_SIZE) if students else UNKNOWN_SIZE


def most_per_hour(students: int | None) -> int:
    """Return how many may begin in an hour, where nobody chose another number."""
    return STARTS_PER_STUDENT * most_per_address(students)


def unusual_number(role: str, students: int | None) -> int:
    """Return from which number on starts within ten minutes are unusual."""
    share = UNUSUAL_SHARE.get(Role(role), 1.0)
    return max(LEAST_UNUSUAL, round(share * (students or USUAL_SIZE)))
