"""The console's pages for merging duplicates."""

from __future__ import annotations

import pytest
from django.test import Client

from accounts.models import District, School
from accounts.tests.logging_in import log_in
from survey.models import PlaceMerge
from survey.people.merging.merges import latest_job
from survey.tests.people import invite
from survey.work import jobs

pytestmark = pytest.mark.django_db


def run_job(merge):
    jobs.run(latest_job(merge).pk)
    merge.refresh_from_db()


def test_a_state_administrator_merges_two_districts(
    staff, copy, lincoln_copy, administration
):
    invite(administration, lincoln_copy, "00123", "Maya Lopez")
    client = log_in(Client(), staff.state)
    reply = client.post(
        "/console/merges/new/", {"duplicate": copy.pk, "kept": staff.riverside.pk}
    )
    merge = PlaceMerge.objects.get()
    assert reply.url == f"/console/merges/{merge.pk}/"
    run_job(merge)
    page = client.get(reply.url).content.decode()
    assert "person moves" in page
    assert "Lincoln (0042)" in page

    confirm = f"/console/merges/{merge.pk}/confirm/"
    page = client.post(confirm, {"typed": "Riverside"}).content.decode()
    assert "Type the name of the duplicate: Northfield Unified" in page
    client.post(confirm, {"typed": "northfield unified"})
    run_job(merge)
    assert merge.state == "merged"
    assert not District.objects.filter(pk=copy.pk).exists()
    assert "go to Riverside" in client.get(reply.url).content.decode()


def test_a_district_merges_its_own_schools_only(staff):
    client = log_in(Client(), staff.dana)
    form = {"duplicate": staff.washington.pk, "kept": staff.lincoln.pk}
    assert client.post("/console/merges/new/", form).status_code == 302
    schools_elsewhere = {"duplicate": staff.roosevelt.pk, "kept": staff.lincoln.pk}
    assert client.post("/console/merges/new/", schools_elsewhere).status_code == 200
    empty = client.post("/console/merges/new/", {"duplicate": "", "kept": ""})
    empty = empty.content.decode()
    assert empty.count("Choose a school.") >= 2 and "is required" not in empty
    districts = {"duplicate": staff.lakeside.pk, "kept": staff.riverside.pk}
    client.post("/console/merges/new/", districts)
    assert not PlaceMerge.objects.filter(kind="districts").exists()
    address = f"/console/merges/new/?district={staff.lakeside.pk}"
    assert client.get(address).status_code == 404


def test_coordinators_cannot_merge(staff):
    for user in (staff.chen, staff.analyst):
        client = log_in(Client(), user)
        assert client.get("/console/merges/").status_code == 404
        assert client.get("/console/merges/new/").status_code == 404


def test_merges_of_districts_are_hidden_from_districts(staff, copy, merge):
    created = merge(copy, staff.riverside, by=staff.state)
    client = log_in(Client(), staff.dana)
    assert client.get(f"/console/merges/{created.pk}/").status_code == 404
    assert "Northfield" not in client.get("/console/merges/").content.decode()
    state = log_in(Client(), staff.state)
    assert "Northfield" in state.get("/console/merges/").content.decode()


def test_small_numbers_of_people_who_started_are_hidden(staff, copy):
    created = PlaceMerge.objects.create(
        kind="districts",
        district=staff.riverside,
        kept_id=staff.riverside.pk,
        kept_name="Riverside",
        duplicate_id=copy.pk,
        duplicate_name="x",
        duplicate_code="x",
        state="checked",
        by=staff.state,
        report={
            "people": 9,
            "pairs": 8,
            "one_started": 4,
            "both_started": 5,
            "merged_schools": [],
            "moved_schools": 0,
            "staff": 0,
            "open_codes": 0,
        },
    )
    client = log_in(Client(), staff.state)
    page = client.get(f"/console/merges/{created.pk}/").content.decode()
    assert "fewer than 5" in page
    assert '<p class="figure">4</p>' not in page
    assert '<p class="figure">5</p>' in page


@pytest.mark.parametrize("rows", [1, 3])
def test_lists_cost_the_same_for_any_number_of_rows(
    staff, rows, django_assert_num_queries
):
    for number in range(rows):
        School.objects.create(district=staff.riverside, code=f"n{number}", name="New")
        PlaceMerge.objects.create(
            kind="schools",
            district=staff.riverside,
            kept_id=1,
            kept_name="Lincoln",
            duplicate_id=100 + number,
            duplicate_name="New",
            duplicate_code="x",
            by=staff.dana,
        )
    client = log_in(Client(), staff.dana)
    # Session, user, permissions; the number of merges and one page of them.
    with django_assert_num_queries(5):
        client.get("/console/merges/")
    # Session, user, permissions; the district, its schools twice, and the districts.
    with django_assert_num_queries(7):
        client.get("/console/merges/new/")
