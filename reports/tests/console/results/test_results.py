"""Results in the console: who sees which places, and what is hidden in them."""

from __future__ import annotations

import csv
import io
import secrets
from datetime import datetime, timedelta

import pytest
from django.core.cache import cache
from django.db.models import F
from django.urls import reverse
from django.utils import timezone

from accounts.models import AuditEntry
from accounts.tests.logging_in import log_in
from reports.charts.changes import change_of_share
from reports.charts.chart_rows import ChartRow, Label, Segment
from reports.charts.sentences import change_sentence, sentence
from reports.models import GroupResults, ResultsRollUp, SchoolRate
from reports.releases.apply_suppression import hide_small_groups
from reports.releases.rollup import roll_up_results
from reports.results.visible import visible_groups
from reports.tests.exports.conftest import (
    CHOICES,
    FIRST,
    enrol_and_answer,
    opened,
    published,
)
from survey.models import Administration, Job, OpenCode, Respondent, Wave

pytestmark = pytest.mark.django_db


@pytest.fixture
def closed(staff, fall):
    """Count a large school, and one with a single person in grade 08."""
    groups = [
        *((staff.lincoln, grade, n) for grade in ("07", "08") for n in range(12)),
        *((staff.washington, "07", n) for n in range(4)),
        (staff.washington, "08", 0),
    ]
    enrol_and_answer(
        fall,
        (
            (school, grade, {"safe": ("1", "2", "-1")[n % 3]})
            for school, grade, n in groups
        ),
    )
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
                "needed": 15,
            },
        )
    roll_up_results(fall)
    hide_small_groups(fall)
    return fall


@pytest.fixture
def add_schools(closed):
    """Add schools in which six people have answered, by default with a report."""

    def add_schools(district, number, *, needed=5, answers=("1", "2", "-1")):
        for n in range(number):
            code = f"{needed}-{n}"
            school = district.schools.create(code=code, name=f"Another {code}")
            enrol_and_answer(
                closed,
                (
                    (school, "07", {"safe": answers[person % len(answers)]})
                    for person in range(6)
                ),
            )
            SchoolRate.objects.create(
                administration=closed,
                school=school,
                district=district,
                eligible=30,
                started=6,
                finished=6,
                needed=needed,
            )
        roll_up_results(closed)
        hide_small_groups(closed)

    return add_schools


def release(administration):
    ResultsRollUp.objects.filter(pk=administration.pk).update(released_at=F("as_of"))


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
    with django_assert_num_queries(13):
        response = client.get(reverse("results_page", args=[closed.pk]))
    assert response.status_code == 200
    assert response.context["page"].place_name == "Riverside"
    assert response.context["page"].figures.people == 29
    assert "31 % answered" not in response.text
    listed = client.get(reverse("results_list"))
    assert closed.title in listed.text
    closed.closes_at = timezone.now() + timedelta(hours=1)
    closed.save()
    assert page(client, staff.analyst, closed).status_code == 404
    assert closed.title not in client.get(reverse("results_list")).text


def test_results_that_are_not_counted_yet_are_listed(client, staff, closed):
    ResultsRollUp.objects.all().delete()
    log_in(client, staff.analyst)
    listed = client.get(reverse("results_list"))
    assert listed.status_code == 200
    assert closed.title in listed.text
    assert page(client, staff.analyst, closed).status_code == 200


def test_a_chart_is_downloaded_as_a_picture(client, staff, closed):
    query = {"school": staff.lincoln.pk, "questions": "all"}
    shown = page(client, staff.analyst, closed, **query).text.replace("&amp;", "&")
    assert f'href="?school={staff.lincoln.pk}&questions=all&svg=safe" download' in shown
    # A histogram and a text have no bars.
    assert "svg=age" not in shown
    response = page(client, staff.analyst, closed, **query, svg="safe")
    assert response["Content-Type"] == "image/svg+xml"
    assert response["Content-Disposition"] == 'attachment; filename="fall-safe.svg"'
    assert "I am safe." in response.text and "Lincoln" in response.text
    entry = AuditEntry.objects.get(action="download results")
    assert entry.school_id == staff.lincoln.pk
    for item in ("age", "nothing"):
        assert page(client, staff.analyst, closed, svg=item).status_code == 404
    # By the same rules as the page.
    assert page(client, staff.chen, closed, **query, svg="safe").status_code == 404


def test_a_coordinator_sees_shared_results_of_the_own_school(
    client, staff, closed, add_schools
):
    assert page(client, staff.chen, closed).status_code == 404
    add_schools(staff.riverside, 2)
    share(closed)
    response = page(client, staff.chen, closed)
    assert response.context["page"].place_name == "Lincoln"
    assert response.context["page"].figures.people == 24
    # Beside those of the district and the state, and of nobody else.
    for text in ("Riverside", "All schools"):
        assert text in response.text
    for query in (
        {"school": staff.washington.pk},
        {"district": staff.riverside.pk},
        {"school": staff.roosevelt.pk},
        {"school": "x"},
        {"school": "9" * 40},
        {"school": "0" * 5000},
        {"group": "nothing:07"},
        {"group": "grade:\0"},
        {"group": "grade:" + "9" * 201},
        {"compare": "x"},
    ):
        assert page(client, staff.chen, closed, **query).status_code == 404
    # Another school may have the group, or none: the page does not tell.
    response = page(client, staff.chen, closed, group="grade:99")
    assert "Hidden: with so few people" in response.text
    assert not response.context["page"].charts
    assert page(client, staff.sam, closed).context["page"].figures is None


def test_subgroups_that_are_known_of_nobody_are_not_offered(client, staff, closed):
    closed.subgroups = {"gender": ["female", "male"], "lunch": ["free", "paid"]}
    closed.save()
    people = Respondent.objects.filter(administration=closed, school=staff.lincoln)
    grade = people.filter(grade="07")
    assert grade.update(attributes={"gender": "female"}) == 12
    roll_up_results(closed, release=True, all_schools=True)

    def offered(**place):
        response = page(client, staff.state, closed, **place)
        return [choice.label for choice in response.context["page"].groups]

    assert offered()[-2:] == ["Gender: female", "Gender: not known"]
    assert not [label for label in offered() if label.startswith("Lunch")]
    # Counted all the same, for when a roster brings it.
    assert GroupResults.objects.filter(attribute="lunch", value="").exists()


@pytest.mark.parametrize("is_protected", [True, False])
@pytest.mark.parametrize("takes_part", [True, False])
def test_a_group_on_the_roster_is_offered_whether_or_not_its_only_pupil_took_part(
    client, staff, closed, monkeypatch, takes_part, is_protected
):
    pupil = Respondent.objects.filter(school=staff.washington).first()
    Respondent.objects.filter(pk=pupil.pk).update(
        grade="12", started_at=pupil.started_at if takes_part else None
    )
    if not is_protected:
        # Only those of people who took part.
        monkeypatch.setattr(
            "reports.releases.rollup.groups_of_roster",
            lambda closed, _: sorted(
                ["grade", grade]
                for grade in Respondent.objects.filter(
                    administration=closed, started_at__isnull=False
                )
                .values_list("grade", flat=True)
                .distinct()
            ),
        )
    roll_up_results(closed, release=True, all_schools=True)
    choices = page(client, staff.dana, closed).context["page"].groups
    # Without the roster, the list tells it.
    assert ("Grade: 12" in [choice.label for choice in choices]) == (
        is_protected or takes_part
    )


def test_the_list_of_groups_does_not_tell_who_took_part(client, staff, closed):
    """Only in Washington somebody of grade 11 has answered, alone."""

    def offered(school):
        response = page(client, staff.state, closed, school=school.pk)
        return [
            (choice.label, choice.is_hidden)
            for choice in response.context["page"].groups
        ]

    enrol_and_answer(closed, [(staff.washington, "11", {"safe": "1"})])
    roll_up_results(closed, release=True, all_schools=True)
    for school in (staff.washington, staff.lincoln):
        assert ("Grade: 11", True) in offered(school)
        grade = {"school": school.pk, "group": "grade:11"}
        text = page(client, staff.state, closed, **grade).text
        assert "Hidden: with so few people" in text
        assert "Nobody in this group" not in text
    shown = {label for label, is_hidden in offered(staff.lincoln) if not is_hidden}
    assert {"Grade: 7", "Grade: 8"} <= shown


def compared(response):
    """Return the names of the places that a school is compared with."""
    text = response.text.replace('<option value="">All schools</option>', "")
    return {name for name in ("Riverside", "All schools") if name in text}


@pytest.mark.parametrize(
    ("here", "elsewhere", "shown"),
    [
        (0, 0, set()),
        (0, 1, set()),
        (0, 2, {"All schools"}),
        # The district would be the own school, and the only other one.
        (1, 0, set()),
        (1, 1, {"All schools"}),
        (2, 0, {"Riverside", "All schools"}),
        # The state minus the district would be the only school elsewhere.
        (2, 1, {"Riverside"}),
        (2, 2, {"Riverside", "All schools"}),
    ],
)
def test_no_single_school_is_what_remains_of_a_larger_place(
    client, staff, closed, add_schools, here, elsewhere, shown
):
    add_schools(staff.riverside, here)
    add_schools(staff.lakeside, elsewhere)
    share(closed)
    assert compared(page(client, staff.chen, closed)) == shown


def rest_of(figures, school_figures):
    """Subtract the own school's answers from those of a larger place."""
    return {
        value: people - school_figures.items["safe"].values[value]
        for value, people in figures.items["safe"].values.items()
    }


@pytest.mark.usefixtures("exact_shares")
def test_schools_without_a_report_are_not_in_what_a_coordinator_compares(
    client, staff, closed, add_schools, django_assert_num_queries
):
    add_schools(staff.riverside, 2)
    share(closed)
    response = page(client, staff.chen, closed)
    assert "all schools that have a report" in response.text
    safe = {row.place: row for row in chart_of(response, "safe").rows}
    assert [segment.people for segment in safe["Riverside"].segments] == [
        "12",
        "12",
        "12",
    ]
    assert safe["Riverside"].answered == 36
    # The sums of schools are in the cache.
    with django_assert_num_queries(13):
        client.get(reverse("results_page", args=[closed.pk]))
    # The twin: all people of Riverside, without the schools with a report, are those
    # of Washington, which has none.
    places = {
        name: (level, place.pk)
        for name, level, place in (
            ("riverside", "district", staff.riverside),
            ("lincoln", "school", staff.lincoln),
            ("washington", "school", staff.washington),
        )
    }
    shown = visible_groups(closed, places.values())
    district, lincoln, washington = (shown[place] for place in places.values())
    rest = rest_of(district, lincoln)
    assert {value: people - 4 for value, people in rest.items()} == (
        washington.items["safe"].values
    )


def test_a_coordinator_compares_no_grade_with_larger_places(
    client, staff, closed, add_schools
):
    add_schools(staff.riverside, 2)
    share(closed)
    response = page(client, staff.chen, closed, group="grade:07")
    assert response.context["page"].figures.people == 12
    assert compared(response) == set()
    assert "Not compared with larger places" in response.text
    # The twin: the district without its grades is the school that hides one.
    place = ("district", staff.riverside.pk)
    everyone = visible_groups(closed, [place])[place]
    grades = [
        visible_groups(closed, [place], "grade", grade)[place] for grade in ("07", "08")
    ]
    assert everyone.people - sum(grade.people for grade in grades) == 5


def test_an_item_that_a_single_other_school_shows_is_not_compared(
    client, staff, closed, add_schools
):
    add_schools(staff.riverside, 2)
    share(closed)
    rows = GroupResults.objects.filter(administration=closed, level="school")
    other_schools = rows.filter(attribute="").exclude(
        place_id__in=[staff.lincoln.pk, staff.washington.pk]
    )
    assert chart_of(page(client, staff.chen, closed), "safe").rows[1].answered == 36
    assert other_schools.count() == 2
    other_schools.filter(pk=other_schools.first().pk).update(hidden_items=["safe"])
    cache.clear()
    rows = chart_of(page(client, staff.chen, closed), "safe").rows
    assert [row.answered for row in rows] == [24, None, None]


def test_staff_of_a_district_compare_it_with_schools_that_have_a_report(
    client, staff, closed, add_schools
):
    add_schools(staff.lakeside, 2)
    add_schools(staff.lakeside, 1, needed=20, answers=("1",))
    share(closed)
    response = page(client, staff.dana, closed)
    safe = chart_of(response, "safe")
    # Washington as well, whose responses Dana may see.
    assert safe.rows[0].answered == 29
    assert safe.rows[1].answered == 36
    response = page(client, staff.state, closed)
    assert chart_of(response, "safe").rows[0].answered == 47


def test_a_coordinator_sees_nothing_before_the_threshold_is_reached(
    client,
    staff,
    closed,
):
    share(closed)
    SchoolRate.objects.filter(school=staff.lincoln).update(eligible=300)
    response = page(client, staff.chen, closed)
    assert response.context["page"].figures is None
    assert "when the school has reached its threshold" in response.text
    assert read_csv(client.get(reverse("results_csv", args=[closed.pk]))) == []
    # Analysts are warned.
    response = page(client, staff.analyst, closed, school=staff.lincoln.pk)
    assert response.context["page"].figures.people == 24
    assert "has not reached its threshold" in response.text


def test_hidden_groups_are_stars_in_pages_and_files(client, staff, closed):
    query = {"school": staff.washington.pk, "group": "grade:08"}
    response = page(client, staff.analyst, closed, **query)
    assert response.context["page"].is_hidden
    assert "Hidden: with so few people" in response.text
    query = {"district": staff.riverside.pk, "group": "grade:08"}
    response = page(client, staff.analyst, closed, **query)
    assert response.context["page"].figures.people == 12
    # Not how many: that is the number of people in the only group that is hidden.
    assert "Not included: the people of schools where one" in response.text
    assert "1 person" not in response.text
    file = client.get(reverse("results_csv", args=[closed.pk]), query)
    answers = [row for row in read_csv(file) if row["item"] == "safe"]
    assert [row["people"] for row in answers] == ["4", "4", "4"]
    assert AuditEntry.objects.get(action="download results").by == "analyst@example.org"


def read_csv(response):
    text = response.content.decode("utf-8-sig")
    return list(csv.DictReader(io.StringIO(text)))


def test_the_file_of_a_hidden_group_has_stars_and_says_why(client, staff, closed):
    query = {"school": staff.washington.pk, "group": "grade:08"}
    assert page(client, staff.analyst, closed, **query).context["page"].is_hidden
    rows = read_csv(client.get(reverse("results_csv", args=[closed.pk]), query))
    assert {row["place"] for row in rows} == {"Washington"}
    assert {row["group"] for row in rows} == {"Grade: 8"}
    safe = [row for row in rows if row["item"] == "safe"]
    labels = ["Disagree", "Agree", "Rather not say"]
    assert [row["answer"] for row in safe] == labels
    figures = ("people", "percent", "answered", "skipped", "not reached")
    for row in rows:
        assert [row[name] for name in figures] == ["*"] * len(figures)
        assert row["note"].startswith("* Hidden, because with so few people")


def test_figures_say_where_they_come_from(client, staff, closed, earlier):
    query = {"school": staff.lincoln.pk, "compare": earlier.pk}
    response = page(client, staff.analyst, closed, **query)
    current, before = response.context["page"].provenance
    assert (current.administration, current.version) == ("fall", "1")
    assert (before.administration, before.version) == ("spring", "2")
    assert "Software: counts 1." in response.text
    assert f"Digest of the survey: {closed.published_id[:12]}." in response.text
    rows = read_csv(client.get(reverse("results_csv", args=[closed.pk]), query))
    sources = {
        (row["place"], row["administration"], row["survey version"], row["software"])
        for row in rows
    }
    assert ("Lincoln", "fall", "1", "counts 1") in sources
    assert (
        chart_of(response, "safe").rows[1].place,
        "spring",
        "2",
        "counts 1",
    ) in sources
    counted = {datetime.fromisoformat(row["counted"]) for row in rows}
    assert {
        at.replace(microsecond=0) for at in (current.counted_at, before.counted_at)
    } == (counted)


def test_a_district_with_the_name_of_its_school_is_another_place(client, staff, closed):
    staff.riverside.schools.filter(pk=staff.lincoln.pk).update(name="Riverside")
    response = page(client, staff.analyst, closed, school=staff.lincoln.pk)
    assert response.context["page"].figures.people == 24
    safe = chart_of(response, "safe")
    places = [row.place for row in safe.rows]
    assert places == ["Riverside", "Riverside (district)"]
    assert [row.answered for row in safe.rows] == [24, 29]


def test_a_place_that_is_chosen_in_the_form_replaces_the_school(client, staff, closed):
    for query, name in (
        ({"district": staff.riverside.pk, "school": staff.lincoln.pk}, "Lincoln"),
        ({"district": staff.lakeside.pk, "school": staff.lincoln.pk}, "Lakeside"),
        ({"district": "", "school": staff.lincoln.pk}, "All schools"),
    ):
        response = page(client, staff.state, closed, **query)
        assert response.context["page"].place_name == name


def test_results_are_shared_by_those_who_manage_the_survey(
    client,
    staff,
    closed,
):
    release(closed)
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
def earlier(staff, spring):
    """Close an administration before, in which Lincoln answered otherwise."""
    answers = [{"safe": value, "far": "not far"} for value in ("1", "1", "2")]
    enrol_and_answer(spring, ((staff.lincoln, "07", given) for given in answers * 4))
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


@pytest.mark.usefixtures("exact_shares")
def test_an_earlier_administration_can_be_compared(client, staff, closed, earlier):
    query = {"school": staff.lincoln.pk, "compare": earlier.pk}
    response = page(client, staff.analyst, closed, **query)
    safe = chart_of(response, "safe")
    assert [row.is_compared for row in safe.rows] == [False, True, False]
    assert safe.rows[1].answered == 12
    assert [segment.people for segment in safe.rows[1].segments] == ["8", "4", "0"]
    # From 67 to 33 %, of 12 and 24 people.
    assert "−34 percentage points compared with" in safe.sentence
    assert safe.sentence.endswith("which can be chance.")
    # It was a text then.
    assert [row.is_compared for row in chart_of(response, "far").rows] == [False, False]
    changes = [(change.text, change.words) for change in safe.changes]
    assert changes == [
        ("−34", "within its error of 34.7"),
        ("0", "within its error of 31.1"),
        ("+33", "more than its error of 28.6"),
    ]
    cell = '−34 <span class="hint">(within its error of 34.7)</span>'
    assert cell in response.text
    assert '<strong>+33</strong> <span class="hint">(more than' in response.text
    rows = read_csv(client.get(reverse("results_csv", args=[closed.pk]), query))
    rows = [row for row in rows if row["item"] == "safe"]
    before = [row for row in rows if row["place"] == safe.rows[1].place]
    assert [row["people"] for row in before] == ["8", "4", "0"]
    assert {row["change"] for row in before} == {""}
    names = ("compared with", "change", "margin of error", "exceeds error")
    assert [row[name] for row in rows[2:3] for name in names] == [
        *(safe.rows[1].place, "33", "28.59", "yes")
    ]
    # A group that nobody was in then.
    response = page(client, staff.analyst, closed, **query, group="grade:08")
    assert len(chart_of(response, "safe").rows) == 2


def test_a_change_of_many_people_is_more_than_chance():
    def row(answered, percent):
        return ChartRow("", [Segment(Label("Agree"), 1, percent)], answered)

    def change(now, before):
        return change_of_share(now, before, lambda row: row.segments[0].share)

    difference = change(row(1200, 45.0), row(1100, 40.0))
    assert (difference.text, difference.words) == ("+5", "more than its error of 4.0")
    assert change_sentence(difference, "May") == (
        "+5 percentage points compared with May, more than chance alone explains."
    )
    difference = change(row(1200, 45.0), row(1100, 44.0))
    assert (difference.text, difference.words) == ("+1", "within its error of 4.1")
    assert change_sentence(difference, "May").endswith("can be chance.")
    # A few people who all agree.
    difference = change(row(2, 0.0), row(2, 100.0))
    assert difference.text == "−100"
    assert difference.margin > 100 and not difference.exceeds_error
    assert change(row(5, 40.0), row(5, 40.0)).text == "0"


def test_numbers_have_histograms_and_means(client, staff, fall, spring):
    for administration, ages in ((fall, "9 9 11"), (spring, "9 11 12")):
        answers = [{"age": age} for age in ages.split()]
        enrol_and_answer(
            administration, ((staff.lincoln, "07", given) for given in answers * 10)
        )
        days = 1 if administration == fall else 180
        administration.opens_at = timezone.now() - timedelta(days=days + 1)
        administration.closes_at = timezone.now() - timedelta(days=days)
        administration.save()
        roll_up_results(administration)
        hide_small_groups(administration)
    response = page(client, staff.state, fall, compare=spring.pk)
    age = chart_of(response, "age")
    [(_place, now), (_earlier, before)] = age.histograms
    # A bin for each year from 9 to 12, with the same scale in both waves.
    assert [drawn.start for drawn in now] == [0, 50, 75]
    assert age.bar_width == 25
    assert [drawn.height for drawn in now] == [100, 50, 0]
    assert [drawn.height for drawn in before] == [50, 50, 50]
    assert age.sentence.startswith("The mean is 9.7. −1.0 compared with ")
    assert age.sentence.endswith("more than chance alone explains.")
    assert age.mean_change.text == "−1.0"
    assert age.means == ["9.7 (±0.3)", "10.7 (±0.5)"]
    assert "Mean (± 95 % interval)" in response.text
    query = {"compare": spring.pk}
    rows = read_csv(client.get(reverse("results_csv", args=[fall.pk]), query))
    mean = [row for row in rows if (row["item"], row["answer"]) == ("age", "Mean")]
    assert [row["mean"] for row in mean] == ["9.67", "10.67"]
    assert [row["change"] for row in mean] == ["-1.0", ""]
    assert [row["exceeds error"] for row in mean] == ["yes", ""]
    assert '<rect x="50.0" y="50.0" width="25.0" height="50.0">' in response.text


def test_a_hidden_answer_of_a_multiple_choice_is_in_no_sentence():
    def row(place, percent, cats=None):
        first = Segment(Label("Cat"), cats, 10.0 * (cats or 0))
        return ChartRow(place, [first, Segment(Label("Dog"), 5, percent)], 10)

    assert sentence("multiple", [row("Lincoln", 50)], 2) == (
        "The most frequent answer of those shown is “Dog” (50 %)."
    )
    # A hidden number is not 0 %.
    assert sentence("multiple", [row("Here", 50, 9), row("District", 40)], 2) == (
        "The most frequent answer is “Cat” (90 %)."
    )


@pytest.mark.usefixtures("exact_shares", "is_measured")
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
    response = page(client, staff.chen, closed, compare=earlier.pk)
    assert not any(row.is_compared for row in chart_of(response, "safe").rows)
    # Neither are they without being chosen.
    response = page(client, staff.chen, closed)
    assert "There are no earlier figures of these questions" in response.text
    SchoolRate.objects.filter(administration=earlier).update(eligible=20, at_opening=20)
    response = page(client, staff.chen, closed)
    assert "There are no earlier figures of these questions" not in response.text
    response = page(client, staff.chen, closed, compare=earlier.pk)
    assert any(row.is_compared for row in chart_of(response, "safe").rows)
    # Later ones are no earlier ones.
    for wrong in (closed.pk, 10**30, "x"):
        assert page(client, staff.chen, earlier, compare=wrong).status_code == 404


def test_results_without_answers_say_so(client, staff, fall):
    fall.closes_at = timezone.now() - timedelta(hours=1)
    fall.save()
    response = page(client, staff.analyst, fall)
    assert "still being counted" in response.text
    roll_up_results(fall)
    hide_small_groups(fall)
    assert "Nobody in this group has answered" in page(client, staff.state, fall).text


@pytest.fixture
def teachers(staff, closed):
    """Ask teachers of Lincoln in the same wave; one question has other answers."""
    wave = Wave.objects.create(name="Fall 2026")
    Administration.objects.filter(pk=closed.pk).update(wave=wave)
    closed.refresh_from_db()
    choices = [
        ["pets", "dog", "Puppy", "Perrito"] if row[1] == "dog" else row
        for row in CHOICES
    ]
    rows = [
        ["select_one agree", "safe", "Students are safe.", "Están a salvo."]
        if row[1:2] == ["safe"]
        else row
        for row in FIRST
    ]
    administration = opened(published(rows, "9", choices=choices), "staff", "teacher")
    answers = [{"safe": value, "pets": "dog"} for value in ("1", "2")]
    enrol_and_answer(
        administration, ((staff.lincoln, "", given) for given in answers * 6)
    )
    administration.wave = wave
    administration.closes_at = timezone.now() - timedelta(hours=1)
    administration.minimum_group = 3
    administration.save()
    roll_up_results(administration)
    hide_small_groups(administration)
    return administration


@pytest.mark.usefixtures("exact_shares")
def test_roles_of_a_wave_are_compared_by_questions_with_the_same_answers(
    client, staff, closed, teachers, django_assert_num_queries
):
    query = {"school": staff.lincoln.pk, "compare": teachers.pk}
    # Both published surveys are cached since.
    page(client, staff.analyst, closed, **query)
    with django_assert_num_queries(14):
        response = client.get(reverse("results_page", args=[closed.pk]), query)
    assert '<optgroup label="Other roles in this season">' in response.text
    safe = chart_of(response, "safe")
    assert [row.place for row in safe.rows] == ["Lincoln", "Teachers", "Riverside"]
    assert [segment.count for segment in safe.rows[1].segments] == [6, 6, 0]
    assert "percentage points compared with Teachers" in safe.sentence
    assert "Students are safe." in response.text
    assert not any(row.is_compared for row in chart_of(response, "pets").rows)
    # Teachers have no grades.
    response = page(client, staff.analyst, closed, **query, group="grade:07")
    assert "There is nothing to compare" in response.text
    # Of another wave.
    Administration.objects.filter(pk=closed.pk).update(wave=None)
    assert page(client, staff.analyst, closed, **query).status_code == 404


def test_a_role_whose_results_are_not_shared_is_not_compared(
    client, staff, closed, teachers
):
    share(closed)
    assert page(client, staff.chen, closed, compare=teachers.pk).status_code == 404
    share(teachers)
    # Lincoln's teachers have not reached their threshold.
    response = page(client, staff.chen, closed, compare=teachers.pk)
    assert "There is nothing to compare" in response.text
    assert "Teachers" not in [row.place for row in chart_of(response, "safe").rows]


def test_figures_from_before_the_closing_are_not_shared(client, staff, closed):
    log_in(client, staff.state)
    address = reverse("results_share", args=[closed.pk])
    response = client.post(address, {"share": "yes"}, follow=True)
    assert "Results can be shared once the survey round has closed" in response.text
    assert not ResultsRollUp.objects.filter(shared_at__isnull=False).exists()
    assert not AuditEntry.objects.filter(action="share results").exists()
    assert page(client, staff.chen, closed).status_code == 404


def test_only_the_state_has_outdated_results_counted_again(client, staff, closed):
    release(closed)
    address = reverse("results_release", args=[closed.pk])
    assert (
        "People or answers have changed" not in page(client, staff.state, closed).text
    )
    closed.closes_at = timezone.now() - timedelta(minutes=20)
    closed.save()
    ResultsRollUp.objects.update(as_of=F("as_of") - timedelta(days=1))
    ResultsRollUp.objects.update(hidden_as_of=F("as_of"))
    assert "People or answers have changed" in page(client, staff.state, closed).text
    text = page(client, staff.analyst, closed).text
    assert "People or answers have changed" not in text
    for user in (staff.analyst, staff.dana, staff.chen):
        log_in(client, user)
        assert client.post(address).status_code in (403, 404)
    log_in(client, staff.state)
    for _again in range(2):
        response = client.post(address, follow=True)
        assert "The answers are being counted." in response.text
    assert Job.objects.filter(kind="results.count").count() == 1
    entry = AuditEntry.objects.filter(action="request new results").first()
    assert (entry.by, entry.subject_id) == (staff.state.email, closed.pk)


def test_a_school_that_keeps_its_figures_says_so(client, staff, closed):
    release(closed)
    words = "too few people of this school have changed since"
    assert (
        words not in page(client, staff.analyst, closed, school=staff.lincoln.pk).text
    )
    ResultsRollUp.objects.update(kept_schools=[staff.lincoln.pk])
    assert words in page(client, staff.analyst, closed, school=staff.lincoln.pk).text


def test_coordinators_are_told_that_results_are_not_shared_yet(client, staff, closed):
    log_in(client, staff.chen)
    text = client.get(reverse("results_list")).text
    assert "not shared with schools" in text and "No results yet" not in text
    ResultsRollUp.objects.all().delete()
    text = client.get(reverse("results_list")).text
    assert "No results yet" in text and "not shared with schools" not in text


def test_administrators_see_that_many_began_at_once(staff, client, closed):
    """Where people begin with open codes, a program can have answered."""
    codes = [
        OpenCode.objects.create(
            administration=closed,
            school=school,
            code_digest=secrets.token_bytes(32),
            code_key_version=1,
        )
        for school in (staff.lincoln, staff.washington)
    ]
    at = timezone.now().replace(minute=5) - timedelta(days=1)
    Respondent.objects.bulk_create(
        Respondent(
            administration=closed,
            school=codes[0].school,
            open_code=codes[0],
            code_digest=secrets.token_bytes(32),
            code_key_version=1,
            started_at=at,
        )
        for _ in range(600)
    )
    sentence = "With 1 school link, unusually many people began within ten minutes"
    assert sentence not in page(client, staff.dana, closed).content.decode()
    Administration.objects.update(denominator="count")
    shown = page(client, staff.dana, closed).content.decode()
    assert f"{sentence}: 600 people, of whom 0 have answers" in shown
    assert reverse("open_codes_list", args=[closed.pk]) + "?state=unusual" in shown
    # Coordinators do not judge their own schools.
    share(closed)
    assert sentence not in page(client, staff.chen, closed).content.decode()
