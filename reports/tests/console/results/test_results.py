"""Results in the console: who sees which places, and what is hidden in them."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from accounts.models import AuditEntry
from accounts.tests.logging_in import log_in
from reports.console.results import page as results_page
from reports.console.results.charts import ChartRow, Segment, change, sentence
from reports.models import ResultsRollUp, SchoolRate
from reports.results.hiding import hide_small_groups
from reports.results.rollup import roll_up_results
from reports.results.visible import visible_groups
from reports.tests.exports.conftest import answer

pytestmark = pytest.mark.django_db


@pytest.fixture
def closed(staff, fall, enrol):
    """Count a large school, and one with a single person in grade 08."""
    groups = [
        *((staff.lincoln, grade, n) for grade in ("07", "08") for n in range(12)),
        *((staff.washington, "07", n) for n in range(4)),
        (staff.washington, "08", 0),
    ]
    for school, grade, n in groups:
        answer(enrol(fall, school, grade=grade), {"safe": ("1", "2", "-1")[n % 3]})
    fall.minimum_group = 3
    fall.closes_at = timezone.now() - timedelta(hours=1)
    fall.save()
    for school, eligible, finished in (
        (staff.lincoln, 30, 24),
        (staff.washington, 30, 5),
    ):
        SchoolRate.objects.update_or_create(
            administration=fall,
            school=school,
            defaults={
                "district": school.district,
                "eligible": eligible,
                "started": finished,
                "finished": finished,
                "at_opening": eligible,
            },
        )
    roll_up_results(fall)
    hide_small_groups(fall)
    return fall


def add_schools(administration, district, number, *, needed=None):
    """Add schools in which nine people have started, and five have finished."""
    for n in range(number):
        school = district.schools.create(code=f"more-{n}", name=f"Another {n}")
        SchoolRate.objects.create(
            administration=administration,
            school=school,
            district=district,
            eligible=30,
            started=9,
            finished=5,
            needed=needed,
        )


def share(administration):
    ResultsRollUp.objects.filter(pk=administration.pk).update(shared_at=timezone.now())


def page(client, user, administration, **query):
    log_in(client, user)
    return client.get(reverse("results_page", args=[administration.pk]), query)


def test_an_analyst_sees_a_closed_administration(
    client,
    staff,
    closed,
    django_assert_num_queries,
):
    # The published survey is cached since.
    page(client, staff.analyst, closed)
    with django_assert_num_queries(11):
        found = client.get(reverse("results_page", args=[closed.pk]))
    assert found.status_code == 200
    assert found.context["page"].place_name == "Riverside"
    assert found.context["page"].figures.people == 29
    assert "31 % answered" not in found.text
    listed = client.get(reverse("results_list"))
    assert closed.title in listed.text
    closed.closes_at = timezone.now() + timedelta(hours=1)
    closed.save()
    assert page(client, staff.analyst, closed).status_code == 404
    assert closed.title not in client.get(reverse("results_list")).text


def test_a_coordinator_sees_shared_results_of_the_own_school(
    client,
    staff,
    closed,
):
    assert page(client, staff.chen, closed).status_code == 404
    share(closed)
    add_schools(closed, staff.riverside, 2)
    found = page(client, staff.chen, closed)
    assert found.context["page"].place_name == "Lincoln"
    assert found.context["page"].figures.people == 24
    # Beside those of the district and the state, and of nobody else.
    for text in ("Riverside", "All schools"):
        assert text in found.text
    for query in (
        {"school": staff.washington.pk},
        {"district": staff.riverside.pk},
        {"school": staff.roosevelt.pk},
        {"school": "x"},
        {"school": "9" * 40},
        {"group": "grade:99"},
    ):
        assert page(client, staff.chen, closed, **query).status_code == 404
    assert page(client, staff.sam, closed).context["page"].figures is None


def compared(found):
    """Return the names of the places that a school is compared with."""
    text = found.text.replace('<option value="">All schools</option>', "")
    return {name for name in ("Riverside", "All schools") if name in text}


@pytest.mark.parametrize(
    ("here", "elsewhere", "shown"),
    [
        # Washington alone has no report, in the district and in the state.
        (0, 0, set()),
        (0, 1, {"All schools"}),
        (1, 0, {"Riverside", "All schools"}),
        # The state minus the district would be the only school elsewhere.
        (1, 1, {"Riverside"}),
        (1, 2, {"Riverside", "All schools"}),
    ],
)
def test_no_single_school_is_what_remains_of_a_larger_place(
    client, staff, closed, here, elsewhere, shown
):
    share(closed)
    add_schools(closed, staff.riverside, here)
    add_schools(closed, staff.lakeside, elsewhere)
    assert compared(page(client, staff.chen, closed)) == shown


def test_shown_the_larger_place_would_tell_of_the_other_school(
    client, staff, closed, monkeypatch
):
    share(closed)
    monkeypatch.setattr(results_page, "wholes_to_compare", lambda *given: (True, True))
    assert "Riverside" in compared(page(client, staff.chen, closed))
    places = {
        "district": ("district", staff.riverside.pk),
        "own": ("school", staff.lincoln.pk),
        "other": ("school", staff.washington.pk),
    }
    found = visible_groups(closed, places.values())
    answers = {
        name: found[place].items["safe"].values for name, place in places.items()
    }
    rest = {
        value: people - answers["own"][value]
        for value, people in answers["district"].items()
    }
    assert any(rest.values())
    assert rest == answers["other"]


def test_the_only_school_without_a_report_is_not_what_remains(client, staff, closed):
    share(closed)
    # They have reports, which may be published.
    add_schools(closed, staff.riverside, 3, needed=5)
    assert compared(page(client, staff.chen, closed)) == set()
    # Analysts see them all.
    found = page(client, staff.analyst, closed, school=staff.lincoln.pk)
    assert compared(found) == {"Riverside", "All schools"}


def test_a_coordinator_sees_nothing_before_the_threshold_is_reached(
    client,
    staff,
    closed,
):
    share(closed)
    SchoolRate.objects.filter(school=staff.lincoln).update(eligible=300)
    found = page(client, staff.chen, closed)
    assert found.context["page"].figures is None
    assert "when the school has reached its threshold" in found.text
    csv = client.get(reverse("results_csv", args=[closed.pk])).content.decode()
    assert csv.count("\n") == 1
    # Analysts are warned.
    found = page(client, staff.analyst, closed, school=staff.lincoln.pk)
    assert found.context["page"].figures.people == 24
    assert "has not reached its threshold" in found.text


def test_hidden_groups_are_stars_in_pages_and_files(client, staff, closed):
    query = {"school": staff.washington.pk, "group": "grade:08"}
    found = page(client, staff.analyst, closed, **query)
    assert found.context["page"].is_hidden
    assert "Hidden: with so few people" in found.text
    query = {"district": staff.riverside.pk, "group": "grade:08"}
    found = page(client, staff.analyst, closed, **query)
    assert found.context["page"].figures.people == 12
    assert "Not included: 1 person" in found.text
    csv = client.get(reverse("results_csv", args=[closed.pk]), query)
    rows = [line.split(",") for line in csv.content.decode().splitlines()]
    answers = [row for row in rows if row[3] == "safe"]
    assert [row[6] for row in answers] == ["4", "4", "4"]
    assert AuditEntry.objects.get(action="download results").by == "analyst@example.org"


def test_results_are_shared_by_those_who_manage_the_survey(
    client,
    staff,
    closed,
):
    address = reverse("results_share", args=[closed.pk])
    for user, status in ((staff.analyst, 404), (staff.chen, 404), (staff.dana, 404)):
        log_in(client, user)
        assert client.post(address, {"share": "yes"}).status_code == status
    log_in(client, staff.state)
    for _again in range(2):
        assert client.post(address, {"share": "yes"}).status_code == 302
    assert "Stop sharing" in page(client, staff.state, closed).text
    assert page(client, staff.chen, closed).status_code == 200
    log_in(client, staff.state)
    client.post(address, {"share": "no"})
    assert page(client, staff.chen, closed).status_code == 404
    actions = AuditEntry.objects.filter(action__contains="sharing results")
    assert actions.count() == 1
    assert AuditEntry.objects.filter(action="share results").count() == 1


@pytest.fixture
def earlier(staff, spring, enrol):
    """Close an administration before, in which Lincoln answered otherwise."""
    for n in range(12):
        given = {"safe": ("1", "1", "2")[n % 3], "far": "not far"}
        answer(enrol(spring, staff.lincoln, grade="07"), given)
    spring.minimum_group = 3
    spring.opens_at = timezone.now() - timedelta(days=200)
    spring.closes_at = timezone.now() - timedelta(days=180)
    spring.save()
    roll_up_results(spring)
    hide_small_groups(spring)
    return spring


def chart_of(response, name):
    charts = [
        chart
        for chart_page in response.context["page"].charts
        for _stem, charts in chart_page.blocks
        for chart in charts
    ]
    return next(chart for chart in charts if chart.name == name)


def test_an_earlier_administration_can_be_compared(client, staff, closed, earlier):
    query = {"school": staff.lincoln.pk, "compare": earlier.pk}
    found = page(client, staff.analyst, closed, **query)
    safe = chart_of(found, "safe")
    assert [row.is_earlier for row in safe.rows] == [False, True, False]
    assert safe.rows[1].answered == "12"
    assert [one.people for one in safe.rows[1].segments] == ["8", "4", "0"]
    # From 67 to 33 %, of 12 and 24 people.
    assert "−34 percentage points compared with" in safe.sentence
    assert safe.sentence.endswith("which can be chance.")
    # It was a text then.
    assert [row.is_earlier for row in chart_of(found, "far").rows] == [False, False]
    csv = client.get(reverse("results_csv", args=[closed.pk]), query)
    rows = [line.split(",") for line in csv.content.decode().splitlines()]
    before = [row for row in rows if row[0] == safe.rows[1].place and row[3] == "safe"]
    assert [row[6] for row in before] == ["8", "4", "0"]
    # A group that nobody was in then.
    found = page(client, staff.analyst, closed, **query, group="grade:08")
    assert len(chart_of(found, "safe").rows) == 2


def test_a_change_of_many_people_is_more_than_chance():
    def row(place, answered, percent):
        return ChartRow(place, [Segment("Agree", "", "", 0, 2 * percent, 1)], answered)

    def say(row):
        return row.segments[0].width / 2

    now = row("Lincoln", "1,200", 45.0)
    assert change(now, row("May", "1,100", 40.0), say) == (
        "+5 percentage points compared with May, more than chance alone explains."
    )
    assert change(now, row("May", "1,100", 44.0), say).endswith("can be chance.")
    # A few people who all agree.
    assert change(row("Here", "2", 100.0), row("May", "2", 0.0), say).endswith(
        "can be chance."
    )


def test_numbers_have_histograms_and_means(client, staff, fall, spring, enrol):
    for administration, ages in ((fall, "9 9 11"), (spring, "9 11 12")):
        for n in range(30):
            person = enrol(administration, staff.lincoln, grade="07")
            answer(person, {"age": ages.split()[n % 3]})
        days = 1 if administration == fall else 180
        administration.opens_at = timezone.now() - timedelta(days=days + 1)
        administration.closes_at = timezone.now() - timedelta(days=days)
        administration.save()
        roll_up_results(administration)
        hide_small_groups(administration)
    found = page(client, staff.state, fall, compare=spring.pk)
    age = chart_of(found, "age")
    [(_place, now), (_earlier, before)] = age.histograms
    # A bin for each year from 9 to 12, with the same scale in both waves.
    assert [one.start for one in now] == [0, 50, 75]
    assert age.bar_width == 25
    assert [one.height for one in now] == [100, 50, 0]
    assert [one.height for one in before] == [50, 50, 50]
    assert age.sentence.startswith("The mean is 9.7. −1.0 compared with ")
    assert age.sentence.endswith("more than chance alone explains.")
    assert '<rect x="50.0" y="50.0" width="25.0" height="50.0">' in found.text


def test_a_hidden_answer_of_a_multiple_choice_is_in_no_sentence():
    def row(place, percent, hidden="*"):
        first = Segment("Cat", "*", "*", 0, 0.0, 1)
        if hidden != "*":
            first = Segment("Cat", "9", "90 %", 0, 180.0, 1)
        return ChartRow(
            place, [first, Segment("Dog", "5", "", 0, 2 * percent, 2)], "10"
        )

    assert sentence("multiple", [row("Lincoln", 50)], 2) == (
        "The most frequent answer of those shown is “Dog” (50 %)."
    )
    # A hidden number is not 0 %.
    assert sentence("multiple", [row("Here", 50, "9"), row("District", 40)], 2) == (
        "The most frequent answer is “Cat” (90 %)."
    )


def test_only_results_that_the_user_may_see_are_compared(
    client, staff, closed, earlier, spring
):
    share(closed)
    assert page(client, staff.chen, closed, compare=earlier.pk).status_code == 404
    share(earlier)
    SchoolRate.objects.create(
        administration=earlier,
        school=staff.lincoln,
        district=staff.riverside,
        eligible=300,
        started=12,
        finished=12,
        at_opening=300,
    )
    found = page(client, staff.chen, closed, compare=earlier.pk)
    assert not any(row.is_earlier for row in chart_of(found, "safe").rows)
    SchoolRate.objects.filter(administration=earlier).update(eligible=20, at_opening=20)
    found = page(client, staff.chen, closed, compare=earlier.pk)
    assert any(row.is_earlier for row in chart_of(found, "safe").rows)
    # Later ones are no earlier ones.
    for wrong in (closed.pk, 10**30, "x"):
        assert page(client, staff.chen, earlier, compare=wrong).status_code == 404


def test_results_without_answers_say_so(client, staff, fall):
    fall.closes_at = timezone.now() - timedelta(hours=1)
    fall.save()
    found = page(client, staff.analyst, fall)
    assert "still being counted" in found.text
    roll_up_results(fall)
    hide_small_groups(fall)
    assert "Nobody in this group has answered" in page(client, staff.state, fall).text
