"""Rows have the version of the survey that the person was offered."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from accounts.models import AuditEntry
from reports.exports import released_rows
from reports.exports.offered_versions import ACTION, offered_versions
from reports.tests.exports.conftest import FIRST, answer, draft, made
from reports.tests.exports.test_formats import rows_of
from survey.instrument.definitions.corrections import publish_correction, use_correction
from survey.models import Administration, PublishedSurvey

pytestmark = pytest.mark.django_db

NOON = datetime(2027, 3, 1, 18, tzinfo=UTC)


@pytest.fixture
def correction(staff, fall) -> PublishedSurvey:
    corrected = [*FIRST[:2], [*FIRST[2][:2], "I feel safe.", *FIRST[2][3:]], *FIRST[3:]]
    return publish_correction(
        survey=draft(corrected, "1.1"), corrects=fall.published, by=staff.state
    )


@pytest.fixture
def corrected_at_noon(fall, correction) -> Administration:
    """Correct the texts at a fixed time, as `use_correction` records it."""
    AuditEntry.objects.create(
        at=NOON,
        action=ACTION,
        kind="survey.administration",
        subject_id=fall.pk,
        before={"digest": fall.published_id},
        after={"digest": correction.digest},
    )
    # The fixture keeps its first version, which has the keys of the items.
    Administration.objects.filter(pk=fall.pk).update(published=correction)
    return fall


def versions_by_age(export) -> dict[str, str]:
    return {row["age"]: row["survey_version"] for row in rows_of(export)}


@pytest.mark.sqlite
def test_rows_have_the_version_that_was_offered_at_the_start(
    staff, fall, spring, correction, enrol
):
    now = timezone.now()
    hour = timedelta(hours=1)
    answer(enrol(fall, staff.lincoln, started_at=now - hour), {"age": "9"})
    answer(enrol(spring, staff.lincoln, started_at=now - hour), {"age": "10"})
    use_correction(administration=fall, published=correction, by=staff.state)
    answer(enrol(fall, staff.lincoln, started_at=now + hour), {"age": "11"})
    export = made(staff.state, fall, spring)
    assert versions_by_age(export) == {"9": "1", "10": "2", "11": "1.1"}


def test_a_correction_can_be_taken_back(staff, fall, correction, enrol):
    first = fall.published
    for used in (correction, first):
        use_correction(administration=fall, published=used, by=staff.state)
        fall.refresh_from_db()
    answer(enrol(fall, staff.lincoln), {"age": "9"})
    versions = offered_versions([fall])[fall.pk]
    assert versions.names == ("1", "1.1", "1")
    assert versions_by_age(made(staff.state, fall)) == {"9": "1"}


@pytest.mark.sqlite
def test_the_version_is_known_to_the_second(staff, corrected_at_noon, enrol):
    second = timedelta(seconds=1)
    for age, started in (("9", NOON - second), ("10", NOON)):
        person = enrol(corrected_at_noon, staff.lincoln, started_at=started)
        answer(person, {"age": age})
    export = made(staff.state, corrected_at_noon)
    assert versions_by_age(export) == {"9": "1", "10": "1.1"}


@pytest.fixture
def same_day(staff, corrected_at_noon, enrol) -> Administration:
    """20 people started before the correction, and 3 on the afternoon after it."""
    for number in range(23):
        hours = timedelta(hours=-2 if number < 20 else 2)
        person = enrol(corrected_at_noon, staff.lincoln, started_at=NOON + hours)
        answer(person, {"age": str(number)})
    corrected_at_noon.minimum_group = 5
    corrected_at_noon.save(update_fields=["minimum_group"])
    return corrected_at_noon


def sizes(export) -> Counter[tuple[str, str]]:
    return Counter((row["survey_version"], row["started"]) for row in rows_of(export))


def test_a_version_is_left_out_where_few_people_started_with_it(staff, same_day):
    class_sizes = sizes(made(staff.state, same_day))
    assert class_sizes == {("*", "*"): 23}


def test_a_version_of_enough_people_is_shown(staff, same_day):
    same_day.minimum_group = 3
    same_day.save(update_fields=["minimum_group"])
    class_sizes = sizes(made(staff.state, same_day))
    assert class_sizes == {("1", "2027-03-01"): 20, ("1.1", "2027-03-01"): 3}


def test_without_counting_versions_the_few_people_could_be_singled_out(
    staff, same_day, monkeypatch
):
    path = released_rows.start_path
    monkeypatch.setattr(
        released_rows, "start_path", lambda *parts: path(*parts[:-1], 0)
    )
    class_sizes = sizes(made(staff.state, same_day))
    assert class_sizes["1.1", "2027-03-01"] == 3


def test_finding_the_versions_needs_two_statements(
    staff, corrected_at_noon, spring, django_assert_num_queries
):
    chosen = list(Administration.objects.select_related("published__survey"))
    with django_assert_num_queries(2):
        versions = offered_versions(chosen)
    assert versions[corrected_at_noon.pk].names == ("1", "1.1")
    with django_assert_num_queries(1):
        assert offered_versions([spring])[spring.pk].is_single
