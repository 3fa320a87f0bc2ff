"""Where waves are joined, nobody's cells of all waves are shared by too few people."""

from __future__ import annotations

from collections import Counter, defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accounts.permissions import Places
from reports.answers.selection import Selection
from reports.exports import panel, panel_groups
from reports.exports.panel_groups import PanelGroups, PathCounts
from reports.exports.panel_people import count_people_in_several
from reports.models import Export, PanelProject
from reports.tests.exports.conftest import answer_all, panel_of, respondent_of
from reports.tests.exports.test_formats import rows_of
from reports.tests.exports.test_minimum_group import CELLS as ALL_CELLS
from survey.models import Administration, Identity, Respondent
from survey.work.files import path_of

CELLS = tuple(name for name in ALL_CELLS if name not in ("track", "sex"))
FIVE = 5


def people_of(export: Export) -> list[list[dict[str, str]]]:
    """Return the rows of each person."""
    people = defaultdict(list)
    for row in rows_of(export):
        people[row["panel_id"]].append(row)
    return list(people.values())


def shows_nothing(row: dict[str, str]) -> bool:
    return all(row[name] == "*" for name in CELLS)


def cells_of(row: dict[str, str]) -> str:
    return ",".join(row[name] for name in ("administration", *CELLS))


def joint_cells(export: Export, *, lone: bool = True) -> Counter[tuple[str, ...]]:
    """Count people by the cells of all their rows; `lone` with rows of nobody."""
    return Counter(
        tuple(sorted(map(cells_of, rows)))
        for rows in people_of(export)
        if lone or len(rows) > 1 or not shows_nothing(rows[0])
    )


def lone_rows(export: Export) -> Counter[str]:
    """Count the rows that show nothing and belong to no other, by administration."""
    return Counter(
        rows[0]["administration"]
        for rows in people_of(export)
        if len(rows) == 1 and shows_nothing(rows[0])
    )


class TestMinimumGroup:
    pytestmark = pytest.mark.django_db

    @pytest.fixture
    def protected(self, waves):
        Administration.objects.update(minimum_group=FIVE)
        return waves

    @pytest.fixture
    def people(self, staff, protected):
        """60 people in both waves; one has moved to a school with many people."""
        schools = (staff.lincoln, staff.washington)
        for wave, administration in enumerate(protected):
            people = Respondent.objects.bulk_create(
                respondent_of(
                    administration,
                    schools[1 if number == 0 and wave else number % 2],
                    grade=f"0{6 + number % 3 + wave}",
                )
                for number in range(60)
            )
            Identity.objects.bulk_create(
                Identity(
                    respondent=person,
                    administration=administration,
                    district=staff.riverside,
                    external_id=f"S{number}",
                )
                for number, person in enumerate(people)
            )
            ages = ({"age": str(100 * wave + number)} for number in range(60))
            answer_all(administration, zip(people, ages, strict=True))
        return protected

    @pytest.mark.sqlite
    def test_a_person_who_moved_cannot_be_singled_out(self, staff, people):
        export = panel_of(staff.state, people)
        assert min(joint_cells(export).values()) >= FIVE
        # Everybody is joined, and most keep their schools.
        assert export.joined_people == 60
        schools = Counter(row["school_code"] for row in rows_of(export))
        assert schools["lincoln"] >= 40 and schools["washington"] >= 40

    def test_with_each_wave_for_itself_the_person_would_be(
        self, staff, people, monkeypatch
    ):
        monkeypatch.setattr(PanelGroups, "shown", lambda self, path: len(self.steps))
        assert min(joint_cells(panel_of(staff.state, people)).values()) == 1

    def test_with_the_ids_of_another_set_of_waves_the_person_would_be(
        self, staff, people
    ):
        """So all files of a project have the same waves: see `refusal_by_project`."""
        study = PanelProject.objects.create(name="Study", by=staff.state)
        schools = defaultdict(list)
        for wave in people:
            for row in rows_of(panel_of(staff.state, [wave], project=study)):
                schools[row["panel_id"]].append(row["school_code"])
        assert min(Counter(map(tuple, schools.values())).values()) == 1

    @pytest.fixture
    def newcomer(self, staff, people, take_part):
        """One person came after the first wave, and six left after it."""
        fall, spring = people
        for number in range(6):
            take_part(fall, staff.lincoln, f"F{number}", 200 + number, grade="06")
        take_part(spring, staff.lincoln, "NEW", 999, grade="08")
        return people

    def test_a_newcomer_cannot_be_singled_out(self, staff, newcomer):
        export = panel_of(staff.state, newcomer)
        lone = lone_rows(export)
        assert lone["spring"] >= FIVE and lone["fall"] >= FIVE
        # All of these look alike.
        [new] = [row for row in rows_of(export) if row["age"] == "999"]
        assert {new[name] for name in CELLS} == {"*"}
        assert min(joint_cells(export, lone=False).values()) >= FIVE

    def test_without_company_for_lone_rows_the_newcomer_would_be(
        self, staff, newcomer, monkeypatch
    ):
        monkeypatch.setattr(PanelGroups, "_hide_lone_rows", lambda *_: None)
        assert lone_rows(panel_of(staff.state, newcomer))["spring"] == 1

    def test_many_people_are_sorted_on_disk(self, staff, people, monkeypatch):
        expected = joint_cells(panel_of(staff.state, people))
        monkeypatch.setattr("reports.exports.anonymise.MEMORY", 3000)
        monkeypatch.setattr(panel_groups, "MOST_PATHS", 1)
        monkeypatch.setattr(panel, "BATCH", 7)
        assert joint_cells(panel_of(staff.state, people)) == expected

    def test_the_codebook_says_what_was_made_coarser(self, staff, people):
        text = path_of(panel_of(staff.state, people).codebook_name).read_text()
        assert "in all rows of a person together, is shared by at least 5" in text
        assert "What was made coarser" in text

    def test_people_in_several_waves_are_counted_in_one_statement(
        self, staff, people, take_part, django_assert_num_queries
    ):
        take_part(people[1], staff.lincoln, "NEW", 999)
        places = Places(state=True)
        selection = Selection(people, places)
        with django_assert_num_queries(1):
            assert count_people_in_several(selection) == 60


patterns = st.sampled_from(["1", "2", "3", "1 2", "2 3", "1 2 3"])
panel_paths = st.lists(
    st.one_of(
        st.tuples(patterns, st.sampled_from("AB"), st.sampled_from("xyz")),
        st.tuples(patterns),
    ),
    max_size=60,
)


@given(people=panel_paths, minimum=st.integers(2, 6))
def test_every_group_and_every_rest_reaches_the_minimum(people, minimum):
    groups = PanelGroups(minimum)
    counts = sorted(Counter(people).items())
    groups.divide_people(counts)
    shown = Counter(path[: groups.shown(path)] for path in people)
    for group, size in shown.items():
        assert not group or size >= minimum
    rows: Counter[str] = Counter()
    lone: Counter[str] = Counter()
    for path in people:
        for administration in path[0].split():
            rows[administration] += 1
            lone[administration] += not groups.shown(path)
    for administration, count in lone.items():
        assert count == 0 or count >= min(minimum, rows[administration])
    # What the codebook says is what was done.
    if len(people) >= minimum:
        assert Counter(groups.shown(path) for path in people) == +groups.people


def test_paths_are_counted_in_the_order_of_their_beginnings(tmp_path, monkeypatch):
    monkeypatch.setattr(panel_groups, "MOST_PATHS", 2)
    counts = PathCounts(tmp_path / "paths")
    for path in ('["b"]', '["a", "x"]', '["ab", "x"]', '["a"]', '["a", "x"]', '["b"]'):
        counts.add(path)
    expected = [("a", "x"), ("a",), ("ab", "x"), ("b",)]
    for _ in range(2):
        assert [path for path, _ in counts] == expected
        assert dict(counts) == {("a", "x"): 2, ("a",): 1, ("ab", "x"): 1, ("b",): 2}
