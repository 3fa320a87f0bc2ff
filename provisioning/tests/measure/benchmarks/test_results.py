"""The earlier wave of `provisioning/measure_results` has something to compare."""

from __future__ import annotations

import pytest
from django.urls import reverse

from accounts.tests.conftest import create_staff
from accounts.tests.logging_in import log_in
from provisioning.measure.benchmarks.measured_survey import add_earlier_wave
from reports.tests.console.scores.conftest import create_fall
from survey.models import Administration

pytestmark = pytest.mark.django_db


def test_the_page_of_changes_compares_all_schools(client):
    staff = create_staff()
    fall = create_fall(staff)
    Administration.objects.filter(pk=fall.pk).update(name="measured")
    earlier = Administration.objects.get(pk=add_earlier_wave())
    log_in(client, staff.state)
    page = client.get(
        reverse("scores_changes", args=[fall.pk]), {"compare": earlier.pk}
    ).context["page"]
    assert page.compared == earlier
    # Washington is below its threshold in both waves.
    assert {school.line.name for school in page.changed} == {"Lincoln", "Roosevelt"}
    assert any(school.change for school in page.changed)
