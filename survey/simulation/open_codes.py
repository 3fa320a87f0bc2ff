"""Create a survey and open codes for load tests, and delete what they leave."""

from __future__ import annotations

from django.db import transaction

from accounts.models import District, School
from survey.fieldwork.open_codes.codes import code_of, create_open_code
from survey.models import (
    Administration,
    Denominator,
    OpenCode,
    OpenCodeSeat,
    OpenDecline,
    Role,
    SchoolCount,
)
from survey.models.school_count import LARGEST_COUNT
from survey.people.access_codes import format_code
from survey.simulation.load_survey import delete_answers, find_or_open


def replace_open_codes(
    *, name: str, pages: int, items: int, unlimited: int, seats: int = 0
) -> tuple[Administration, list[str]]:
    """Give a rehearsal for anyone new open codes, each of a school of its own.

    The old ones are deleted, with everybody who began with them. With `seats`, the
    last code is a limited one. Raises NotARehearsal, and ValidationError.
    """
    administration = find_or_open(
        name, pages, items, role=Role.PARENT, denominator=Denominator.COUNT
    )
    delete_starts(administration)
    district, _ = District.objects.get_or_create(
        code="rehearsal", defaults={"name": "Rehearsal"}
    )
    codes = []
    for number, limit in enumerate([None] * unlimited + [seats] * bool(seats)):
        school, _ = School.objects.get_or_create(
            district=district,
            code=f"rehearsal-{number:05}",
            defaults={"name": f"Rehearsal {number:05}"},
        )
        # A load generator is one address, which begins as often as there are students.
        SchoolCount.objects.get_or_create(
            administration=administration,
            school=school,
            replaced_at=None,
            defaults={"count": LARGEST_COUNT, "by": "open_code_rehearsal"},
        )
        code = create_open_code(
            administration=administration,
            school=school,
            by="open_code_rehearsal",
            limit=limit,
        )
        codes.append(format_code(code_of(code)))
    return administration, codes


@transaction.atomic
def delete_starts(administration: Administration) -> None:
    """Delete a rehearsal's open codes, people and answers. Raises NotARehearsal."""
    codes = OpenCode.objects.filter(administration=administration)
    OpenCodeSeat.objects.filter(open_code__in=codes).delete()
    OpenDecline.objects.filter(open_code__in=codes).delete()
    people = administration.respondents.exclude(open_code=None)
    # Django would look for what refers to each of these rows: nothing else does.
    for rows in (people, codes):
        rows._raw_delete(rows.db)
    delete_answers(administration)
