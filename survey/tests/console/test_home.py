"""The console's home page: open surveys and next steps, by role."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from accounts.permissions import Capability, Permissions
from accounts.tests.conftest import staff  # noqa: F401
from accounts.tests.logging_in import log_in
from survey.console.home import have_people_in_own_schools
from survey.models import Administration, RosterUpload
from survey.tests.conftest import enrol

pytestmark = pytest.mark.django_db


def home(user):
    return log_in(Client(), user).get("/console/").content.decode()


def test_coordinators_see_their_next_step(staff, administration):  # noqa: F811
    upload = reverse("roster_upload", args=[administration.pk])
    cards = reverse("cards_list", args=[administration.pk])
    text = home(staff.chen)
    assert "No one is invited yet. Upload a roster first." in text
    assert upload in text and cards not in text

    enrol(administration, staff.lincoln)
    text = home(staff.chen)
    assert "remind the others" in text
    assert cards in text and reverse("people_list", args=[administration.pk]) in text

    # At Roosevelt no one is invited.
    assert "No one is invited yet" in home(staff.sam)


def test_open_codes_are_the_next_step_where_anyone_can_take_part(
    staff,  # noqa: F811
    administration,
):
    Administration.objects.update(denominator="count")
    text = home(staff.chen)

    assert "Anyone with a school's open code can take part." in text
    assert reverse("open_codes_list", args=[administration.pk]) in text
    assert "No one is invited" not in text
    assert reverse("roster_upload", args=[administration.pk]) not in text


def test_analysts_see_links_to_rates_and_exports_only(
    staff,  # noqa: F811
    administration,
):
    enrol(administration, staff.lincoln)
    text = home(staff.analyst)

    assert f"{reverse('export_new')}?administrations={administration.pk}" in text
    assert f"{reverse('rates_board')}?administration={administration.pk}" in text
    assert reverse("cards_list", args=[administration.pk]) not in text
    assert reverse("roster_upload", args=[administration.pk]) not in text


def test_closed_administrations_are_not_listed(staff, administration):  # noqa: F811
    now = timezone.now()
    Administration.objects.update(
        opens_at=now - timedelta(days=2), closes_at=now - timedelta(days=1)
    )

    text = home(staff.chen)
    assert "No survey is open or planned" in text
    assert administration.title not in text


def test_surveys_with_own_people_come_before_new_ones_of_the_state(
    staff,  # noqa: F811
    administration,
):
    enrol(administration, staff.lincoln)
    own = administration.pk
    # Each opened earlier than the one with people.
    for n in range(7):
        administration.pk, administration.name = None, f"of-the-state-{n}"
        administration.opens_at -= timedelta(hours=1)
        administration.save()
    text = home(staff.chen)
    tasks = re.findall(r'<section class="panel" aria-labelledby="task-(\d+)"', text)
    assert (tasks[0], len(tasks)) == (str(own), 6)


@pytest.mark.parametrize("count", [1, 3])
def test_the_home_page_costs_the_same_for_one_and_for_three(
    staff,  # noqa: F811
    administration,
    count,
    django_assert_num_queries,
):
    for n in range(1, count):
        administration.pk, administration.name = None, f"another-{n}"
        administration.save()
    client = log_in(Client(), staff.chen)
    with django_assert_num_queries(5):
        text = client.get("/console/").content.decode()
    assert text.count('id="task-') == count


@pytest.mark.skipif(connection.vendor == "sqlite", reason="its planner differs")
def test_checking_a_new_administration_for_people_reads_few_rows(
    staff,  # noqa: F811
    administration,
    django_assert_num_queries,
):
    # The statistics do not know the new administration yet.
    lincoln, cursor = staff.lincoln.pk, connection.cursor()
    cursor.execute(
        """
        INSERT INTO survey_respondent (administration_id, school_id, grade, classroom,
            language, attributes, issue, code_digest, code_key_version)
        SELECT %s, %s, '', '', '', '{}', 1, sha256(n::text::bytea), 2
        FROM generate_series(1, 20000) AS n
        """,
        [administration.pk, lincoln],
    )
    cursor.execute("ANALYZE survey_respondent")
    old = administration.pk
    administration.pk, administration.name = None, "just-opened"
    administration.save()
    both = [Administration.objects.get(pk=pk) for pk in (old, administration.pk)]
    with CaptureQueriesContext(connection) as captured:
        found = have_people_in_own_schools(Permissions(staff.state), both)
    assert list(found) == [True, False]
    cursor.execute(f"EXPLAIN (ANALYZE) {captured[-1]['sql']}")
    removed = [line for (line,) in cursor.fetchall() if "Rows Removed" in line]
    assert not any(int(line.split()[-1]) > 1000 for line in removed), removed


def links_from(user, address):
    return log_in(Client(), user).get(address).content.decode()


def test_an_administration_links_to_its_pages(staff, administration):  # noqa: F811
    pk = administration.pk
    pages = {
        f"{reverse('rates_board')}?administration={pk}": "SEE_RATES",
        reverse("people_list", args=[pk]): "SEE_IDENTITIES",
        reverse("cards_list", args=[pk]): "SEE_IDENTITIES",
        reverse("roster_upload", args=[pk]): "MANAGE_ROSTERS",
        f"{reverse('roster_list')}?administration={pk}": "MANAGE_ROSTERS",
        f"{reverse('export_new')}?administrations={pk}": "SEE_RESPONSES",
    }
    for user in (staff.dana, staff.chen, staff.analyst):
        text = links_from(user, reverse("administration_detail", args=[pk]))
        permissions = Permissions(user)
        for address, needed in pages.items():
            has = permissions.has(Capability[needed])
            assert (f'href="{address}"' in text) == has, (user, address)


def test_rosters_can_be_filtered_by_administration(staff, administration):  # noqa: F811
    RosterUpload.objects.create(
        administration=administration, by=staff.dana, name="mine.csv", size=1,
        district=staff.riverside,
    )  # fmt: skip
    address = reverse("roster_list")
    assert "mine.csv" in links_from(staff.dana, address)
    of_it = links_from(staff.dana, f"{address}?administration={administration.pk}")
    assert "mine.csv" in of_it and "Show all rosters" in of_it
    of_another = links_from(staff.dana, f"{address}?administration=999")
    assert "mine.csv" not in of_another and "No roster has been uploaded" in of_another
    # An invalid key is ignored.
    assert "mine.csv" in links_from(staff.dana, f"{address}?administration=x%00")
