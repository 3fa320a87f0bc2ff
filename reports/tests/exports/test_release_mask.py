"""Files without names tell nothing that the release hides, whatever else is known.

Riverside has Lincoln with 30 people, Adams with 25, Brook with 20 and Washington with
8, and Lakeside has Roosevelt with 40, Clay with 7 and Dale with 6; the minimum group is
10. So Washington is left out, and Clay and Dale are shown together.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from accounts.models import School
from reports.answers.versions import versions_of
from reports.exports import (
    long_rows,
    minimum_group,
    release_mask,
    released_rows,
    shown_values,
)
from reports.exports.masked_items import masked_items
from reports.exports.release_mask import ShownPlace, shown_places
from reports.exports.shown_values import Column
from reports.models import ResultsRollUp
from reports.results.visible import visible_groups
from reports.suppression.lattice import isolates
from reports.tests.exports.conftest import (
    FIRST,
    answer,
    answer_all,
    item_ids,
    made,
    made_as_it_is,
    opened,
    published,
    released,
    respondent_of,
)
from reports.tests.exports.test_formats import rows_of
from reports.tests.releases.stored_figures import distributions
from survey.models import Administration, Respondent, Response
from survey.work.files import path_of

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite]

TEN = 10
# The numbers of the people of Washington, in all 136.
LEFT_OUT = set(range(75, 83))
IN_FILES = set(range(136)) - LEFT_OUT
PLACE = ("district_code", "school_code")
ABOUT = (*PLACE, "grade", "language", "sex", "started", "finished")
NAMES = {"identities": True, "reason": "consent has to be checked"}


@pytest.fixture
def schools(staff):
    adams, brook = (
        School.objects.create(district=staff.riverside, name=name, code=name.lower())
        for name in ("Adams", "Brook")
    )
    clay, dale = (
        School.objects.create(district=staff.lakeside, name=name, code=name.lower())
        for name in ("Clay", "Dale")
    )
    return {
        staff.lincoln: 30,
        adams: 25,
        brook: 20,
        staff.washington: 8,
        staff.roosevelt: 40,
        clay: 7,
        dale: 6,
    }


@pytest.fixture
def closed(staff, schools) -> Administration:
    """Offer a survey that everyone finished but for each fifth person."""
    protected = opened(published(FIRST, "3"), "protected", minimum_group=TEN)
    protected.subgroups = {"sex": ["f", "m"]}
    protected.save(update_fields=["subgroups"])
    drawn = random.Random(3)
    places = [school for school, size in schools.items() for _ in range(size)]
    people = Respondent.objects.bulk_create(
        respondent_of(
            protected,
            school,
            grade=drawn.choice(("07", "08")),
            language=drawn.choice(("en", "en", "es")),
            attributes={"sex": drawn.choice("fm")},
            started_at=datetime(2027, 3, 1, 15, tzinfo=UTC),
            completed_at=datetime(2027, 3, 1, 16, tzinfo=UTC) if number % 5 else None,
        )
        for number, school in enumerate(places)
    )
    answer_all(
        protected,
        (
            (person, {"safe": "12"[n % 2], "age": str(n), "comment": f"words of {n}"})
            for n, person in enumerate(people)
        ),
    )
    Response.objects.update(saved_at=timezone.now() - timedelta(days=1))
    return protected


def person_of(age: int) -> Respondent:
    ages = Response.objects.filter(
        item_id=item_ids(Administration.objects.get())["age"]
    )
    response = ages.get(value=str(age))
    return Respondent.objects.get(pk=response.respondent_id)


def ages(export) -> set[int]:
    return {int(row["age"]) for row in rows_of(export)}


def in_schools(*chosen: School) -> dict[str, list[int]]:
    return {"schools": [school.pk for school in chosen]}


def codebook_of(export) -> str:
    text = path_of(export.codebook_name).read_text()
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", "", text))


def coarsen_every_small_school(sizes, districts, hidden, minimum):
    """Decide by the size of each school alone, as files did before."""
    return {
        school: ShownPlace(districts[school], school if size >= minimum else None)
        for school, size in sizes.items()
    }


def mask_nothing(groups, *_):
    return [frozenset()] * len(groups)


def rest_of_district(staff, closed, schools) -> set[int]:
    """Return the ages in a file of the district and in no file of its large schools."""
    rest = ages(made(staff.state, closed, places={"districts": [staff.riverside.pk]}))
    for school, size in schools.items():
        if size >= TEN:
            export = made(staff.state, closed, places=in_schools(school))
            rest -= ages(export) if export.file_name else set()
    return rest


class TestHistories:
    def test_a_district_minus_its_large_schools_is_not_the_small_one(
        self, staff, closed, schools
    ):
        assert not rest_of_district(staff, closed, schools)

    def test_with_rows_of_every_small_school_it_is(
        self, staff, closed, schools, monkeypatch
    ):
        monkeypatch.setattr(release_mask, "shown_places", coarsen_every_small_school)
        monkeypatch.setattr(release_mask, "masked_items", mask_nothing)
        rest = rest_of_district(staff, closed, schools)
        assert rest == LEFT_OUT

    def test_a_file_minus_the_page_is_nobody(self, staff, closed):
        released(closed)
        late = respondent_of(closed, staff.lincoln)
        late.save(force_insert=True)
        answer(late, {"safe": "1", "age": "999"})
        export = made(staff.state, closed)
        [page] = visible_groups(closed, [("state", 0)]).values()
        assert export.rows == page.people == len(IN_FILES)

    def test_in_a_file_of_the_live_rows_it_is_the_late_joiner(self, staff, closed):
        released(closed)
        late = respondent_of(closed, staff.lincoln)
        late.save(force_insert=True)
        answer(late, {"safe": "1", "age": "999"})
        whole = {"districts": [staff.riverside.pk]}
        live = made(staff.dana, closed, places=whole, **NAMES)
        file = ages(made(staff.dana, closed, places=whole))
        assert ages(live) - file - LEFT_OUT == {999}

    def page_minus_file(self, staff, closed) -> Counter[str]:
        """Subtract all rows with a school from the page of the district."""
        export = made(staff.state, closed, places={"districts": [staff.riverside.pk]})
        place = ("district", staff.riverside.pk)
        page = visible_groups(closed, [place])[place].items["safe"].values
        rows = Counter(
            row["safe"] for row in rows_of(export) if row["school_code"] != "*"
        )
        return Counter({value: page[value] - rows[value] for value in "12"})

    @pytest.mark.usefixtures("exact_shares")
    def test_pages_and_a_file_together_do_not_tell_of_the_small_school(
        self, staff, closed
    ):
        assert not self.page_minus_file(staff, closed).total()

    @pytest.mark.usefixtures("exact_shares")
    def test_with_everybody_on_the_page_they_do(self, staff, closed, monkeypatch):
        monkeypatch.setattr(
            "reports.suppression.tables.Decision.published", lambda *it: it[3]
        )
        left = self.page_minus_file(staff, closed)
        small = distributions(closed, "school", staff.washington.pk).items["safe"]
        assert {value: small.values[value] for value in "12"} == left
        assert left.total() == len(LEFT_OUT)


def cells(export) -> dict[int, tuple[str, ...]]:
    return {
        int(row["age"]): tuple(row[name] for name in ABOUT) for row in rows_of(export)
    }


class TestFilters:
    def files(self, staff, closed):
        yield made(staff.state, closed)
        yield made(staff.state, closed, finished_only=True)
        for place in (
            {"districts": [staff.riverside.pk]},
            {"districts": [staff.lakeside.pk]},
            in_schools(staff.lincoln),
            in_schools(staff.lincoln, staff.roosevelt, staff.washington),
        ):
            yield made(staff.state, closed, places=place)
            yield made(staff.state, closed, places=place, finished_only=True)

    def test_a_person_has_the_same_cells_in_every_file(self, staff, closed):
        whole, *narrowed = [cells(export) for export in self.files(staff, closed)]
        assert len(whole) == len(IN_FILES)
        for cells_of_file in narrowed:
            assert cells_of_file and cells_of_file.items() <= whole.items()
        assert {row[1] for row in whole.values()} == {
            "*",
            "adams",
            "brook",
            "lincoln",
            "roosevelt",
        }

    def test_with_dates_by_file_a_person_has_not(self, staff, closed, monkeypatch):
        add = minimum_group.DateGroups.add

        def only_of_the_file(self, group, path, *, is_in):
            if is_in:
                add(self, group, path, is_in=is_in)

        monkeypatch.setattr(minimum_group.DateGroups, "add", only_of_the_file)
        whole, *narrowed = [cells(export) for export in self.files(staff, closed)]
        assert any(cells_of_file.items() - whole.items() for cells_of_file in narrowed)

    def test_days_in_a_long_file_are_the_same_in_every_file(self, staff, closed):
        def days(export):
            return {
                row["value"]: row["saved"]
                for row in rows_of(export)
                if row["item"] == "age"
            }

        whole = days(made(staff.state, closed, format="long"))
        part = days(
            made(
                *(staff.state, closed),
                format="long",
                finished_only=True,
                places=in_schools(staff.lincoln),
            )
        )
        assert part and part.items() <= whole.items()

    def test_rows_without_a_school_are_in_files_of_the_whole_district_only(
        self, staff, closed, schools
    ):
        everything = in_schools(*schools)
        all_ages = ages(made(staff.state, closed, places=everything))
        assert len(all_ages) == len(IN_FILES) - 13
        refused = made(staff.state, closed, places=in_schools(staff.washington))
        assert "fewer than 10 people" in refused.job.message
        codebook = codebook_of(made(staff.state, closed))
        assert "Without their school" in codebook
        assert "13 of the whole survey round." in codebook

    def test_words_are_left_out_where_the_school_is(self, staff, closed):
        rows = rows_of(made(staff.state, closed))
        words = {row["comment"] for row in rows if row["school_code"] == "*"}
        assert words == {"*"}
        named = {row["comment"] for row in rows if row["school_code"] != "*"}
        assert len(named) == len(IN_FILES) - 13
        long = rows_of(made(staff.state, closed, format="long"))
        shown_words = {row["value"] for row in long if row["item"] == "comment"}
        assert shown_words == named | words

    def test_every_combination_of_cells_is_shared(self, staff, closed):
        shared = Counter(row[:5] for row in cells(made(staff.state, closed)).values())
        assert min(shared.values()) >= TEN
        # And something is left to look at.
        assert len(shared) > 5


class TestLaterChanges:
    def test_people_who_were_erased_or_have_opted_out_are_left_out(self, staff, closed):
        released(closed)
        before = ages(made(staff.state, closed))
        self.opt_out(1)
        person_of(2).delete()
        export = made(staff.state, closed)
        left = before - ages(export)
        assert {1, 2} < left
        assert "Left out: 2 who have opted out since" in codebook_of(export)
        assert f"With them, {len(left) - 2} others with the" in codebook_of(export)
        assert export.responses == (len(IN_FILES) - len(left)) * 3

    def opt_out(self, age: int) -> None:
        now = timezone.now()
        Respondent.objects.filter(pk=person_of(age).pk).update(
            opted_out_at=now, withdrawn_at=now
        )

    def rows_that_leave(self, staff, closed) -> Iterator[set[int]]:
        """Opt people of one school out after each other."""
        before = ages(made(staff.state, closed))
        for age in range(20):
            self.opt_out(age)
            after = ages(made(staff.state, closed))
            yield before - after
            before = after

    def test_rows_leave_in_batches_of_the_minimum(self, staff, closed):
        leaving = list(self.rows_that_leave(staff, closed))
        assert all(not left or len(left) >= TEN for left in leaving)
        # The second person of a batch changes nothing.
        assert set() in leaving
        # And not everybody leaves with the first one.
        assert sum(map(bool, leaving)) > 1

    def test_without_batches_a_row_leaves_alone(self, staff, closed, monkeypatch):
        monkeypatch.setattr(
            released_rows, "without_batches", lambda _, keys, classes, absent: absent
        )
        assert next(self.rows_that_leave(staff, closed)) == {0}

    def test_people_who_finished_leave_in_the_same_batches(self, staff, closed):
        released(closed)
        finished = ages(made(staff.state, closed, finished_only=True))
        self.opt_out(min(IN_FILES - finished))
        everybody = ages(made(staff.state, closed))
        export = made(staff.state, closed, finished_only=True)
        assert ages(export) == everybody & finished < finished

    def test_without_a_minimum_a_row_leaves_alone(self, staff, closed):
        closed.minimum_group = 1
        closed.save(update_fields=["minimum_group"])
        assert next(self.rows_that_leave(staff, closed)) == {0}

    @pytest.fixture
    def reopened(self, closed):
        """Two people changed answers after the release; one has not finished again."""
        released(closed)
        ResultsRollUp.objects.update(as_of=timezone.now() - timedelta(hours=1))
        closed.closes_at = timezone.now() + timedelta(hours=1)
        closed.save()
        Response.objects.filter(respondent_id=person_of(3).pk).update(
            saved_at=timezone.now() + timedelta(minutes=1)
        )
        Respondent.objects.filter(pk=person_of(4).pk).update(completed_at=None)
        return closed

    @pytest.fixture(autouse=True)
    def decided(self, monkeypatch):
        """Let the release be as old as a test makes it."""
        monkeypatch.setattr(
            release_mask,
            "released_roll_up",
            lambda administration, alias: ResultsRollUp.objects.filter(
                pk=administration.pk
            ).first(),
        )

    def test_people_who_changed_answers_since_are_left_out(self, staff, reopened):
        export = made(staff.state, reopened)
        left = IN_FILES - ages(export)
        assert {3, 4} < left and len(left) in range(TEN, 4 * TEN)
        assert "Left out: 2 who have changed answers since" in codebook_of(export)

    def test_without_looking_for_later_answers_they_are_in_the_file(
        self, staff, reopened, monkeypatch
    ):
        monkeypatch.setattr(
            released_rows, "_saved_after", lambda mask, keys, counted: keys < 0
        )
        assert 3 in ages(made(staff.state, reopened))


class TestItemsOfFew:
    """Four people of Lincoln answer a follow-up, and everybody elsewhere."""

    @pytest.fixture
    def follow_up(self, staff, closed):
        lincoln = range(30)
        answer_all(
            closed,
            (
                (person, {"teen": "12"[age % 2], "pets": ("cat", "dog")[age % 2]})
                for age, person in people_by_age(closed).items()
                if age not in lincoln or age in range(20, 24)
            ),
        )
        Response.objects.update(saved_at=timezone.now() - timedelta(days=1))
        return closed

    def answers(self, export, school: str, name: str) -> Counter[str]:
        return Counter(
            row[name] for row in rows_of(export) if row["school_code"] == school
        )

    def test_rows_leave_out_what_the_page_of_the_school_hides(self, staff, follow_up):
        export = made(staff.state, follow_up)
        place = ("school", staff.lincoln.pk)
        page = visible_groups(follow_up, [place])[place]
        assert "teen" in page.hidden_items
        for name in ("teen", "pets_cat", "pets_dog"):
            assert self.answers(export, "lincoln", name) == {"*": 30}
            assert "*" not in self.answers(export, "roosevelt", name)
        assert "left out (*) 30" in codebook_of(export)
        # Every person there has answered others.
        assert "*" not in self.answers(export, "lincoln", "safe")

    def test_without_masks_rows_add_up_to_the_hidden_figure(
        self, staff, follow_up, monkeypatch
    ):
        monkeypatch.setattr(release_mask, "masked_items", mask_nothing)
        rows = self.answers(made(staff.state, follow_up), "lincoln", "teen")
        hidden = distributions(follow_up, "school", staff.lincoln.pk).items["teen"]
        assert hidden.values["1"] == rows["1"] == 2
        assert hidden.values["2"] == rows["2"] == 2

    def states_of_teen(self, staff, follow_up) -> list[str]:
        rows = rows_of(made(staff.state, follow_up, format="long"))
        return [row["state"] for row in rows if row["item"] == "teen"]

    def test_a_long_file_has_no_row_either(self, staff, follow_up):
        """Nor for those who skipped it: no row says that somebody reached it."""
        wide = [row["teen"] for row in rows_of(made(staff.state, follow_up))]
        states = self.states_of_teen(staff, follow_up)
        assert len(states) == sum(value not in ("*", "-99") for value in wide) > 0
        assert "*" not in states

    def test_rows_of_what_is_left_out_would_tell_who_reached_it(
        self, staff, follow_up, monkeypatch
    ):
        """The twin."""
        monkeypatch.setattr(long_rows, "compress", lambda rows, _shown: rows)
        assert "*" in self.states_of_teen(staff, follow_up)

    def test_calculations_tell_about_what_they_read(self, closed):
        [version] = versions_of([closed]).values()
        assert version.sources("score") == {"score", "safe"}
        assert version.sources("teen") == {"teen"}


def people_by_age(administration) -> dict[int, Respondent]:
    rows = Response.objects.filter(item_id=item_ids(administration)["age"])
    people = Respondent.objects.in_bulk()
    return {
        int(age): people[key] for key, age in rows.values_list("respondent_id", "value")
    }


EVERYONE, SEVEN, EIGHT = ("", ""), ("grade", "07"), ("grade", "08")


def masks(counts, hidden=None) -> list[bool]:
    """Decide about an item; the classes are those of grade 7, 7, 8 and 8."""
    groups = [[EVERYONE, SEVEN]] * 2 + [[EVERYONE, EIGHT]] * 2
    masked = masked_items(groups, {"who": np.array(counts)}, hidden or {}, TEN)
    return ["who" in names for names in masked]


def test_items_are_masked_that_few_of_a_class_answered():
    assert masks([20, 0, 12, 0]) == [False] * 4
    # With the class that would tell of them, less the page.
    assert masks([20, 4, 15, 12]) == [True, True, False, True]
    assert masks([4, 8, 15, 12]) == [True, True, False, False]
    assert masks([20, 15, 12, 13], {EIGHT: {"who"}}) == [False, False, True, True]
    assert masks([20, 15, 12, 13], {EVERYONE: {"who"}}) == [True] * 4


def test_without_a_release_there_is_no_file(staff, closed):
    export = made_as_it_is(staff.state, closed)
    assert not export.file_name
    assert "wait until the survey round has closed" in export.job.message
    district = {"districts": [staff.riverside.pk]}
    assert made_as_it_is(staff.dana, closed, places=district, **NAMES).rows == 83


def test_a_panel_shows_no_more_than_the_release(staff, closed):
    spring = Administration.objects.get(pk=closed.pk)
    spring.pk, spring.name = None, "spring"
    spring.save()
    Administration.objects.update(joins_waves=True)
    for administration in (closed, spring):
        administration.refresh_from_db()
    export = made(staff.state, closed, spring, is_panel=True)
    single = cells(made(staff.state, closed))
    for age, joined_cells in cells(export).items():
        for joined, alone in zip(joined_cells, single[age], strict=True):
            assert joined in (alone, "*")
    assert export.rows == len(IN_FILES)


def test_a_place_is_shared_by_two_schools_and_the_minimum():
    sizes = {1: 30, 2: 6, 3: 6, 4: 9, 5: 40, 6: 3, 7: 40}
    districts = {1: 1, 2: 1, 3: 1, 4: 2, 5: 2, 6: 3, 7: 3}
    assert shown_places(sizes, districts, set(), TEN) == {
        1: ShownPlace(1, 1),
        2: ShownPlace(1),
        3: ShownPlace(1),
        # Alone in their districts, together enough in the state.
        4: ShownPlace(),
        5: ShownPlace(2, 5),
        6: ShownPlace(),
        7: ShownPlace(3, 7),
    }
    del sizes[6]
    assert shown_places(sizes, districts, set(), TEN)[4] is None
    # Where the pages hide a large school as well, its rows do not tell either.
    shown = shown_places(sizes, districts, {("school", 5)}, TEN)
    assert shown[4] == shown[5] == ShownPlace(2)


values = st.sampled_from(["a", "b", "c", "d"])
patterns = st.dictionaries(
    st.tuples(values, values, values), st.integers(1, 12), min_size=1, max_size=30
)


def columns_of(rows, hidden) -> list[Column]:
    file_columns = []
    for texts in zip(*rows, strict=True):
        names, codes = np.unique(texts, return_inverse=True)
        flags = np.array([name in hidden for name in names.tolist()])
        file_columns.append(Column(names.tolist(), codes.reshape(-1), flags, True))
    return file_columns


@given(people=patterns, minimum=st.integers(2, 12), hidden=st.sets(values))
def test_what_is_shown_of_a_place_is_shared_by_the_minimum(people, minimum, hidden):
    sizes = np.array(list(people.values()))
    if sizes.sum() < minimum:
        return
    columns = columns_of(people, hidden)
    shown = shown_values.shown_values(columns, sizes, minimum)
    shared: Counter[tuple[str, ...]] = Counter()
    for number, size in enumerate(people.values()):
        shared[
            tuple(
                column.values[column.codes[number]]
                if flags[column.codes[number]]
                else "*"
                for column, flags in zip(columns, shown, strict=True)
            )
        ] += size
    assert min(shared.values()) >= minimum
    for column, flags in zip(columns, shown, strict=True):
        if len(column.values) > 1:
            assert not (flags & column.hidden).any()
            # A single value that is missing would be known.
            assert np.count_nonzero(~flags) != 1


def test_two_groups_that_differ_by_a_few_people_isolate_them():
    people = np.array([20, 3, 15])
    everyone, most, first = [1, 1, 1], [1, 0, 1], [1, 0, 0]
    assert isolates(np.array([everyone, most], bool).T, people, TEN)
    assert not isolates(np.array([everyone, first], bool).T, people, TEN)
    # Eight less three: a few people on both sides.
    assert isolates(np.array([[1, 1, 0], [1, 0, 1]], bool).T, np.array([9, 3, 5]), TEN)
