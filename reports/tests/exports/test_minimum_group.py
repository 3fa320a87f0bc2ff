"""In files without names, nobody's cells are shared by too few people."""

from __future__ import annotations

import random
import re
from collections import Counter
from datetime import UTC, datetime, timedelta

import openpyxl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accounts.models import School
from reports.exports.minimum_group import (
    GroupPath,
    MinimumGroups,
    saved_path,
    week_of,
)
from reports.models import Export
from reports.tests.exports.conftest import (
    FIRST,
    answer,
    answer_all,
    identify,
    item_ids,
    made,
    opened,
    published,
    respondent_of,
)
from reports.tests.exports.test_formats import rows_of
from survey.models import Administration, Respondent, Response
from survey.work.files import path_of

FIVE = 5
# Everything in a wide file that is not an answer or a random ID.
ABOUT = ("grade", "language", "sex", "track", "started", "finished")
CELLS = ("district_code", "district_name", "school_code", "school_name", *ABOUT)

paths = st.lists(
    st.tuples(st.sampled_from("AB"), st.sampled_from("123"), st.sampled_from("xyz")),
    max_size=80,
)


def groups_of(people: list[GroupPath], minimum: int = FIVE) -> MinimumGroups:
    groups = MinimumGroups(minimum, ("place", "grade", "day"))
    groups.divide(sorted(Counter(people).items()))
    return groups


def cells(groups: MinimumGroups, path: GroupPath) -> GroupPath:
    return path[: groups.shown(path)]


@given(people=paths, minimum=st.integers(2, 9))
def test_every_group_reaches_the_minimum(people, minimum):
    groups = groups_of(people, minimum)
    shown = Counter(cells(groups, path) for path in people)
    if len(people) >= minimum:
        assert min(shown.values()) >= minimum
    else:
        assert set(shown) <= {()}
    # What the codebook says is what was done.
    if len(people) >= minimum:
        depths = Counter(groups.shown(path) for path in people)
        assert depths == +groups.people


@given(people=paths)
def test_a_place_with_enough_people_is_always_shown(people):
    groups = groups_of(people)
    sizes = Counter(path[0] for path in people)
    for path in people:
        if sizes[path[0]] >= FIVE and min(sizes.values()) >= FIVE:
            assert groups.shown(path) >= 1


def test_cells_are_left_out_from_the_most_exact_to_the_coarsest():
    people = [("A", "1", "x")] * 5 + [("A", "1", "y")] * 3 + [("A", "1", "z")] * 2
    people += [("A", "2", "x")] * 3 + [("A", "3", "x")] * 2
    groups = groups_of(people)
    shown = {path: cells(groups, path) for path in people}
    assert shown == {
        ("A", "1", "x"): ("A", "1", "x"),
        # Together they are enough without the day,
        ("A", "1", "y"): ("A", "1"),
        ("A", "1", "z"): ("A", "1"),
        # and these only without the grade.
        ("A", "2", "x"): ("A",),
        ("A", "3", "x"): ("A",),
    }
    assert list(groups.summary()) == [(("day",), 5), (("grade", "day"), 5)]


def test_a_single_person_is_joined_by_the_smallest_group():
    people = [("A", "1", "x")] * 9 + [("A", "1", "y")] * 6 + [("A", "1", "z")]
    groups = groups_of(people)
    assert (
        cells(groups, ("A", "1", "z")) == cells(groups, ("A", "1", "y")) == ("A", "1")
    )
    assert cells(groups, ("A", "1", "x")) == ("A", "1", "x")


def test_memory_grows_with_groups_and_not_with_people():
    drawn = random.Random(1)
    places = [str(number) for number in range(100)]
    counts = Counter(tuple(drawn.choices(places, k=3)) for _ in range(20_000))
    groups = MinimumGroups(FIVE, ("place", "grade", "day"))
    groups.divide(iter(sorted(counts.items())))
    assert 0 < len(groups._shown) <= 2 * 20_000 / FIVE


def test_weeks_are_those_of_the_iso_calendar():
    assert week_of("2027-03-01") == "2027-W09"
    assert week_of("2027-01-01") == "2026-W53"
    assert week_of("") == ""
    assert saved_path("2027-03-01", "2027-03-02") == ("2027-W09",)
    assert saved_path("2027-03-01", "2027-03-09") == ()


@pytest.fixture
def administration(staff) -> Administration:
    protected = opened(published(FIRST, "3"), "protected", minimum_group=FIVE)
    protected.subgroups = {"sex": ["f", "m"], "track": ["a", "b", "c"]}
    protected.save(update_fields=["subgroups"])
    return protected


@pytest.fixture
def people(staff, administration) -> list[Respondent]:
    """81 people, as different as in a real roster, and schools of only two and four."""
    drawn = random.Random(7)
    grant = School.objects.create(district=staff.riverside, name="Grant", code="grant")
    respondents = []
    for number in range(81):
        started = datetime(2027, 3, 1 + drawn.randrange(14), 15, 4, tzinfo=UTC)
        finished = started + timedelta(days=drawn.randrange(3))
        school = (staff.lincoln, staff.roosevelt)[number % 2]
        respondents.append(
            respondent_of(
                administration,
                staff.washington if number < 2 else grant if number < 6 else school,
                grade=drawn.choice(("06", "07", "07", "08")),
                language=drawn.choice(("en", "en", "en", "es")),
                attributes={"sex": drawn.choice("fm"), "track": drawn.choice("abc")},
                started_at=started,
                completed_at=drawn.choice((finished, None)),
            )
        )
    Respondent.objects.bulk_create(respondents)
    answer_all(
        administration,
        (
            (respondent, {"age": str(n), "safe": "1"})
            for n, respondent in enumerate(respondents)
        ),
    )
    Response.objects.filter(
        respondent_id__in=[respondent.pk for respondent in respondents[::9]]
    ).update(saved_at=datetime(2027, 3, 3, tzinfo=UTC))
    # Two people answered on two days.
    Response.objects.filter(
        respondent_id__in=[respondent.pk for respondent in respondents[:2]],
        item_id=item_ids(administration)["safe"],
    ).update(saved_at=datetime(2027, 3, 20, tzinfo=UTC))
    return respondents


def sizes(export: Export) -> Counter[tuple[str, ...]]:
    """Count the respondents with the same cells."""
    return Counter(tuple(row[name] for name in CELLS) for row in rows_of(export))


# Days are cut by other functions on SQLite.
@pytest.mark.sqlite
@pytest.mark.django_db
@pytest.mark.parametrize("finished_only", [False, True])
def test_no_row_can_be_singled_out(staff, administration, people, finished_only):
    export = made(staff.state, administration, finished_only=finished_only)
    # Fewer people who finished show what others show as well, who did not.
    assert finished_only or min(sizes(export).values()) >= FIVE
    # Small schools are not named, and most others are.
    schools = Counter(row["school_code"] for row in rows_of(export))
    assert schools["washington"] == schools["grant"] == 0
    assert 0 < schools["*"] < schools["lincoln"]
    assert export.respondents == sum(schools.values()) > 30
    # Answers are never changed.
    ages = {int(row["age"]) for row in rows_of(export)}
    assert finished_only or ages == set(range(81))


@pytest.mark.django_db
def test_without_a_minimum_group_most_rows_are_unique(staff, administration, people):
    Administration.objects.update(minimum_group=1)
    class_sizes = sizes(made(staff.state, administration))
    assert sum(1 for size in class_sizes.values() if size == 1) > 40


@pytest.mark.django_db
def test_an_excel_sheet_has_the_same_minimum(staff, administration, people):
    export = made(staff.state, administration, format="xlsx")
    sheet = openpyxl.load_workbook(path_of(export.file_name))["Responses"]
    header, *rows = sheet.iter_rows(values_only=True)
    counter = Counter(tuple(row[header.index(name)] for name in CELLS) for row in rows)
    assert min(counter.values()) >= FIVE


def people_by_days(export: Export) -> Counter[tuple[str, ...]]:
    days: dict[str, list[str]] = {}
    for row in rows_of(export):
        days.setdefault(row["research_id"], []).append(row["saved"])
    return Counter(map(tuple, days.values()))


@pytest.mark.django_db
def test_days_in_a_long_file_are_shared_as_well(staff, administration, people):
    export = made(staff.state, administration, format="long")
    assert min(people_by_days(export).values()) >= FIVE
    Administration.objects.update(minimum_group=1)
    export = made(staff.state, administration, format="long")
    assert min(people_by_days(export).values()) < FIVE


@pytest.mark.django_db
def test_each_administration_of_a_file_has_its_own_minimum(
    staff, administration, people, fall, enrol
):
    answer(enrol(fall, staff.lincoln), {"safe": "1"})
    rows = rows_of(made(staff.state, fall, administration))
    [other_row] = [row for row in rows if row["administration"] == "fall"]
    assert (other_row["school_code"], other_row["started"]) == ("lincoln", "2027-03-01")
    assert any(row["school_code"] == "*" for row in rows)


@pytest.mark.django_db
def test_the_codebook_says_what_was_made_coarser(staff, administration, people):
    for kind in ("wide", "long"):
        export = made(staff.state, administration, format=kind)
        text = path_of(export.codebook_name).read_text()
        plain = re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", text))
        assert "at least 5 of the people who were counted share" in plain
        assert "What was made coarser" in plain
        assert "rows of two exports can be matched by their answers" in plain


@pytest.mark.django_db
@pytest.mark.parametrize("kind", ["wide", "long"])
def test_no_file_is_made_of_fewer_people_than_the_minimum(
    staff, administration, people, kind
):
    places = {"schools": [staff.washington.pk]}
    export = made(staff.state, administration, places=places, format=kind)
    assert not export.file_name
    assert "fewer than 5 people" in export.job.message
    # In an export with names, there is nothing to protect.
    for person in people[:2]:
        identify(person, given_name="Maya")
    export = made(
        staff.dana,
        administration,
        places=places,
        format=kind,
        identities=True,
        reason="consent has to be checked",
    )
    assert {row["given_name"] for row in rows_of(export)} == {"Maya"}
