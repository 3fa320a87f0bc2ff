"""One person has one ID in all waves of a panel."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime

import openpyxl
import pytest

from accounts.permissions import Places
from reports.answers.selection import Selection
from reports.exports import panel, panel_people
from reports.exports.panel_people import (
    PersonId,
    count_people_in_several,
    joined_ids,
    person_ids,
)
from reports.models import Export, PanelProject
from reports.tests.exports.conftest import identify, made, panel_of
from reports.tests.exports.test_formats import content, rows_of
from survey.models import (
    Administration,
    Denominator,
    RecordJoin,
    Respondent,
    Role,
)
from survey.work.files import path_of


def ids_by_age(export: Export) -> dict[str, str]:
    return {row["age"]: row["panel_id"] for row in rows_of(export)}


def people_by_ages(export: Export) -> list[str]:
    """Return the ages in the rows of each person, such as "9 10"."""
    ages = defaultdict(list)
    for row in rows_of(export):
        ages[row["panel_id"]].append(int(row["age"]))
    return sorted(
        " ".join(map(str, sorted(person_ages))) for person_ages in ages.values()
    )


class TestPeople:
    pytestmark = pytest.mark.django_db

    @pytest.mark.sqlite
    def test_a_person_has_one_id_in_both_waves(self, staff, waves, take_part):
        fall, spring = waves
        take_part(fall, staff.lincoln, "S1", 10)
        take_part(spring, staff.lincoln, "S1", 11)
        # Moved to another school of the district.
        take_part(fall, staff.lincoln, "S2", 20)
        take_part(spring, staff.washington, "S2", 21)
        take_part(spring, staff.lincoln, "S3", 31)
        export = panel_of(staff.state, waves)

        assert people_by_ages(export) == ["10 11", "20 21", "31"]
        assert (export.rows, export.joined_people) == (5, 2)
        rows = {row["age"]: row for row in rows_of(export)}
        assert list(rows["10"])[:4] == [
            "panel_id",
            "administration",
            "wave",
            "survey_version",
        ]
        assert (rows["20"]["wave"], rows["21"]["wave"]) == ("Fall 2026", "Spring 2027")
        assert [rows[age]["school_code"] for age in ("20", "21")] == [
            "lincoln",
            "washington",
        ]
        ids = [row["panel_id"] for row in rows_of(export)]
        assert ids == sorted(ids)
        assert b"S1" not in content(export)
        # The next file has other IDs.
        assert not set(ids) & set(ids_by_age(panel_of(staff.state, waves)).values())

    def test_without_a_panel_nobody_can_be_followed(self, staff, waves, take_part):
        for number, wave in enumerate(waves):
            take_part(wave, staff.lincoln, "S1", 10 + number)
        rows = rows_of(made(staff.state, *waves))
        assert len({row["research_id"] for row in rows}) == 2
        assert "panel_id" not in rows[0] and "wave" not in rows[0]

    @pytest.mark.sqlite
    def test_the_same_id_in_another_district_is_another_person(
        self, staff, waves, take_part
    ):
        fall, spring = waves
        take_part(fall, staff.lincoln, "S1", 10)
        take_part(spring, staff.roosevelt, "S1", 11)
        assert people_by_ages(panel_of(staff.state, waves)) == ["10", "11"]

    def test_the_same_id_in_another_role_is_another_person(
        self, staff, waves, take_part
    ):
        fall, spring = waves
        Administration.objects.filter(pk=spring.pk).update(role=Role.TEACHER)
        take_part(fall, staff.lincoln, "S1", 10)
        take_part(spring, staff.lincoln, "S1", 11)
        assert people_by_ages(panel_of(staff.state, waves)) == ["10", "11"]

    @pytest.mark.sqlite
    def test_people_without_an_id_are_not_joined(self, staff, waves, take_part):
        for number, wave in enumerate(waves):
            take_part(wave, staff.lincoln, "", 10 + number)
            take_part(wave, staff.lincoln, "", 20 + number)
        export = panel_of(staff.state, waves)
        assert people_by_ages(export) == ["10", "11", "20", "21"]
        assert export.joined_people == 0

    @pytest.mark.sqlite
    def test_people_who_are_not_in_the_results_are_not_in_the_file(
        self, staff, waves, take_part
    ):
        fall, spring = waves
        take_part(fall, staff.lincoln, "S1", 10)
        gone = take_part(fall, staff.lincoln, "S2", 20)
        for age, external_id in ((11, "S1"), (21, "S2")):
            take_part(spring, staff.lincoln, external_id, age)
        left = take_part(spring, staff.lincoln, "", 12)
        Respondent.objects.filter(pk__in=[gone.pk, left.pk]).update(
            withdrawn_at=datetime(2027, 3, 4, tzinfo=UTC)
        )
        assert people_by_ages(panel_of(staff.state, waves)) == ["10 11", "21"]
        # Withdrawing somebody later changes nothing.
        Respondent.objects.update(withdrawn_at=datetime(2027, 3, 5, tzinfo=UTC))
        take_part(fall, staff.lincoln, "S3", 30)
        assert people_by_ages(panel_of(staff.state, waves)) == ["10 11", "21"]

    @pytest.mark.sqlite
    def test_people_who_have_opted_out_are_not_in_the_file(
        self, staff, waves, take_part
    ):
        now = datetime(2027, 3, 4, tzinfo=UTC)
        fall, spring = waves
        take_part(fall, staff.lincoln, "S1", 10)
        take_part(spring, staff.lincoln, "S1", 11, withdrawn_at=now, opted_out_at=now)
        take_part(spring, staff.lincoln, "S2", 12)
        export = panel_of(staff.state, waves)
        assert people_by_ages(export) == ["10", "12"]
        selection = Selection(waves, Places(state=True))
        assert count_people_in_several(selection) == export.joined_people == 0

    def test_only_people_of_the_selection_are_joined(self, staff, waves, take_part):
        fall, spring = waves
        done = datetime(2027, 3, 2, tzinfo=UTC)
        take_part(fall, staff.lincoln, "S1", 10, completed_at=done)
        take_part(spring, staff.washington, "S1", 11, completed_at=done)
        take_part(fall, staff.lincoln, "S2", 20)
        take_part(spring, staff.lincoln, "S2", 21, completed_at=done)
        places = {"schools": [staff.lincoln.pk]}
        export = panel_of(staff.state, waves, places=places)
        assert people_by_ages(export) == ["10", "20 21"]
        export = panel_of(staff.state, waves, finished_only=True)
        assert people_by_ages(export) == ["10 11", "21"]

    def test_an_excel_sheet_has_the_same_ids(self, staff, waves, take_part):
        for number, wave in enumerate(waves):
            take_part(wave, staff.lincoln, "S1", 10 + number)
        export = panel_of(staff.state, waves, format="xlsx")
        sheet = openpyxl.load_workbook(path_of(export.file_name))["Responses"]
        [header, *rows] = sheet.iter_rows(values_only=True)
        assert header[0] == "panel_id"
        assert len({row[0] for row in rows}) == 1
        assert len(rows) == 2

    def test_the_codebook_explains_the_ids(self, staff, waves, take_part):
        for number, wave in enumerate(waves):
            take_part(wave, staff.lincoln, "S1", 10 + number)
        text = path_of(panel_of(staff.state, waves).codebook_name).read_text()
        assert "1 person has rows of several survey rounds" in text
        assert "<code>panel_id</code>" in text and "<code>wave</code>" in text
        assert "Another file has other IDs." in text


class TestJoinedRecords:
    pytestmark = pytest.mark.django_db

    @pytest.fixture
    def join(self, staff):
        def joined(administration, person, other_id):
            duplicate = (
                person.administration.respondents.exclude(pk=person.pk).first()
                or person
            )
            RecordJoin.objects.create(
                administration=administration,
                kept=person,
                other_id=duplicate.pk if duplicate.pk != person.pk else person.pk + 1,
                state=RecordJoin.State.JOINED,
                district=person.school.district,
                external_id=other_id,
                by=staff.state,
            )

        return joined

    @pytest.fixture
    def joined(self, staff, waves, take_part, join):
        """In spring, S1 and OLD were one person; in fall, only OLD was listed."""
        fall, spring = waves
        take_part(fall, staff.lincoln, "OLD", 10)
        person = take_part(spring, staff.lincoln, "S1", 11)
        withdrawn = take_part(spring, staff.lincoln, "", 12)
        join(spring, person, "OLD")
        return [fall, spring, person, withdrawn]

    @pytest.mark.sqlite
    def test_an_id_of_a_joined_record_is_the_same_person(self, staff, waves, joined):
        assert people_by_ages(panel_of(staff.state, waves)) == ["10 11", "12"]

    def test_without_joined_ids_they_are_two_people(
        self, staff, waves, joined, monkeypatch
    ):
        monkeypatch.setattr(panel, "joined_ids", lambda roles: {})
        assert people_by_ages(panel_of(staff.state, waves)) == ["10", "11", "12"]

    def test_the_join_of_another_wave_counts_as_well(
        self, staff, waves, take_part, enrol, join, fall
    ):
        """Otherwise an ID would depend on the waves that are in the file."""
        first, second = waves
        take_part(first, staff.lincoln, "OLD", 10)
        take_part(second, staff.lincoln, "NEW", 11)
        third = Administration.objects.get(pk=first.pk)
        third.pk, third.name = None, "third"
        third.save()
        person = enrol(third, staff.lincoln)
        identify(person, external_id="NEW")
        enrol(third, staff.lincoln)
        join(third, person, "OLD")
        assert people_by_ages(panel_of(staff.state, waves)) == ["10 11"]

    @pytest.mark.sqlite
    def test_two_records_of_a_person_in_one_wave_stay_apart(
        self, staff, waves, joined, take_part
    ):
        fall, *_ = joined
        take_part(fall, staff.lincoln, "S1", 20)
        ages_of_people = people_by_ages(panel_of(staff.state, waves))
        assert sorted(" ".join(ages_of_people).split()) == ["10", "11", "12", "20"]
        assert "10 20" not in ages_of_people and "10 11 20" not in ages_of_people

    @pytest.mark.sqlite
    def test_chains_of_joined_ids_lead_to_one(self, staff, waves, take_part, join):
        fall, spring = waves
        person = take_part(fall, staff.lincoln, "B", 10)
        take_part(fall, staff.lincoln, "", 90)
        two = take_part(spring, staff.lincoln, "C", 11)
        take_part(spring, staff.lincoln, "", 91)
        join(fall, person, "A")
        join(spring, two, "B")
        district = staff.riverside.pk
        assert joined_ids(["student"]) == dict.fromkeys(
            [PersonId("student", district, name) for name in "ABC"],
            PersonId("student", district, "A"),
        )
        assert joined_ids(["teacher"]) == {}
        assert people_by_ages(panel_of(staff.state, waves)) == ["10 11", "90", "91"]

    def test_finding_people_needs_one_or_two_statements(
        self, staff, waves, joined, take_part, django_assert_num_queries
    ):
        administrations = {wave.pk: wave for wave in waves}
        with django_assert_num_queries(1):
            known = joined_ids(["student"])
        for extra in (0, 3):
            alone = [
                take_part(waves[0], staff.lincoln, f"X{extra}{n}", n).pk
                for n in range(extra + 1)
            ]
            with django_assert_num_queries(1):
                assert len(person_ids(alone, administrations, known)) == extra + 1
            with django_assert_num_queries(2):
                person_ids([*alone, joined[2].pk], administrations, known)


class TestProjects:
    pytestmark = pytest.mark.django_db

    def test_files_of_a_project_have_the_same_ids(self, staff, waves, take_part):
        for number, wave in enumerate(waves):
            take_part(wave, staff.lincoln, "S1", 10 + number)
        study = PanelProject.objects.create(name="Study", by=staff.state)
        other_project = PanelProject.objects.create(name="Other", by=staff.state)
        same_name = PanelProject.objects.create(name="Study", by=staff.dana)
        first = ids_by_age(panel_of(staff.state, waves, project=study))
        later = panel_of(staff.state, waves[1:], project=study)
        assert first["10"] == first["11"] == ids_by_age(later)["11"]
        for project in (other_project, same_name):
            ids = ids_by_age(panel_of(staff.state, waves, project=project))
            assert not set(ids.values()) & set(first.values())
        assert "All files of the project Study" in (
            path_of(later.codebook_name).read_text()
        )

    def test_an_id_cannot_be_computed_without_the_key(self, staff, waves, take_part):
        take_part(waves[0], staff.lincoln, "S1", 10)
        study = PanelProject.objects.create(name="Study", by=staff.state)
        ids = [ids_by_age(panel_of(staff.state, waves, project=study))["10"]]
        PanelProject.objects.update(key=b"another key")
        study.refresh_from_db()
        ids.append(ids_by_age(panel_of(staff.state, waves, project=study))["10"])
        assert ids[0] != ids[1]


class TestPromises:
    pytestmark = pytest.mark.django_db

    def test_people_who_were_promised_otherwise_are_not_joined(
        self, staff, waves, take_part
    ):
        for number, wave in enumerate(waves):
            take_part(wave, staff.lincoln, "S1", 10 + number)
        Administration.objects.filter(pk=waves[0].pk).update(joins_waves=False)
        export = panel_of(staff.state, waves)
        assert not export.file_name
        assert "have been promised" in export.job.message

    def test_without_that_check_they_would_be(
        self, staff, waves, take_part, monkeypatch
    ):
        for number, wave in enumerate(waves):
            take_part(wave, staff.lincoln, "S1", 10 + number)
        Administration.objects.update(joins_waves=False)
        monkeypatch.setattr(panel, "refusal", lambda administration: "")
        assert people_by_ages(panel_of(staff.state, waves)) == ["10 11"]

    def test_people_with_open_codes_have_no_ids(self, staff, waves):
        waves[1].denominator = Denominator.COUNT
        assert "with school links and without IDs" in panel_people.refusal(waves[1])
        assert panel_people.refusal(waves[0]) == ""
