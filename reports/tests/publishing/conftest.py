"""Results that can be published, and their publication."""

from __future__ import annotations

from datetime import datetime

import pytest

from reports.models import Publication
from reports.publishing.freezing import basis_of
from reports.publishing.publications import (
    administration_to_publish,
    request_publication,
)
from reports.tests.console.scores.conftest import (  # noqa: F401
    answered,
    fall,
    scored,
    survey,
)
from survey import jobs
from survey.tests.conftest import empty_caches  # noqa: F401


@pytest.fixture
def publish(staff):
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
