"""Choose known schools for those of a roster that are not known."""

from __future__ import annotations

import pytest
from django.contrib.messages import get_messages
from django.utils import timezone

from accounts.models import AuditEntry, School
from survey.models import Respondent, RosterLayoutChoice
from survey.people.rosters import retention, school_questions
from survey.people.rosters.school_choices import NOT_TO_CHOOSE
from survey.people.rosters.uploads import SCHOOLS_TO_CHECK
from survey.tests.rosters.roster_console import (
    ALI,
    HEADER,
    MAYA,
    NOOR,
    ZOE,
    counts,
    person,
    reasons,
)

pytestmark = pytest.mark.django_db

# Maya's school is misspelt in two ways, and Zoe's is another one.
MISSPELT = [
    MAYA.replace("lincoln", "Lincon"),
    ALI.replace("lincoln", "lincon"),
    ZOE.replace("washington", "Lyceum"),
]


def page(upload):
    return f"/console/rosters/{upload.pk}/schools/"


def detail(console, upload):
    return console.get(f"/console/rosters/{upload.pk}/").text


def questions(upload):
    upload.refresh_from_db()
    return {entry["name"]: entry for entry in upload.report["school_questions"]}


def choose(console, upload, **schools):
    """Choose schools by what the file calls them; the file is checked again."""
    asked = questions(upload)
    chosen = {
        f"school-{asked[name]['key']}": school.pk for name, school in schools.items()
    }
    response = console.post(page(upload), **chosen)
    upload.refresh_from_db()
    return response


def messages_of(response):
    return " ".join(map(str, get_messages(response.wsgi_request)))


def test_a_misspelt_school_is_answered_in_place(staff, administration, console_of):
    dana = console_of(staff.dana)
    upload = dana.upload(administration, HEADER, *MISSPELT)
    asked = questions(upload)
    assert {name: entry["people"] for name, entry in asked.items()} == {
        "Lincon": 2,
        "Lyceum": 1,
    }
    assert asked["Lincon"]["near"] == [staff.lincoln.pk]
    shown = detail(dana, upload)
    assert "Did you mean Lincoln (Riverside)?" in shown
    assert "creates 2 schools" in shown

    # The other answer is given: Lyceum resembles no known school.
    key = asked["Lincon"]["key"]
    assert f'name="school-{key}" value="0">' in shown
    assert "Check 1 school before you apply" in shown
    assert "Apply roster" not in shown
    for page_text in (shown, dana.get("/console/rosters/").text):
        assert '<span class="badge caution">schools to check</span>' in page_text
        assert "ready to apply" not in page_text
    choose(dana, upload, Lincon=staff.lincoln)
    assert upload.state == "checked"
    assert questions(upload).keys() == {"Lyceum"}
    shown = detail(dana, upload)
    assert "is read as <strong>Lincoln (Riverside)</strong>" in shown
    assert "adds 3 people and creates 1 school" in shown
    assert "ready to apply" in dana.get("/console/rosters/").text
    assert AuditEntry.objects.filter(action="choose schools of a roster").exists()

    dana.confirm(upload)
    assert upload.state == "applied"
    assert person("00123").school == person("00124").school == staff.lincoln
    assert not School.objects.filter(name__iexact="lincon").exists()
    # What the file calls a school is not kept longer than needed.
    assert upload.report["school_questions"] == []


def test_a_new_school_with_a_near_name_is_confirmed_as_new(
    staff, administration, console_of
):
    dana = console_of(staff.dana)
    upload = dana.upload(administration, HEADER, *MISSPELT)
    # Not even a request without the page applies it.
    response = dana.confirm(upload)
    assert str(SCHOOLS_TO_CHECK) in messages_of(response)
    assert upload.state == "checked" and not Respondent.objects.exists()

    key = questions(upload)["Lincon"]["key"]
    dana.post(page(upload), **{f"school-{key}": "0"})
    assert questions(upload).keys() == {"Lyceum"}
    shown = detail(dana, upload)
    assert "Lincon (riverside) is added as a new school" in shown
    assert "Apply roster" in shown
    # It can be undone, and is asked again.
    for choice in dana.get(f"/console/rosters/{upload.pk}/").context["chosen_schools"]:
        dana.post(page(upload), undo=choice.key)
        upload.refresh_from_db()
    assert questions(upload).keys() == {"Lincon", "Lyceum"}
    dana.confirm(upload)
    assert upload.state == "checked"
    dana.post(page(upload), **{f"school-{key}": "0"})
    upload.refresh_from_db()
    dana.confirm(upload)
    assert upload.state == "applied"
    assert person("00123").school.name == "Lincon"
    assert person("00123").school == person("00124").school


def test_rejected_rows_are_not_confirmed_as_a_new_school(
    staff, administration, console_of
):
    chen = console_of(staff.chen)
    rows = (MAYA.replace("lincoln", "Lincoln Campus B"), ALI)
    upload = chen.upload(administration, HEADER, *rows)
    key = questions(upload)["Lincoln Campus B"]["key"]
    response = chen.post(page(upload), **{f"school-{key}": "0"})
    assert str(NOT_TO_CHOOSE) in messages_of(response)
    upload.refresh_from_db()
    assert upload.layout["schools"] == []


def test_a_choice_is_undone_until_the_roster_is_applied(
    staff, administration, console_of
):
    dana = console_of(staff.dana)
    upload = dana.upload(administration, HEADER, *MISSPELT)
    choose(dana, upload, Lincon=staff.lincoln, Lyceum=staff.washington)
    assert "school_questions" in upload.report and not questions(upload)
    for choice in dana.get(f"/console/rosters/{upload.pk}/").context["chosen_schools"]:
        dana.post(page(upload), undo=choice.key)
        upload.refresh_from_db()
    assert questions(upload).keys() == {"Lincon", "Lyceum"}
    assert upload.layout["schools"] == []

    choose(dana, upload, Lincon=staff.lincoln)
    [choice] = dana.get(f"/console/rosters/{upload.pk}/").context["chosen_schools"][:1]
    dana.confirm(upload)
    response = dana.post(page(upload), undo=choice.key)
    assert "Status of this roster: applied" in messages_of(response)


def test_a_choice_counts_for_one_file_only(staff, administration, console_of):
    dana = console_of(staff.dana)
    upload = dana.upload(administration, HEADER, *MISSPELT)
    choose(dana, upload, Lincon=staff.lincoln)
    # Choosing the columns keeps it in this file, and remembers only them.
    dana.post(
        f"/console/rosters/{upload.pk}/columns/",
        external_id="student ID",
        school="school",
        district="district",
        given_name="given name",
    )
    upload.refresh_from_db()
    assert questions(upload).keys() == {"Lyceum"}
    assert RosterLayoutChoice.objects.get().layout["schools"] == []
    second = dana.upload(administration, HEADER, *MISSPELT)
    assert questions(second).keys() == {"Lincon", "Lyceum"}


def test_nobody_chooses_a_school_that_is_not_theirs(staff, administration, console_of):
    dana = console_of(staff.dana)
    upload = dana.upload(administration, HEADER, *MISSPELT)
    closed = School.objects.create(
        district=staff.riverside, code="old", name="Old", closed_at=timezone.now()
    )
    for school in (staff.roosevelt, closed):
        response = choose(dana, upload, Lincon=school)
        assert str(NOT_TO_CHOOSE) in messages_of(response)
        assert upload.layout["schools"] == [] and upload.state == "checked"
    # Nor do they find it, or learn that it exists.
    key = questions(upload)["Lyceum"]["key"]
    for word, names in (("roosevelt", []), ("wash", ["Washington"])):
        response = dana.post(page(upload), find=key, **{f"q-{key}": word})
        [option] = [o for o in response.context["options"] if o.key == key]
        assert [school.name for school in option.schools] == names
    # Also not by sending its key while they search.
    for school, names in ((staff.roosevelt, []), (staff.washington, ["Washington"])):
        sent = {f"q-{key}": "zzz", f"school-{key}": school.pk}
        response = dana.post(page(upload), find=key, **sent)
        [option] = [o for o in response.context["options"] if o.key == key]
        assert [school.name for school in option.schools] == names
    # People of other places see none of it.
    for stranger in (staff.sam, staff.chen):
        assert console_of(stranger).post(page(upload)).status_code == 404


def test_permissions_are_checked_again_after_the_choice(
    staff, administration, console_of
):
    """Dana chooses for her district, and the check asks the administration again."""
    dana = console_of(staff.dana)
    upload = dana.upload(administration, HEADER, *MISSPELT)
    choose(dana, upload, Lincon=staff.lincoln, Lyceum=staff.washington)
    administration.schools.add(staff.washington)
    dana.confirm(upload)
    assert upload.state == "checked"
    assert "more rows would be rejected" in upload.message
    assert not Respondent.objects.exists()


def test_a_coordinator_puts_rejected_rows_into_the_own_school(
    staff, administration, console_of
):
    chen = console_of(staff.chen)
    rows = (MAYA.replace("lincoln", "Lincoln Campus B"), ALI, NOOR)
    upload = chen.upload(administration, HEADER, *rows)
    assert counts(upload) == {"added": 1, "rejected": 2}
    asked = questions(upload)
    assert {tuple(entry["offered"]) for entry in asked.values()} == {
        (staff.lincoln.pk,)
    }
    # Nothing suggests that the people of another school are hers.
    assert {tuple(entry["near"]) for entry in asked.values()} == {()}
    shown = detail(chen, upload)
    assert "Did you mean" not in shown and "Roosevelt" not in shown
    assert "2 schools whose rows are rejected" in shown
    choose(chen, upload, **{"Lincoln Campus B": staff.lincoln})
    assert counts(upload) == {"added": 2, "rejected": 1}
    assert [row for row, _, _ in reasons(upload)] == [4]


def test_the_state_is_shown_schools_of_other_districts(
    staff, administration, console_of
):
    """A person in the wrong district counts in the district of the chosen school."""
    state = console_of(staff.state)
    upload = state.upload(administration, HEADER, MAYA.replace("lincoln", "Roosevelt"))
    assert questions(upload)["Roosevelt"]["near"] == [staff.roosevelt.pk]
    choose(state, upload, Roosevelt=staff.roosevelt)
    state.confirm(upload)
    assert person("00123", "lakeside").school == staff.roosevelt


def test_a_school_of_another_district_is_named_where_it_would_be_added(
    staff, administration, console_of
):
    """The file was uploaded for the wrong district."""
    state = console_of(staff.state)
    rows = [row.replace("riverside", "lakeside") for row in (MAYA, ALI)]
    place = f"district-{staff.lakeside.pk}"
    upload = state.upload(administration, HEADER, *rows, place=place)
    asked = questions(upload)["lincoln"]
    assert (asked["near"], asked["elsewhere"]) == ([], [staff.lincoln.pk])
    shown = detail(state, upload)
    assert "Lincoln exists in Riverside." in shown
    assert "Apply roster" not in shown and "ready to apply" not in shown
    # Nothing is answered before a person does.
    assert (
        "checked" not in shown.split(f'id="school-{asked["key"]}"')[1].split("</fi")[0]
    )
    assert str(SCHOOLS_TO_CHECK) in messages_of(state.confirm(upload))
    # It is not among those that this file may name.
    assert str(NOT_TO_CHOOSE) in messages_of(
        choose(state, upload, lincoln=staff.lincoln)
    )
    # People of the district alone do not learn of it.
    staff.sam.memberships.create(role="district", district=staff.lakeside)
    shown = detail(console_of(staff.sam), upload)
    assert "schools to check" in shown and "Riverside" not in shown

    state.post(page(upload), **{f"school-{asked['key']}": "0"})
    upload.refresh_from_db()
    state.confirm(upload)
    assert upload.state == "applied"
    assert person("00123", "lakeside").school.name.casefold() == "lincoln"


def test_a_district_adds_a_school_without_learning_of_others(
    staff, administration, console_of
):
    """The twin: who uploads for the own district is asked nothing about others."""
    dana = console_of(staff.dana)
    upload = dana.upload(administration, HEADER, MAYA.replace("lincoln", "Roosevelt"))
    assert questions(upload)["Roosevelt"]["elsewhere"] == []
    shown = detail(dana, upload)
    assert "exists in" not in shown and "Apply roster" in shown


def test_a_chosen_school_that_was_deleted_rejects_its_rows(
    staff, administration, console_of
):
    dana = console_of(staff.dana)
    lyceum = School.objects.create(
        district=staff.riverside, code="lyc", name="Old Lyceum"
    )
    upload = dana.upload(administration, HEADER, *MISSPELT)
    choose(dana, upload, Lincon=staff.lincoln, Lyceum=lyceum)
    # As when it is merged with another school.
    upload.schools.filter(school=lyceum).update(school=staff.lincoln)
    lyceum.delete()
    dana.confirm(upload)
    assert upload.state == "checked"
    assert "does not exist any more" in reasons(upload)[0][2]
    assert "the chosen school does not exist any more" in detail(dana, upload)


def test_a_page_that_was_read_before_a_choice_confirms_nothing(
    staff, administration, console_of
):
    dana = console_of(staff.dana)
    upload = dana.upload(administration, HEADER, *MISSPELT)
    before = dana.get(f"/console/rosters/{upload.pk}/").context["columns_key"]
    stale = questions(upload)["Lincon"]["key"]
    choose(dana, upload, Lincon=staff.lincoln)
    dana.post(f"/console/rosters/{upload.pk}/confirm/", seen="0", columns=before)
    upload.refresh_from_db()
    assert upload.state == "checked"
    response = dana.post(page(upload), **{f"school-{stale}": staff.washington.pk})
    assert "which school is meant" in messages_of(response)


def test_people_who_left_an_unknown_school_leave_the_chosen_one(
    staff, administration, console_of
):
    dana = console_of(staff.dana)
    dana.apply(administration, HEADER, MAYA, ALI)
    header = f"{HEADER},status"
    upload = dana.upload(
        administration,
        header,
        f"{MISSPELT[0]},active",
        f"{MISSPELT[1]},withdrawn",
        complete_for="changes",
    )
    choose(dana, upload, Lincon=staff.lincoln)
    assert upload.withdrawn == 1
    assert person("00124").school == staff.lincoln


def test_searching_one_school_answers_htmx_with_that_school(
    staff, administration, console_of
):
    dana = console_of(staff.dana)
    upload = dana.upload(administration, HEADER, *MISSPELT)
    asked = questions(upload)
    key = asked["Lincon"]["key"]
    response = dana.client.post(
        page(upload),
        {"find": key, f"q-{key}": "zzz"},
        headers={"HX-Request": "true"},
    )
    assert "No school that you may choose matches “zzz”" in response.text
    assert "<html" not in response.text and "Lyceum" not in response.text
    unknown = {"find": "0", "q-0": "zzz"}
    response = dana.client.post(page(upload), unknown, headers={"HX-Request": "true"})
    assert response.status_code == 404


def test_the_page_with_choices_takes_the_same_queries_for_three_as_for_one(
    staff, administration, console_of, django_assert_num_queries
):
    dana = console_of(staff.dana)
    rows = [MAYA.replace("lincoln", name) for name in ("Lincon", "Lincolm", "Lincolin")]
    rows = [row.replace("00123", str(900 + i)) for i, row in enumerate(rows)]
    for some in (rows[:1], rows):
        upload = dana.upload(administration, HEADER, *some)
        with django_assert_num_queries(8):
            dana.get(f"/console/rosters/{upload.pk}/")
        choose(dana, upload, **dict.fromkeys(questions(upload), staff.lincoln))
        with django_assert_num_queries(8):
            dana.get(f"/console/rosters/{upload.pk}/")


def test_a_code_of_another_district_is_no_near_school(
    staff, administration, console_of
):
    School.objects.create(district=staff.lakeside, code="007", name="Cedar High")
    state = console_of(staff.state)
    row = MAYA.replace("lincoln", "007") + ",Maple Academy"
    upload = state.upload(administration, f"{HEADER},school_name", row)
    assert questions(upload)["Maple Academy"]["near"] == []
    # The twin: a name near one of another district is asked about.
    row = MAYA.replace("lincoln", "008") + ",Cedar Hihg"
    upload = state.upload(administration, f"{HEADER},school_name", row)
    assert len(questions(upload)["Cedar Hihg"]["near"]) == 1


def test_many_rejected_schools_leave_room_for_new_ones(
    staff, administration, console_of, monkeypatch
):
    monkeypatch.setattr(school_questions, "MOST_COMPARED", 1)
    dana = console_of(staff.dana)
    foreign = ZOE.replace("riverside", "lakeside").replace("washington", "Lyceum")
    upload = dana.upload(administration, HEADER, foreign, MISSPELT[0])
    assert list(questions(upload)) == ["Lincon"]


def test_questions_are_deleted_with_the_file(
    staff, administration, console_of, monkeypatch
):
    dana = console_of(staff.dana)
    upload = dana.upload(administration, HEADER, *MISSPELT)
    choose(dana, upload, Lincon=staff.lincoln)
    assert questions(upload) and "Lincon" in str(upload.layout["schools"])
    dana.post(f"/console/rosters/{upload.pk}/cancel/")
    upload.refresh_from_db()
    assert "Lyceum" not in str(upload.report.get("school_questions"))
    assert "Lincon" not in str(upload.layout)
    assert retention.delete_old_files() == 0
