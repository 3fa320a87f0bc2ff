from __future__ import annotations

import csv
import io
import re
from datetime import UTC, datetime, timedelta
from xml.etree import ElementTree

import pytest
from django.utils import timezone

from accounts.models import AuditEntry, District, Membership, School
from accounts.tests.logging_in import log_in
from reports.models import RollUp
from reports.rates.rollup import roll_up
from reports.tests.conftest import invite
from survey.models import DayOff, Role, Wave

pytestmark = pytest.mark.django_db
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def counted(staff, students):
    """Lincoln is below its threshold, Roosevelt above, Washington has no roster."""
    invite(students, staff.lincoln, 20, grade="07", finished=8)
    invite(students, staff.lincoln, 20, grade="08", started=12, finished=4)
    invite(students, staff.roosevelt, 30, grade="07", finished=20)
    roll_up()
    return students


def visible_text(response):
    """Return the visible text of the page in one line."""
    assert response.status_code == 200, response.status_code
    bare = re.sub(
        r"<script.*?</script>|<[^>]+>", " ", response.content.decode(), flags=re.S
    )
    return re.sub(r"\s+", " ", bare)


def test_state_administrators_go_from_districts_to_schools_and_grades(
    client, staff, counted
):
    log_in(client, staff.state)

    board = client.get("/console/rates/")
    assert "Riverside" in visible_text(board)
    assert "32 of 70 students" in visible_text(board)
    assert "1 of 2 schools reached the threshold" in visible_text(board)
    district = f"/console/rates/districts/{staff.riverside.pk}/"
    assert f'href="{district}?administration={counted.pk}"' in board.content.decode()

    schools = visible_text(client.get(district))
    assert "8 more students to reach 50 %" in schools
    assert "No one is invited yet" in schools
    assert "Roosevelt" not in schools

    school = visible_text(client.get(f"/console/rates/schools/{staff.lincoln.pk}/"))
    assert "12 of 40 finished, 20 started" in school
    assert "30 %" in school
    assert "7 20 8 8 40 %" in school.replace("07", "?")
    assert "8 20 12 4 20 %" in school.replace("08", "?")


@pytest.mark.parametrize(
    ("person", "address"),
    [
        ("dana", "/console/rates/districts/{riverside.pk}/?sort=quiet"),
        ("analyst", "/console/rates/districts/{riverside.pk}/?sort=quiet"),
        ("chen", "/console/rates/schools/{lincoln.pk}/?sort=quiet"),
        ("sam", "/console/rates/schools/{roosevelt.pk}/?sort=quiet"),
    ],
)
def test_users_with_a_single_place_are_redirected_to_it(
    client, staff, counted, person, address
):
    response = log_in(client, getattr(staff, person)).get("/console/rates/?sort=quiet")
    assert response["Location"] == address.format_map(vars(staff))
    assert client.get(response["Location"]).status_code == 200


def pages(staff):
    lincoln, riverside = staff.lincoln.pk, staff.riverside.pk
    return {
        "board": ("/console/rates/", "/console/rates/districts.csv"),
        "schools": ("/console/rates/schools/", "/console/rates/schools.csv"),
        "district": (
            f"/console/rates/districts/{riverside}/",
            f"/console/rates/districts/{riverside}/schools.csv",
        ),
        "school": (
            f"/console/rates/schools/{lincoln}/",
            f"/console/rates/schools/{lincoln}/school.csv",
        ),
    }


@pytest.mark.parametrize(
    ("person", "visible"),
    [
        ("state", {"board", "schools", "district", "school"}),
        ("dana", {"board", "schools", "district", "school"}),
        ("analyst", {"board", "schools", "district", "school"}),
        ("chen", {"board", "schools", "school"}),
        ("sam", {"board", "schools"}),
    ],
)
def test_other_places_are_not_found(client, staff, counted, person, visible):
    log_in(client, getattr(staff, person))
    for name, addresses in pages(staff).items():
        for address in addresses:
            status = client.get(address, follow=True).status_code
            assert (address, status) == (address, 200 if name in visible else 404)


def test_without_the_capability_no_page_is_found(client, staff, counted, monkeypatch):
    monkeypatch.setattr(
        "accounts.permissions.CAPABILITIES", dict.fromkeys(Membership.Role, frozenset())
    )
    log_in(client, staff.dana)
    for addresses in pages(staff).values():
        for address in addresses:
            assert client.get(address).status_code == 404


def test_lists_and_files_have_only_schools_of_the_user(client, staff, counted):
    log_in(client, staff.dana)
    for address in pages(staff)["schools"] + pages(staff)["board"]:
        body = client.get(address, follow=True).content.decode()
        assert "Roosevelt" not in body
        assert "Lakeside" not in body
    # There is something to hide.
    log_in(client, staff.state)
    assert "Roosevelt" in client.get("/console/rates/schools.csv").content.decode()


def test_administrations_of_another_district_are_not_found(
    client, staff, counted, administer
):
    theirs = administer("theirs", district=staff.lakeside)
    roll_up()
    log_in(client, staff.dana)
    for addresses in pages(staff).values():
        for address in addresses:
            theirs_at = f"{address}?administration={theirs.pk}"
            assert client.get(theirs_at, follow=True).status_code == 404
    assert "theirs" not in client.get("/console/rates/schools/").content.decode()


def test_an_invalid_administration_is_not_found(client, staff, counted):
    log_in(client, staff.state)
    for key in ("0", "-1", "x", "1e9", "' OR 1=1", "9" * 40):
        response = client.get("/console/rates/schools/", {"administration": key})
        assert response.status_code == 404, key


@pytest.mark.parametrize(
    "query",
    [
        {"sort": "nothing", "page": "x", "state": "nothing", "day": "yesterday"},
        {"sort": "-quiet", "page": "99999999999", "day": "2026-02-31"},
        {"q": "\x00' %_"},
    ],
)
def test_an_invalid_filter_is_ignored(client, staff, counted, query):
    log_in(client, staff.state)
    for address, _ in pages(staff).values():
        assert client.get(address, query, follow=True).status_code == 200


def test_schools_are_searched_sorted_and_filtered(client, staff, counted, students):
    log_in(client, staff.state)

    def shown(**query):
        body = client.get("/console/rates/schools/", query).content.decode()
        return re.findall(r'id="school-\d+"[^>]*>([^<]+)<', body)

    assert shown() == ["Lincoln", "Roosevelt", "Washington"]
    assert shown(sort="-rate") == ["Roosevelt", "Lincoln", "Washington"]
    assert shown(sort="missing")[0] == "Lincoln"
    assert shown(q="roose") == ["Roosevelt"]
    assert shown(q="riverside") == ["Lincoln", "Washington"]
    assert shown(state="below") == ["Lincoln"]
    assert shown(state="reached") == ["Roosevelt"]
    assert shown(state="nobody") == ["Washington"]
    assert shown(state="quiet") == []


def test_schools_longest_without_a_start_come_first(client, staff, students):
    now = timezone.now()
    invite(students, staff.lincoln, 20, started=3, at=now - timedelta(minutes=1))
    invite(students, staff.roosevelt, 20, started=3, at=now - timedelta(days=8))
    # Everyone has started there, so there is no one left to remind.
    invite(students, staff.washington, 12, finished=12, at=now - timedelta(days=9))
    roll_up()

    body = log_in(client, staff.state).get("/console/rates/schools/?sort=quiet")
    names = re.findall(r'id="school-\d+"[^>]*>([^<]+)<', body.content.decode())
    assert names == ["Roosevelt", "Lincoln", "Washington"]
    assert "No start for 5 school days" in visible_text(body)


def test_each_role_has_a_panel_and_teachers_have_no_grades(client, staff, administer):
    wave = Wave.objects.create(name="Spring 2027")
    students = administer("students", wave=wave)
    teachers = administer("teachers", Role.TEACHER, wave=wave)
    parents = administer("parents", Role.PARENT, wave=wave)
    invite(students, staff.lincoln, 100, grade="07", finished=50)
    invite(teachers, staff.lincoln, 20, grade="07", finished=9)
    invite(parents, staff.lincoln, 80, grade="07", finished=19)
    roll_up()

    page = visible_text(
        log_in(client, staff.dana).get(f"/console/rates/schools/{staff.lincoln.pk}/")
    )
    assert "50 % Threshold reached" in page
    assert "1 more teacher to reach 50 %" in page
    assert "1 more parent to reach 20 % of the 100 students" in page
    assert page.count("Grade Invited Started Finished Rate") == 2


def test_administrations_are_shown_by_title(client, staff, counted):
    counted.published.survey.title = {"en": "My School and Me"}
    counted.published.survey.save()
    counted.opens_at = datetime(2026, 11, 2, 15, tzinfo=UTC)
    counted.save()
    log_in(client, staff.state)
    for address, _ in pages(staff).values():
        page = visible_text(client.get(address))
        assert "My School and Me, students, November 2026" in page
        assert counted.name not in page


def test_names_distinguish_administrations_with_the_same_title(
    client, staff, counted, administer
):
    namesake = administer("students-again", opens_at=counted.opens_at)
    page = visible_text(log_in(client, staff.state).get("/console/rates/"))
    assert f"{counted.title} ({counted.name})" in page
    assert f"{namesake.title} ({namesake.name})" in page


# Age of the figures


def set_age(administration, **ago):
    RollUp.objects.filter(administration=administration).update(
        as_of=timezone.now() - timedelta(**ago)
    )


def test_late_figures_have_a_warning(client, staff, counted):
    log_in(client, staff.dana)
    address = f"/console/rates/schools/{staff.lincoln.pk}/"
    assert "counting is late" not in visible_text(client.get(address))
    set_age(counted, seconds=119)
    assert "counting is late" not in visible_text(client.get(address))

    set_age(counted, seconds=121)
    for address, _ in pages(staff).values():
        response = client.get(address, follow=True)
        assert "These figures are 2 minutes old: counting is late." in visible_text(
            response
        )
        assert 'id="age" class="badge caution"' in response.content.decode()


def test_final_figures_are_not_late(client, staff, counted):
    counted.opens_at = timezone.now() - timedelta(days=30)
    counted.closes_at = timezone.now() - timedelta(days=10)
    counted.save()
    set_age(counted, days=9)
    page = log_in(client, staff.dana).get(f"/console/rates/schools/{staff.lincoln.pk}/")
    assert "Counted after closing, 9 days ago." in visible_text(page)

    # Counted before it closed, so people may be missing.
    set_age(counted, days=11)
    page = client.get(f"/console/rates/schools/{staff.lincoln.pk}/")
    assert "These figures are 11 days old: counting is late." in visible_text(page)


def test_an_administration_that_was_never_counted_says_so(client, staff, students):
    page = log_in(client, staff.state).get("/console/rates/")
    assert "Not counted yet" in visible_text(page)


def test_without_surveys_the_page_says_what_will_be_there(client, staff):
    for user in (staff.state, staff.dana, staff.chen):
        page = log_in(client, user).get("/console/rates/", follow=True)
        assert "There is no survey in your schools yet." in visible_text(page)


# Refreshing


def test_htmx_gets_only_the_figures(client, staff, counted):
    log_in(client, staff.state)
    for address, _ in pages(staff).values():
        part = client.get(address, headers={"HX-Request": "true"})
        body = part.content.decode()
        assert "<html" not in body
        assert 'id="age"' in body
        assert "HX-Request" in part["Vary"]


# Files


def rows(response):
    assert response.status_code == 200
    body = response.content.decode("utf-8-sig")
    return list(csv.DictReader(io.StringIO(body)))


def test_csv_files_keep_search_and_order(client, staff, counted):
    log_in(client, staff.state)
    lines = rows(client.get("/console/rates/schools.csv?sort=-rate&q=l"))
    assert [row["school"] for row in lines] == ["Roosevelt", "Lincoln"] or lines
    lincoln = next(row for row in lines if row["school"] == "Lincoln")
    assert (lincoln["eligible"], lincoln["finished"], lincoln["rate (%)"]) == (
        "40",
        "12",
        "30",
    )
    assert lincoln["threshold"] == "8 more students to reach 50 %"
    districts = rows(client.get("/console/rates/districts.csv"))
    assert {row["district"]: row["finished"] for row in districts} == {
        "Riverside": "12",
        "Lakeside": "20",
    }
    school = f"/console/rates/schools/{staff.lincoln.pk}/"
    assert '<th scope="row">7</th>' in client.get(school).text
    # The file has the codes of rosters.
    grades = rows(client.get(f"{school}school.csv"))
    assert [(row["grade"], row["finished"]) for row in grades] == [
        ("all", "12"),
        ("07", "8"),
        ("08", "4"),
    ]


def test_the_chart_of_days_is_a_file_of_its_own(client, staff, counted):
    log_in(client, staff.dana)
    for address, place in (
        (f"/console/rates/districts/{staff.riverside.pk}/", "Riverside"),
        (f"/console/rates/schools/{staff.lincoln.pk}/", "Lincoln"),
    ):
        shown = client.get(address).content.decode()
        assert f'href="?administration={counted.pk}&amp;svg=days" download' in shown
        response = client.get(address, {"svg": "days"})
        assert response["Content-Type"] == "image/svg+xml"
        assert response["Content-Disposition"].startswith("attachment")
        drawing = ElementTree.fromstring(response.content)  # noqa: S314
        texts = [element.text for element in drawing.iter(f"{SVG}text")]
        assert texts[:2] == [counted.title, f"{place}. Day by day"]
        assert AuditEntry.objects.latest("pk").action == "download response rates"


def test_a_page_without_a_chart_has_no_file(client, staff, counted):
    log_in(client, staff.state)
    address = f"/console/rates/schools/{staff.washington.pk}/"
    assert "svg=days" not in client.get(address).content.decode()
    assert client.get(address, {"svg": "days"}).status_code == 404


def test_csv_files_have_all_rows_and_not_one_page(client, staff, students):
    schools = School.objects.bulk_create(
        School(district=staff.riverside, code=f"s{n}", name=f"School {n:03}")
        for n in range(60)
    )
    assert len(schools) == 60
    roll_up()
    log_in(client, staff.dana)
    address = f"/console/rates/districts/{staff.riverside.pk}/schools.csv"
    assert len(rows(client.get(address))) == 62


def test_cells_of_csv_files_cannot_run_as_formulas(client, staff, students):
    School.objects.filter(pk=staff.lincoln.pk).update(name='=HYPERLINK("http://x")')
    invite(students, staff.lincoln, 12, grade="@SUM(1)")
    roll_up()
    log_in(client, staff.dana)
    for address in (
        "/console/rates/schools.csv",
        f"/console/rates/schools/{staff.lincoln.pk}/school.csv",
    ):
        lines = rows(client.get(address))
        named = next(row for row in lines if "HYPERLINK" in row["school"])
        assert named["school"].startswith("'=")
    assert lines[-1]["grade"] == "'@SUM(1)"


def test_downloads_are_logged_and_page_views_are_not(client, staff, counted):
    log_in(client, staff.dana)
    for address, _ in pages(staff).values():
        client.get(address, follow=True)
    assert not AuditEntry.objects.filter(action="download response rates").exists()
    for _, file in pages(staff).values():
        client.get(file)
    entries = AuditEntry.objects.filter(
        action="download response rates", user_id=staff.dana.pk
    )
    assert entries.count() == 4
    assert entries.filter(school_id=staff.lincoln.pk).count() == 1
    assert entries.filter(district_id=staff.riverside.pk).count() == 2


# School days


def test_holidays_of_a_district_are_no_school_days(client, staff, counted):
    today = timezone.localdate()
    # No weekend is near, whenever this test runs.
    DayOff.objects.create(weekday=(today - timedelta(1)).weekday())
    log_in(client, staff.state)
    lincoln = f"/console/rates/schools/{staff.lincoln.pk}/"

    def needed_at_lincoln():
        [panel] = client.get(lincoln).context["panels"]
        return panel.line.pace.per_day

    usual = needed_at_lincoln()
    # All of the days after today, in another district and then in this one.
    for district, needed in ((staff.lakeside, usual), (staff.riverside, 20)):
        DayOff.objects.create(
            name="Long break",
            district=district,
            first=today + timedelta(1),
            last=timezone.localdate(counted.closes_at),
        )
        assert needed_at_lincoln() == needed
    assert usual < 20
    page = client.get(f"/console/rates/districts/{staff.riverside.pk}/")
    [line] = [line for line in page.context["lines"] if line.name == "Lincoln"]
    assert (line.pace.per_day, page.context["total"].pace.per_day) == (20, 20)
    [row] = client.get("/console/rates/").context["lines"][-1:]
    assert (row.name, row.pace.per_day) == ("Riverside", 20)


# Columns, tiles and charts


def headers(response):
    cells = re.findall(r"<th scope=\"col\"[^>]*>(.*?)</th>", response.content.decode())
    return [re.sub("<[^>]+>", "", header) for header in cells]


def test_columns_and_tiles_without_figures_are_left_out(client, staff, administer):
    planned = administer(opens_at=timezone.now() + timedelta(days=2))
    for school in (staff.lincoln, staff.washington):
        invite(planned, school, 20, grade="07")
    roll_up()
    log_in(client, staff.state)
    district = client.get(f"/console/rates/districts/{staff.riverside.pk}/")
    assert headers(district) == ["School", "Invited", "Threshold"]
    text = visible_text(district)
    assert "including those who finished" not in text
    assert "Progress toward the threshold" not in text
    board = client.get("/console/rates/")
    assert headers(board)[:3] == ["District", "Invited", "Schools at threshold"]
    assert "Pace" not in headers(board)
    school = client.get(f"/console/rates/schools/{staff.lincoln.pk}/")
    assert headers(school)[:2] == ["Grade", "Invited"]
    assert "Finished" not in headers(school)

    # On the first morning, zero is a figure.
    planned.opens_at = timezone.now() - timedelta(minutes=1)
    planned.save()
    roll_up()
    assert {"Started", "Finished", "Rate", "Last start"} <= set(
        headers(client.get(f"/console/rates/districts/{staff.riverside.pk}/"))
    )


def test_schools_say_how_many_came_in_the_last_week(client, staff, students):
    for school in (staff.lincoln, staff.washington):
        invite(students, school, 400)
        for days in range(1, 8):
            at = timezone.now() - timedelta(days=days)
            invite(students, school, 20, finished=20, at=at)
    roll_up()
    log_in(client, staff.dana)
    came = r"\d+ a day are needed; (\d+) a day came in the last week."
    for address, schools in (
        (f"/console/rates/districts/{staff.riverside.pk}/", 2),
        (f"/console/rates/schools/{staff.lincoln.pk}/", 1),
    ):
        page = visible_text(client.get(address))
        # 140 on five school days.
        assert re.findall(came, page) == ["28"] * schools


def days_ago(days):
    return timezone.now() - timedelta(days=days)


def test_a_total_is_too_slow_only_if_all_schools_together_were(client, staff, students):
    """In the morning no one has come yet, and some schools need nobody any more."""
    invite(students, staff.lincoln, 400, finished=20, at=days_ago(8))
    roll_up()
    for address in ("/console/rates/", "/console/rates/schools/"):
        page = log_in(client, staff.state).get(address)
        assert page.context["total"].pace.verdict == "too slow"
        assert "threshold; 0 came in the last week too slow" in visible_text(page)
    # Washington needs nobody any more; all together were fast enough.
    invite(students, staff.washington, 400, finished=400, at=days_ago(3))
    roll_up()
    for address in ("/console/rates/", "/console/rates/schools/"):
        page = client.get(address)
        pace = page.context["total"].pace
        assert (pace.last_week, pace.verdict) == (None, "")
    [line] = [
        lincoln_line
        for lincoln_line in page.context["lines"]
        if lincoln_line.name == "Lincoln"
    ]
    assert line.pace.verdict == "too slow"


def test_no_threshold_is_drawn_for_schools_of_which_some_have_none(
    client, staff, administer
):
    teachers = administer("teachers", Role.TEACHER)
    invite(teachers, staff.lincoln, 8, finished=2, at=days_ago(2))
    log_in(client, staff.state)
    for people, is_drawn in ((0, True), (6, False)):
        invite(teachers, staff.roosevelt, people, finished=people, at=days_ago(2))
        roll_up()
        page = client.get("/console/rates/")
        assert page.context["days_have_pace"] is is_drawn
        home = client.get("/console/").content.decode()
        assert ("The dashed line is the threshold" in home) is is_drawn


def test_the_hours_of_a_day_are_open_once_it_was_chosen(client, staff, counted):
    log_in(client, staff.dana)
    address = f"/console/rates/schools/{staff.lincoln.pk}/"
    page = client.get(address).content.decode()
    assert '<details id="hours" class="hours">' in page
    [day] = set(re.findall(r"&amp;day=([0-9-]+)#hours", page))
    for wanted, is_open in ((day, True), ("yesterday", False)):
        page = client.get(address, {"day": wanted}).content.decode()
        assert ('<details id="hours" class="hours" open>' in page) == is_open


def days_of_lincoln(client, user, school):
    page = log_in(client, user).get(f"/console/rates/schools/{school.pk}/")
    cells = [
        (point.started_words, point.finished_words, point.rate_words)
        for point in page.context["days"] or ()
    ]
    return visible_text(page), cells


def test_days_are_not_drawn_while_all_of_them_are_hidden(client, staff, administer):
    teachers = administer("teachers", Role.TEACHER)
    invite(teachers, staff.lincoln, 11, started=8, finished=7)
    roll_up()
    shown, cells = days_of_lincoln(client, staff.chen, staff.lincoln)
    assert "63 %" in shown and "7 of 11 finished" in shown
    assert (
        "The chart of days is hidden while fewer than 10 people have started" in shown
    )
    assert cells == [] and "0.0 %" not in shown
    # There was something to hide.
    _shown, cells = days_of_lincoln(client, staff.state, staff.lincoln)
    assert ("8", "7", "63.6 %") in cells


def test_finishes_of_few_people_are_stars_beside_the_starts(client, staff, administer):
    teachers = administer("teachers", Role.TEACHER)
    invite(teachers, staff.lincoln, 16, started=12, finished=7)
    roll_up()
    shown, cells = days_of_lincoln(client, staff.chen, staff.lincoln)
    assert "* Hidden until there are at least 10 finishes." in shown
    # From the opening until yesterday, today, and days to come.
    assert cells == [("0", "*", "*")] * 10 + [("12", "*", "*")] + [("–", "–", "–")] * 10


def test_the_round_of_a_link_is_the_first_of_its_school(client, staff, administer):
    wave = Wave.objects.create(name="Spring 2027")
    rounds = [
        administer(role, role, wave=wave) for role in (Role.STUDENT, Role.TEACHER)
    ]
    for administration in rounds:
        invite(administration, staff.lincoln, 20)
    roll_up()
    log_in(client, staff.chen)
    for administration in rounds:
        address = f"/console/rates/schools/{staff.lincoln.pk}/"
        page = client.get(address, {"administration": administration.pk})
        first = page.context["panels"][0]
        assert first.administration == administration


def test_days_without_school_are_named_in_the_table(client, staff, counted):
    DayOff.objects.create(
        name="Long break",
        district=staff.riverside,
        first=timezone.localdate(),
        last=timezone.localdate(counted.closes_at),
    )
    log_in(client, staff.dana)
    page = client.get(f"/console/rates/schools/{staff.lincoln.pk}/")
    off = [not point.is_school_day for point in page.context["days"]]
    plot = page.context["days_plot"]
    assert [not column.is_school_day for column in plot.columns] == off
    assert all(off[-10:]) and not all(off)
    assert page.content.decode().count("no school") == sum(off)


# The administration that is shown first


def shown_at(client, address):
    return client.get(address, follow=True).context["administration"]


def test_a_new_administration_of_the_state_is_not_shown_first(
    client, staff, counted, administer
):
    statewide = administer("statewide", opens_at=timezone.now() - timedelta(days=1))
    invite(statewide, staff.roosevelt, 90)
    roll_up()
    for user in (staff.dana, staff.chen, staff.analyst):
        log_in(client, user)
        assert shown_at(client, "/console/rates/") == counted
    # Of all people, most are in the new one.
    log_in(client, staff.state)
    assert shown_at(client, "/console/rates/") == statewide
    # Sam's school alone, also for a user who sees others.
    school = f"/console/rates/schools/{staff.roosevelt.pk}/"
    assert shown_at(client, school) == statewide


def test_the_open_administration_looked_at_last_is_shown_again(
    client, staff, counted, administer
):
    now = timezone.now()
    teachers = administer("teachers-2027", role=Role.TEACHER)
    closed = administer("last-year", closes_at=now - timedelta(days=1))
    for administration in (teachers, closed):
        invite(administration, staff.lincoln, 3)
    roll_up()
    log_in(client, staff.chen)
    school = f"/console/rates/schools/{staff.lincoln.pk}/"
    for looked_at, shown in ((teachers, teachers), (closed, counted)):
        shown_at(client, f"{school}?administration={looked_at.pk}")
        assert shown_at(client, "/console/rates/") == shown


def test_choosing_among_open_administrations_takes_one_statement(
    client, staff, counted, administer, django_assert_num_queries
):
    for name in ("one", "two"):
        invite(administer(name), staff.lincoln, 3)
    roll_up()
    log_in(client, staff.dana)
    address = f"/console/rates/districts/{staff.riverside.pk}/"
    with django_assert_num_queries(12):
        client.get(address)
    # The choice is stored in the session once.
    with django_assert_num_queries(14):
        client.get(f"{address}?administration={counted.pk}")
    with django_assert_num_queries(11):
        client.get(address)


# Queries


@pytest.mark.parametrize("more", [0, 2])
def test_number_of_queries_does_not_grow_with_rows(
    client, staff, students, more, settings, django_assert_num_queries
):
    invite(students, staff.lincoln, 12, grade="07", finished=3)
    for n in range(more):
        district = District.objects.create(code=f"d{n}", name=f"District {n}")
        for name in ("East", "West"):
            school = School.objects.create(district=district, code=name, name=name)
            invite(students, school, 12, grade="07", finished=3)
        invite(students, staff.lincoln, 12, grade=f"1{n}", finished=3)
    roll_up()
    log_in(client, staff.state)
    # A school has its coordinators too.
    costs = {"board": 9, "schools": 10, "district": 11, "school": 11}
    for name, (address, _) in pages(staff).items():
        with django_assert_num_queries(costs[name]):
            client.get(address)
