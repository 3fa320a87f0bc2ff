"""Results that can be published, and their publication."""

from __future__ import annotations

from datetime import datetime

import pytest

from accounts.models import School
from reports.models import GroupResults, Publication, SchoolRate, ScoreRow
from reports.publishing.freezing import basis_of
from reports.publishing.publications import (
    administration_to_publish,
    request_publication,
)
from reports.tests.console.scores.conftest import (  # noqa: F401
    fall,
    new_survey,
    shared_fall,
)
from reports.tests.scores.conftest import shared_staff, staff  # noqa: F401
from survey.tests.conftest import empty_caches  # noqa: F401
from survey.work import jobs


@pytest.fixture
def publish(staff):  # noqa: F811
    def publish(administration, embargo_until: datetime | None = None) -> Publication:
        """Publish what is there now; the job has ended."""
        current = administration_to_publish(administration.pk)
        publication = request_publication(
            administration=current,
            basis=basis_of(current),
            embargo_until=embargo_until,
            by=staff.state,
        )
        jobs.run(publication.job_id)
        publication.refresh_from_db()
        return publication

    return publish


@pytest.fixture
def more_schools(staff):  # noqa: F811
    def more_schools(administration, number: int) -> None:
        """Give Riverside more schools with the figures of Lincoln."""
        lincoln = staff.lincoln.pk
        schools = School.objects.bulk_create(
            School(district=staff.riverside, name=f"School {n}", code=f"more-{n}")
            for n in range(number)
        )
        for model, place in (
            (SchoolRate, "school_id"),
            (GroupResults, "place_id"),
            (ScoreRow, "place_id"),
        ):
            rows = model.objects.filter(
                administration=administration, **{place: lincoln}
            )
            if model is not SchoolRate:
                rows = rows.filter(level="school")
            for row in list(rows):
                values = {
                    field.attname: getattr(row, field.attname)
                    for field in model._meta.concrete_fields
                    if not field.primary_key
                }
                model.objects.bulk_create(
                    model(**{**values, place: school.pk}) for school in schools
                )

    return more_schools
