"""The console's home page: rates and the next step of each administration."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from accounts.models import Membership, School
from accounts.permissions import Permissions
from accounts.tests.logging_in import log_in
from reports.console.home import have_people_in_own_schools
from reports.models import SchoolRate
from reports.rates import visible_rates
from reports.rates.rollup import roll_up
from reports.tests.conftest import invite
from survey.fieldwork.school_calendar import SchoolCalendar
from survey.models import (
    Administration,
    CardSet,
    FeedScan,
    Role,
    RosterFeed,
    RosterUpload,
)

pytestmark = pytest.mark.django_db


def page_of(user):
    return log_in(Client(), user).get("/console/").content.decode()


def words_of(user):
    """Return the visible text of the page in one line."""
    main = page_of(user).partition("<main")[2]
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", main))


def button_of(user):
    """Return label and address of the first next step."""
    match = re.search(
        r'<a class="button small" href="([^"]+)">([^<]+)</a>', page_of(user)
    )
    return (match[2], match[1].replace("&amp;", "&")) if match else None


def ago(**time):
    return timezone.now() - timedelta(**time)


@pytest.fixture
def counted(staff, students):
    """Lincoln needs 8 more, Roosevelt has enough, Washington has no roster."""
    invite(students, staff.lincoln, 20, grade="07", finished=10, at=ago(days=9))
    invite(students, staff.lincoln, 20, grade="08", finished=2, at=ago(days=2))
    invite(students, staff.roosevelt, 30, grade="07", finished=20)
    roll_up()
    return students


def test_a_coordinator_sees_the_rate_of_the_own_school_and_what_it_needs(
    staff, counted
):
    text = words_of(staff.chen)
    assert counted.title in text
    assert "Lincoln 30 % 12 of 40 students finished" in text
    assert "8 more students to reach 50 %" in text
    assert "10 days left" in text
    assert "Roosevelt" not in text and "50 finished" not in text
    assert "Roosevelt 66 % 20 of 30 students finished" in words_of(staff.sam)


def test_administrators_see_their_total_and_the_schools_below_the_threshold(
    staff, counted
):
    query = f"?administration={counted.pk}"
    text = words_of(staff.dana)
    assert "Riverside 30 % 12 of 40 students finished" in text
    assert "1 of 1 school below the threshold" in text
    assert "1 school without a roster" in text
    district = f"/console/rates/districts/{staff.riverside.pk}/{query}"
    below = f"{district}&state=below&sort=-missing"
    assert button_of(staff.dana) == ("See schools to remind", below)
    page = log_in(Client(), staff.dana).get(below).content.decode()
    assert ">Lincoln<" in page

    text = words_of(staff.state)
    assert "All schools 45 % 32 of 70 students finished" in text
    assert "1 of 2 schools below the threshold" in text
    assert "Threshold: 50 % in each school." in text
    below = f"/console/rates/schools/{query}&state=below&sort=-missing"
    assert button_of(staff.state) == ("See schools to remind", below)


def test_a_place_says_from_which_to_which_its_thresholds_are(staff, counted):
    rates = SchoolRate.objects.filter(administration=counted)
    rates.filter(school=staff.lincoln).update(percent=80)
    assert "Threshold: 50 % to 80 % in each school." in words_of(staff.state)
    assert "Threshold: 80 % in each school." in words_of(staff.dana)
    # Washington has no one, so its threshold does not count.
    rates.filter(school=staff.washington).update(percent=10)
    assert "Threshold: 80 % in each school." in words_of(staff.dana)
    assert "reached Threshold: 50 %." in words_of(staff.sam)
    assert "Threshold:" not in words_of(staff.chen)


def test_rates_are_those_of_the_rates_pages(staff, counted):
    for user in (staff.state, staff.dana, staff.analyst, staff.chen, staff.sam):
        [rate, *_] = re.findall(r"(\d+) % (\d+) of (\d+) students", words_of(user))
        page = log_in(Client(), user).get("/console/rates/", follow=True)
        figures = page.context.get("total") or page.context["panels"][0].line
        shown = (figures.rate, figures.finished, figures.eligible)
        assert tuple(map(int, rate)) == shown


def test_a_user_of_a_district_and_of_another_school_sees_both(staff, counted):
    Membership.objects.create(
        user=staff.dana, role="coordinator", school=staff.roosevelt
    )
    text = words_of(staff.dana)
    assert "Riverside 30 % 12 of 40" in text
    assert "Roosevelt 66 % 20 of 30" in text


# Hidden numbers


@pytest.fixture
def small_school(staff, students):
    """Two of eight have finished at Washington, where Ms Chen works as well."""
    Membership.objects.create(
        user=staff.chen, role="coordinator", school=staff.washington
    )
    invite(students, staff.lincoln, 30, finished=17)
    invite(students, staff.washington, 8, started=3, finished=2)
    roll_up()
    return students


def test_a_small_school_is_hidden_from_its_coordinator(staff, small_school):
    text = words_of(staff.chen)
    assert "Washington 8 students invited: too few people to show how many" in text
    assert "*" not in text
    assert "Too few people to show who has finished" in text
    assert "Lincoln 56 % 17 of 30" in text
    # The total minus Lincoln would be Washington.
    assert "19 of 38" not in text
    # Only Lincoln has a line.
    assert page_of(staff.chen).count("<polyline") == 1
    # There is something to hide.
    assert "19 of 38" in words_of(staff.dana)


def test_without_suppression_the_coordinator_would_see_it(
    staff, small_school, monkeypatch
):
    monkeypatch.setattr(visible_rates, "hides_school", lambda *sizes: False)
    assert "Washington 25 % 2 of 8" in words_of(staff.chen)


def heights(user):
    [points] = re.findall(r'<polyline points="([^"]+)"', page_of(user))
    return [float(point.partition(",")[2]) for point in points.split()]


def test_the_line_of_a_coordinator_has_no_step_of_a_single_person(staff, students):
    invite(students, staff.lincoln, 40)
    invite(students, staff.lincoln, 12, finished=12, at=ago(days=6))
    invite(students, staff.lincoln, 1, finished=1, at=ago(days=2))
    roll_up()
    # Down from 0 %, once for the coordinator and twice for the district.
    assert len(set(heights(staff.chen))) == 2
    assert len(set(heights(staff.dana))) == 3


def test_the_line_has_a_text(staff, counted):
    page = page_of(staff.dana)
    assert '<svg class="sparkline"' in page
    label = "25 % had finished a week ago, and 30 % have by now."
    assert f'role="img" aria-label="{label}"' in page


def test_the_pace_is_a_sentence(staff, students, monkeypatch):
    # On a Saturday, a district has no sentence about today.
    monkeypatch.setattr(SchoolCalendar, "is_school_day", lambda *_: True)
    invite(students, staff.lincoln, 400)
    for days in range(1, 8):
        invite(students, staff.lincoln, 20, finished=20, at=ago(days=days))
    roll_up()
    for user in (staff.chen, staff.dana):
        assert re.search(r"\d+ a day are needed; \d+", words_of(user)), user
    assert "came in the last week" in words_of(staff.chen)


def test_a_school_on_track_without_a_start_has_one_badge(staff, students):
    invite(students, staff.lincoln, 40)
    invite(students, staff.lincoln, 12, finished=12, at=ago(days=5))
    roll_up()
    text = words_of(staff.chen)
    assert re.search(r"came in the last week\. No start for \d school days", text)
    assert "on track" not in text


def test_fewer_than_ten_is_not_said_where_fewer_have_finished(staff, administer):
    invite(administer("teachers", Role.TEACHER), staff.lincoln, 8, finished=2)
    roll_up()
    text = words_of(staff.chen)
    assert "2 of 8 teachers finished 6 more teachers to reach 8" in text
    assert "1 a day is needed." in text
    assert "fewer than 10" not in text


# Next steps


def test_without_people_a_roster_is_the_next_step(staff, students):
    upload = reverse("roster_upload", args=[students.pk])
    cards = reverse("cards_list", args=[students.pk])
    assert "No one is invited yet. Upload a roster first." in words_of(staff.chen)
    assert button_of(staff.chen) == ("Upload a roster", upload)
    assert cards not in page_of(staff.chen)

    invite(students, staff.lincoln, 12)
    roll_up()
    assert button_of(staff.chen) == ("Print login cards", cards)
    # Cards of another district, or that were not made, change nothing.
    card_set = CardSet.objects.create(
        administration=students,
        district=staff.lakeside,
        format="zip",
        by=staff.state,
        made_at=timezone.now(),
    )
    CardSet.objects.create(administration=students, format="zip", by=staff.state)
    assert button_of(staff.chen) == ("Print login cards", cards)
    # The state has made them for all schools: nobody is asked to print them twice.
    CardSet.objects.filter(pk=card_set.pk).update(district=None)
    assert button_of(staff.chen) == ("Login cards", cards)
    CardSet.objects.all().delete()
    # Once people have started, they are the second button.
    invite(students, staff.lincoln, 12, finished=2)
    roll_up()
    assert button_of(staff.chen)[0] == "See response rates"
    assert f'href="{cards}">Login cards' in page_of(staff.chen)
    # Administrators reach them in the workspace.
    assert cards not in page_of(staff.dana)
    # At Roosevelt no one is invited.
    assert button_of(staff.sam) == ("Upload a roster", upload)


def test_who_is_missing_is_the_next_step_where_coordinators_may_see_it(staff, counted):
    rates = f"/console/rates/?administration={counted.pk}"
    assert button_of(staff.chen) == ("See response rates", rates)

    counted.coordinators_see_finished = True
    counted.save()
    label, address = button_of(staff.chen)
    assert label == "See who has not finished"
    people = f"/console/administrations/{counted.pk}/people/"
    assert address == f"{people}?school={staff.lincoln.pk}&state=not-finished"
    assert log_in(Client(), staff.chen).get(address).status_code == 200
    # Never for teachers.
    Administration.objects.update(role=Role.TEACHER, coordinators_see_finished=False)
    assert button_of(staff.chen)[0] == "See response rates"


def test_analysts_are_offered_no_people(staff, counted):
    page = page_of(staff.analyst)
    assert f"?administration={counted.pk}" in page
    assert reverse("cards_list", args=[counted.pk]) not in page
    assert reverse("roster_upload", args=[counted.pk]) not in page


def test_open_codes_are_the_next_step_where_anyone_can_take_part(staff, students):
    Administration.objects.update(denominator="count")
    codes = reverse("open_codes_list", args=[students.pk])
    assert "Anyone with a school's link can take part" in words_of(staff.chen)
    assert button_of(staff.chen) == ("Hand out school links", codes)
    assert "No one is invited" not in words_of(staff.chen)
    assert reverse("roster_upload", args=[students.pk]) not in page_of(staff.chen)


def test_planned_administrations_are_named_with_what_to_prepare(staff, administer):
    planned = administer(opens_at=timezone.now() + timedelta(days=3))
    upload = reverse("roster_upload", args=[planned.pk])
    cards = reverse("cards_list", args=[planned.pk])
    for people, button in (
        (0, ("Upload a roster", upload)),
        (12, ("Print login cards", cards)),
    ):
        invite(planned, staff.lincoln, people)
        roll_up()
        text = words_of(staff.chen)
        assert f"{planned.title} planned Opens" in text
        assert "No survey is open now." in text
        assert button_of(staff.chen) == button
    assert "0 of 12" not in text


def test_closed_administrations_follow_with_their_last_rate(staff, counted):
    counted.closes_at = ago(days=1)
    counted.save()
    for user, rate in ((staff.chen, "30 %"), (staff.state, "45 %")):
        text = words_of(user)
        assert "No survey is open or planned" in text
        assert f"{counted.title} {rate} finished" in text.partition("Closed")[2]
    results = f'href="/console/results/{counted.pk}/"'
    assert results in page_of(staff.dana)
    assert results not in page_of(staff.chen)


def test_without_administrations_every_page_is_explained(staff):
    text = words_of(staff.chen)
    assert "No survey is open or planned in your schools." in text
    assert "Follow starts and finishes, school by school." in text
    assert button_of(staff.chen) is None
    assert "New survey round" in words_of(staff.dana)
    assert "New survey round" not in text


def test_open_surveys_that_do_not_fit_are_one_link_away(staff, administer, monkeypatch):
    monkeypatch.setattr("reports.console.home.MAX_SHOWN", 2)
    for number in range(2):
        administer(f"open-{number}")
    assert "more open" not in words_of(staff.state)
    for number in range(2, 5):
        administer(f"open-{number}")
    assert "3 more open surveys" in words_of(staff.state)
    assert "/console/administrations/?state=open" in page_of(staff.state)


def test_names_distinguish_administrations_with_the_same_title(
    staff, counted, administer
):
    assert counted.name not in words_of(staff.chen)
    namesake = administer("students-again", opens_at=counted.opens_at)
    text = words_of(staff.chen)
    assert counted.name in text and namesake.name in text


def test_surveys_with_own_people_come_before_new_ones_of_the_state(staff, administer):
    # Each opened earlier than the one with people.
    for n in range(7):
        administer(f"of-the-state-{n}", opens_at=ago(days=11 + n))
    administration = administer("own")
    invite(administration, staff.lincoln, 3)
    tasks = re.findall(r'id="task-(\d+)"', page_of(staff.chen))
    assert (tasks[0], len(tasks)) == (str(administration.pk), 6)


def test_late_figures_have_a_warning(staff, students):
    invite(students, staff.lincoln, 12)
    assert "Not counted yet" in words_of(staff.chen)
    roll_up()
    assert "Counted at" in words_of(staff.chen)
    students.roll_up.as_of = ago(minutes=5)
    students.roll_up.save()
    assert "These figures are 5 minutes old: counting is late." in words_of(staff.chen)


# Attention


def test_what_waits_for_a_person_is_listed(staff, students):
    State = RosterUpload.State
    upload = RosterUpload.objects.create(
        administration=students,
        by=staff.chen,
        school=staff.lincoln,
        name="lincoln.csv",
        size=10,
        state=State.CHECKED,
    )
    feed = RosterFeed.objects.create(
        district=staff.riverside, by=staff.dana, name="Nightly", kind="zip"
    )
    scans = [
        FeedScan.objects.create(
            feed=feed, district=staff.riverside, reason="now", state=state
        )
        for state in ("failed", "held", "waiting")
    ]
    roster = reverse("roster_detail", args=[upload.pk])
    assert f'href="{roster}">Roster “lincoln.csv” is checked' in page_of(staff.chen)
    assert roster in page_of(staff.dana) and roster in page_of(staff.state)
    held = reverse("feed_scan", args=[feed.pk, scans[1].pk])
    page = page_of(staff.dana)
    assert f'href="{held}">Roster sync “Nightly” waits' in page and "failed" not in page
    # Not of other places, and not what has been dealt with.
    for user in (staff.sam, staff.analyst):
        assert "Needs your attention" not in page_of(user)
    assert "Nightly" not in page_of(staff.chen)
    RosterUpload.objects.update(state=State.CANCELLED)
    scans[2].state = FeedScan.State.APPLIED
    scans[2].save()
    assert "Needs your attention" not in page_of(staff.dana)


def test_old_uploads_do_not_wait_any_more(staff, students):
    RosterUpload.objects.create(
        administration=students,
        by=staff.dana,
        district=staff.riverside,
        name="old.csv",
        size=10,
        state=RosterUpload.State.MAPPING,
        uploaded_at=ago(days=15),
    )
    assert "old.csv" not in page_of(staff.dana)
    RosterUpload.objects.update(uploaded_at=ago(days=13))
    assert "Choose the columns of roster “old.csv”." in page_of(staff.dana)


# Cost


@pytest.mark.parametrize("count", [1, 3])
def test_the_home_page_costs_the_same_for_one_and_for_three(
    staff, administer, count, django_assert_num_queries
):
    schools = [staff.lincoln, staff.washington, staff.roosevelt]
    more = [
        School.objects.create(district=staff.riverside, code=f"{n}", name=f"{n}")
        for n in range(1, count)
    ]
    for school in more:
        Membership.objects.create(user=staff.chen, role="coordinator", school=school)
    for n in range(count):
        now_open = administer(f"open-{n}")
        closed = administer(f"closed-{n}", closes_at=ago(days=1))
        administer(f"planned-{n}", opens_at=timezone.now() + timedelta(days=1))
        for school in (*schools, *more):
            invite(now_open, school, 30, finished=12)
            invite(closed, school, 20, finished=12)
    roll_up()
    # Session, user, memberships; administrations, people, calendar; rates, curves;
    # roster syncs of whole districts, uploads; public pages of single schools.
    waiting = {staff.state: 2, staff.dana: 2, staff.analyst: 0, staff.chen: 2}
    for user, lists in waiting.items():
        client = log_in(Client(), user)
        with django_assert_num_queries(8 + lists):
            text = client.get("/console/").content.decode()
        assert text.count('id="task-') == 2 * count
        assert text.count("<polyline") == count * (count if user == staff.chen else 1)


@pytest.mark.skipif(connection.vendor == "sqlite", reason="its planner differs")
def test_checking_a_new_administration_for_people_reads_few_rows(staff, students):
    # The statistics do not know the new administration yet.
    lincoln, cursor = staff.lincoln.pk, connection.cursor()
    cursor.execute(
        """
        INSERT INTO survey_respondent (administration_id, school_id, grade, classroom,
            language, attributes, issue, code_digest, code_key_version)
        SELECT %s, %s, '', '', '', '{}', 1, sha256(n::text::bytea), 2
        FROM generate_series(1, 20000) AS n
        """,
        [students.pk, lincoln],
    )
    cursor.execute("ANALYZE survey_respondent")
    old = students.pk
    students.pk, students.name = None, "just-opened"
    students.save()
    both = [Administration.objects.get(pk=pk) for pk in (old, students.pk)]
    with CaptureQueriesContext(connection) as captured:
        flags = have_people_in_own_schools(Permissions(staff.state), both)
    assert list(flags) == [True, False]
    cursor.execute(f"EXPLAIN (ANALYZE) {captured[-1]['sql']}")
    removed = [line for (line,) in cursor.fetchall() if "Rows Removed" in line]
    assert not any(int(line.split()[-1]) > 1000 for line in removed), removed
