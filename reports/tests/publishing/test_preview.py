"""What a preview reads, and that it is what would be published."""

from __future__ import annotations

import pytest
from django.core.cache import cache
from django.utils import timezone

from accounts.models import School
from reports.models import GroupResults, ResultsRollUp, RollUp, SchoolRate
from reports.publishing.freezing import basis_of
from reports.publishing.preview import Preview
from reports.publishing.publications import (
    PublicationRefused,
    administration_to_publish,
    request_publication,
)

pytestmark = pytest.mark.django_db


def change_rate(administration, school, **columns):
    """Change a rate as a roll-up does."""
    SchoolRate.objects.filter(school=school).update(**columns)
    now = timezone.now()
    RollUp.objects.update_or_create(
        administration=administration,
        defaults={"as_of": now, "written_at": now, "changed_at": now},
    )


def preview_of(administration):
    return Preview(administration_to_publish(administration.pk))


def test_a_preview_of_each_place_is_what_is_published_of_it(staff, fall, publish):
    preview = preview_of(fall)
    shown = {
        (level, key): preview.places(level, key)
        for level, key in (
            ("state", 0),
            ("district", staff.riverside.pk),
            ("school", staff.lincoln.pk),
        )
    }
    frame = preview.frame()
    publication = publish(fall)
    assert frame == publication.frame
    for (level, key), places in shown.items():
        row = publication.places.get(level=level, place_id=key)
        assert places[0].digest == row.digest
        around = publication.places.filter(level__in=["district", "state"])
        digests = set(around.values_list("digest", flat=True))
        assert {place.digest for place in places[1:]} <= digests
    levels = [place.level for place in shown["school", staff.lincoln.pk]]
    assert levels == ["school", "district", "state"]


@pytest.mark.parametrize("more", [1, 30])
def test_a_school_is_read_alone_once_the_sums_are_known(
    staff, fall, more_schools, more, django_assert_num_queries
):
    more_schools(fall, more)
    with django_assert_num_queries(3 + 8):
        preview_of(fall).places("state", 0)
    with django_assert_num_queries(3 + 6):
        places = preview_of(fall).places("school", staff.lincoln.pk)
    assert places[2].summary["schools"] == 2 + more
    with django_assert_num_queries(2):
        preview_of(fall).places("district", staff.riverside.pk)


def test_without_a_cache_previews_are_the_same(staff, fall, monkeypatch):
    uncached = preview_of(fall).places("school", staff.lincoln.pk)
    cached = preview_of(fall).places("school", staff.lincoln.pk)
    cache.clear()
    monkeypatch.setattr(cache, "set_many", lambda *args: None)
    without = preview_of(fall).places("school", staff.lincoln.pk)
    for places in (cached, without):
        assert [place.digest for place in places] == [
            place.digest for place in uncached
        ]


def test_figures_that_are_counted_again_are_added_up_again(staff, fall):
    def finished():
        return preview_of(fall).places("state", 0)[0].summary["rate"]["finished"]

    assert finished() == 100
    rows = GroupResults.objects.filter(level="school", place_id=staff.lincoln.pk)
    rows.update(is_hidden=True)
    # Kept for as long as the same count is shown.
    assert finished() == 100
    now = timezone.now()
    ResultsRollUp.objects.filter(pk=fall.pk).update(as_of=now, hidden_as_of=now)
    assert finished() == 40


def test_a_school_that_loses_its_report_leaves_the_sums(staff, fall):
    assert preview_of(fall).places("school", staff.lincoln.pk)
    change_rate(fall, staff.lincoln, finished=20)
    preview = preview_of(fall)
    assert preview.places("school", staff.lincoln.pk) == []
    assert preview.places("state", 0)[0].summary["rate"]["finished"] == 40


def test_a_rate_that_changed_after_the_preview_is_not_published(staff, fall, publish):
    before = basis_of(administration_to_publish(fall.pk))
    change_rate(fall, staff.lincoln, finished=59)
    with pytest.raises(PublicationRefused, match="changed since the preview"):
        request_publication(
            administration=fall, basis=before, embargo_until=None, by=staff.state
        )
    assert publish(fall).published_at


def test_what_is_not_published_has_no_preview(staff, fall):
    preview = preview_of(fall)
    assert preview.places("school", staff.washington.pk) == []
    empty = School.objects.create(district=staff.lakeside, name="Empty", code="e")
    assert preview.places("school", empty.pk) == []
    assert preview.places("district", 10**15) == []
    # If the state is hidden, nothing is.
    GroupResults.objects.filter(level="state").update(is_hidden=True)
    cache.clear()
    assert preview_of(fall).places("school", staff.lincoln.pk) == []
