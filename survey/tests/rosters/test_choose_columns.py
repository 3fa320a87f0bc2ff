"""Choose the columns of a roster whose headers are not recognised."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.messages import get_messages
from django.core.files.uploadedfile import SimpleUploadedFile
from django.utils import timezone

from accounts.models import AuditEntry
from survey.console.rosters import forms
from survey.models import Identity, Job, Respondent, RosterLayoutChoice, RosterUpload
from survey.people.rosters import file_reader, retention
from survey.people.rosters.column_choices import header_key
from survey.tests.rosters.roster_console import (
    HEADER,
    MAYA,
    counts,
    errors_of,
    person,
)

pytestmark = pytest.mark.django_db

UNKNOWN = "Kennung,Vorname,Nachname,Haus,Stufe,Kennwort"
ROWS = (
    "00123,Maya,Lopez,lincoln,7,hunter2",
    "00124,Ali,Diaz,lincoln,7,hunter3",
    "00125,Zoe,Kim,washington,8,hunter4",
)
COLUMNS = {
    "external_id": "Kennung",
    "given_name": "Vorname",
    "family_name": "Nachname",
    "school": "Haus",
    "grade": "Stufe",
}


def columns_page(upload):
    return f"/console/rosters/{upload.pk}/columns/"


@pytest.fixture
def asked(staff, administration, console_of):
    """A roster of the district whose columns have to be chosen."""
    upload = console_of(staff.dana).upload(administration, UNKNOWN, *ROWS)
    assert upload.state == "mapping"
    return upload


def state_of(upload):
    upload.refresh_from_db()
    return upload.state


def test_unknown_headers_are_mapped_once(staff, administration, console_of, asked):
    dana = console_of(staff.dana)
    assert not Job.objects.exists()
    page = dana.get(f"/console/rosters/{asked.pk}/").content.decode()
    assert columns_page(asked) in page
    page = dana.get(columns_page(asked)).content.decode()
    assert "00123" in page and "Zoe" in page

    response = dana.post(columns_page(asked), **COLUMNS)
    assert response.url == f"/console/rosters/{asked.pk}/", errors_of(response)
    assert state_of(asked) == "checked", asked.message
    assert counts(asked) == {"added": 3}
    page = dana.get(response.url).content.decode()
    assert "Columns as chosen by dana@example.org" in page
    assert columns_page(asked) in page
    dana.confirm(asked)
    assert person("00123").grade == "07"
    assert not asked.samples

    # The columns may come in another order.
    header, rows = UNKNOWN.split(","), [row.split(",") for row in ROWS]
    second = dana.upload(
        administration,
        ",".join(reversed(header)),
        *(",".join(reversed(row)) for row in rows),
    )
    assert (second.state, counts(second)) == ("checked", {"unchanged": 3})
    assert second.layout_choice == asked.layout_choice


def test_every_column_of_the_file_is_listed_with_what_it_is_used_for(
    staff, console_of, asked
):
    form = console_of(staff.dana).get(columns_page(asked)).context["form"]
    columns = list(form.file_columns())
    assert [column.header for column in columns] == UNKNOWN.split(",")
    # The first rows of the file stand below.
    assert list(columns[1].cells) == ["Maya", "Ali", "Zoe"]
    # The district is known, so nothing asks for it.
    assert "district" not in form.fields and "school" in form.fields


@pytest.mark.parametrize(
    ("changes", "field", "message"),
    [
        ({"external_id": ""}, "external_id", "identifies each person"),
        ({"school": ""}, "school", "code or name"),
        ({"given_name": "Kennung"}, "given_name", "already chosen for Student ID"),
        ({"external_id": "district"}, "external_id", "not in the file"),
        ({"given_name": "\x00<script>"}, "given_name", "not in the file"),
        ({"name": "Kennwort"}, "name", "either the full name, or given and family"),
    ],
)
def test_errors_stand_next_to_the_field(
    staff, console_of, asked, changes, field, message
):
    response = console_of(staff.dana).post(columns_page(asked), **COLUMNS | changes)
    assert response.status_code == 200
    assert message in str(response.context["form"].errors[field])
    text = response.content.decode()
    [(_problem, address), *_others] = response.context["form"].problems()
    assert f'href="{address}"' in text and f'id="{address[1:]}"' in text
    assert state_of(asked) == "mapping"
    assert not RosterLayoutChoice.objects.exists() and not Job.objects.exists()


def test_columns_are_chosen_at_their_heads(staff, administration, console_of, asked):
    """The page sends what each column holds; see `COLUMNS` for the same by field."""
    dana = console_of(staff.dana)
    headers = UNKNOWN.split(",")
    heads = {
        f"column-{headers.index(header)}": name for name, header in COLUMNS.items()
    }
    response = dana.post(columns_page(asked), **heads | {"column-2": "given_name"})
    error = str(errors_of(response)["given_name"])
    assert "Several columns are chosen for this: Vorname, Nachname" in error
    needs = {need.names: need.is_met for need in response.context["form"].needs()}
    assert needs == {"school school_name everyone_school": True, "external_id": True}

    dana.post(columns_page(asked), **heads)
    assert (state_of(asked), counts(asked)) == ("checked", {"added": 3})
    assert {
        name: header for name, header in asked.layout["fields"].items() if header
    } == COLUMNS


def test_what_is_missing_is_listed(staff, administration, console_of, asked):
    response = console_of(staff.dana).post(columns_page(asked), **{"column-1": "name"})
    needs = {need.names: need.is_met for need in response.context["form"].needs()}
    assert needs == {"school school_name everyone_school": False, "external_id": False}
    # Where no column names the school, one can be said for all rows.
    schools = dict(response.context["form"].fields["everyone_school"].choices)
    assert str(staff.lincoln.pk) in schools and str(staff.roosevelt.pk) not in schools


def test_what_is_missing_stands_in_one_box(staff, console_of, asked):
    dana = console_of(staff.dana)
    page = dana.get(columns_page(asked)).text
    assert "Still missing" in page and "There is a problem" not in page
    page = dana.post(columns_page(asked), **{"column-1": "name"}).text
    assert "There is a problem" in page and "Still missing" not in page
    assert page.count("No column of the file is known as the school.") == 1


def test_a_school_name_is_enough(staff, console_of, asked):
    columns = {**COLUMNS, "school_name": "Haus"}
    del columns["school"]
    console_of(staff.dana).post(columns_page(asked), **columns)
    assert (state_of(asked), counts(asked)) == ("checked", {"added": 3})


def test_a_coordinator_needs_neither_district_nor_school(
    staff, administration, console_of
):
    chen = console_of(staff.chen)
    upload = chen.upload(administration, "Kennung,Vorname,Stufe", "1,Maya,7", "2,Ali,8")
    chen.post(
        columns_page(upload), external_id="Kennung", given_name="Vorname", grade="Stufe"
    )
    assert (state_of(upload), counts(upload)) == ("checked", {"added": 2})
    chen.confirm(upload)
    assert set(Respondent.objects.values_list("school", flat=True)) == {
        staff.lincoln.pk
    }


def test_nobody_else_sees_or_chooses_the_columns(staff, console_of, asked):
    assert b"Zoe" in console_of(staff.dana).get(columns_page(asked)).content
    for user in (staff.chen, staff.sam, staff.analyst):
        stranger = console_of(user)
        assert stranger.get(columns_page(asked)).status_code == 404
        assert stranger.post(columns_page(asked), **COLUMNS).status_code == 404
    assert state_of(asked) == "mapping"
    assert not RosterLayoutChoice.objects.exists()


@pytest.mark.parametrize("state", ["checking", "applying", "applied", "cancelled"])
def test_columns_of_a_roster_in_another_state_stay(staff, console_of, asked, state):
    RosterUpload.objects.update(state=state, confirmed_at=timezone.now())
    dana = console_of(staff.dana)
    before = RosterUpload.objects.values().get()
    for response in (
        dana.get(columns_page(asked)),
        dana.post(columns_page(asked), **COLUMNS),
    ):
        assert response.url == f"/console/rosters/{asked.pk}/"
        assert "can't be changed now" in str(
            list(get_messages(response.wsgi_request))[-1]
        )
    assert RosterUpload.objects.values().get() == before
    assert not RosterLayoutChoice.objects.exists() and not Job.objects.exists()


def test_a_roster_that_was_applied_meanwhile_keeps_its_columns(
    staff, console_of, asked, monkeypatch
):
    """As if the page was sent while another person confirmed the roster."""
    dana = console_of(staff.dana)
    monkeypatch.setattr(
        "survey.people.rosters.uploads.columns_can_change",
        lambda upload: RosterUpload.objects.update(state="cancelled"),
    )
    dana.post(columns_page(asked), **COLUMNS)
    assert state_of(asked) == "cancelled"
    assert not RosterLayoutChoice.objects.exists() and not Job.objects.exists()


def test_figures_of_other_columns_are_not_confirmed(
    staff, administration, console_of, asked
):
    dana = console_of(staff.dana)
    dana.post(columns_page(asked), **COLUMNS)
    page = dana.get(f"/console/rosters/{asked.pk}/")
    seen = {"seen": "0", "columns": page.context["columns_key"]}
    without_names = {k: v for k, v in COLUMNS.items() if "name" not in k}
    dana.post(columns_page(asked), **without_names)
    assert state_of(asked) == "checked"
    response = dana.post(f"/console/rosters/{asked.pk}/confirm/", **seen)
    assert "figures have changed" in str(list(get_messages(response.wsgi_request))[-1])
    assert not Respondent.objects.exists()
    seen["columns"] = dana.get(f"/console/rosters/{asked.pk}/").context["columns_key"]
    dana.post(f"/console/rosters/{asked.pk}/confirm/", **seen)
    assert Identity.objects.filter(given_name="").count() == 3


def test_a_large_file_is_opened_by_the_job(
    staff, administration, console_of, monkeypatch
):
    monkeypatch.setattr(forms, "OPENED_AT_ONCE", 0)
    dana = console_of(staff.dana)
    upload = dana.upload(administration, UNKNOWN, *ROWS)
    assert state_of(upload) == "mapping"
    assert Job.objects.get().message == "Choose the columns."
    assert b"Zoe" in dana.get(columns_page(upload)).content
    dana.post(columns_page(upload), **COLUMNS)
    assert (state_of(upload), counts(upload)) == ("checked", {"added": 3})
    second = dana.upload(administration, UNKNOWN, *ROWS)
    assert (second.state, counts(second)) == ("checked", {"added": 3})


def test_the_dry_run_opens_a_file_once(staff, administration, console_of, monkeypatch):
    """Opening loads all of a OneRoster file, and converts an .xls file."""
    monkeypatch.setattr(forms, "OPENED_AT_ONCE", 0)
    opened, open_any_table = [], file_reader.open_any_table

    def counting(*args, **options):
        opened.append(args)
        return open_any_table(*args, **options)

    monkeypatch.setattr(file_reader, "open_any_table", counting)
    dana = console_of(staff.dana)
    dana.upload(administration, UNKNOWN, *ROWS)
    upload = dana.upload(administration, HEADER, MAYA)
    assert (upload.state, counts(upload)) == ("checked", {"added": 1})
    assert len(opened) == 2


def test_samples_are_deleted_with_a_cancelled_roster(staff, console_of, asked):
    assert "Maya" in str(asked.samples)
    console_of(staff.dana).post(f"/console/rosters/{asked.pk}/cancel/")
    assert state_of(asked) == "cancelled" and asked.samples is None


def test_samples_are_deleted_after_30_days(staff, console_of, asked):
    RosterUpload.objects.update(uploaded_at=timezone.now() - timedelta(days=31))
    retention.delete_old_files()
    assert state_of(asked) == "mapping" and asked.samples is None
    dana = console_of(staff.dana)
    dana.post(columns_page(asked), **COLUMNS)
    assert state_of(asked) == "mapping"
    assert b"The file was deleted" in dana.get(f"/console/rosters/{asked.pk}/").content


def test_passwords_are_not_kept_as_samples(asked, staff, administration, console_of):
    header = "Kennung,Vorname,password,SSN"
    upload = console_of(staff.chen).upload(
        administration, header, "1,Maya,hunter2,078-05-1120", "2,Ali,secret,219-09-9999"
    )
    assert "Maya" in str(upload.samples)
    assert not {"hunter2", "secret", "078-05-1120"} & {
        value for values in upload.samples["values"].values() for value in values
    }
    page = console_of(staff.chen).get(columns_page(upload))
    assert b"hunter2" not in page.content
    choices = dict(page.context["form"].fields["name"].choices)
    assert "password" not in choices and "Vorname" in choices


def test_viewing_samples_is_logged(staff, console_of, asked):
    console_of(staff.dana).get(columns_page(asked))
    entry = AuditEntry.objects.get(action="see roster samples")
    assert (entry.subject_id, entry.district_id) == (asked.pk, staff.riverside.pk)
    console_of(staff.dana).post(columns_page(asked), **COLUMNS)
    entry = AuditEntry.objects.get(action="choose roster columns")
    assert "Vorname" not in str(entry.after)


def test_a_coordinators_choice_does_not_decide_for_the_district(
    staff, administration, console_of
):
    chen, dana = console_of(staff.chen), console_of(staff.dana)
    swapped = {**COLUMNS, "given_name": "Nachname", "family_name": "Vorname"}
    upload = chen.upload(administration, UNKNOWN, *ROWS)
    chen.post(columns_page(upload), **swapped)
    assert chen.upload(administration, UNKNOWN, *ROWS).state == "checked"
    asked = dana.upload(administration, UNKNOWN, *ROWS)
    assert asked.state == "mapping"
    # The district's choice is used by its schools that have none of their own.
    dana.post(columns_page(asked), **COLUMNS)
    uploaded = chen.upload(administration, UNKNOWN, *ROWS)
    assert uploaded.layout["fields"]["given_name"] == "Nachname"
    RosterUpload.objects.update(layout_choice=None)
    RosterLayoutChoice.objects.filter(school=staff.lincoln).delete()
    uploaded = chen.upload(administration, UNKNOWN, *ROWS)
    assert uploaded.layout["fields"]["given_name"] == "Vorname"


def test_choices_of_other_districts_are_not_used(
    staff, administration, console_of, asked
):
    console_of(staff.dana).post(columns_page(asked), **COLUMNS)
    upload = console_of(staff.sam).upload(administration, UNKNOWN, *ROWS)
    assert upload.state == "mapping"


def test_a_header_has_one_key_in_any_order_and_spelling():
    assert header_key(["First Name", "ID", ""]) == header_key(["id", "first_name"])
    assert header_key(["First Name", "ID"]) != header_key(["First Name", "ID", "Grade"])


def test_declared_subgroups_are_chosen_and_other_columns_dropped(
    staff, administration, console_of
):
    administration.subgroups = {"lunch": ["free", "paid"]}
    administration.save(update_fields=["subgroups"])
    dana = console_of(staff.dana)
    header = "Kennung,Haus,Essen,Telefon,lunch"
    upload = dana.upload(
        administration,
        header,
        "1,lincoln,free,555,paid",
        "2,lincoln,paid,555,paid",
    )
    page = dana.get(columns_page(upload))
    [subgroup] = [n for n in page.context["form"].fields if n.startswith("subgroup")]
    columns = {"external_id": "Kennung", "school": "Haus"}
    dana.post(columns_page(upload), **columns, **{subgroup: "Essen"})
    assert state_of(upload) == "checked", upload.message
    assert upload.report["attributes"] == ["lunch"]
    assert set(upload.report["dropped"]) == {"Telefon", "lunch"}
    page = dana.get(f"/console/rosters/{upload.pk}/").content.decode()
    assert "of which nothing is kept: Telefon" in page
    dana.confirm(upload)
    assert person("1").attributes == {"lunch": "free"}
    # Left out although a column has its name.
    dana.apply(administration, header, "3,lincoln,free,555,paid")
    assert person("3").attributes == {"lunch": "free"}
    row = "4,lincoln,free,555,paid"
    third = dana.upload(administration, header, row, complete_for="changes")
    dana.post(columns_page(third), **columns, **{subgroup: ""})
    dana.confirm(third)
    assert state_of(third) == "applied", third.message
    assert person("4").attributes == {}


# The upload page -----------------------------------------------------------------


def test_by_default_nobody_is_withdrawn(staff, administration, console_of):
    page = console_of(staff.dana).get(
        f"/console/administrations/{administration.pk}/roster/"
    )
    assert page.context["form"]["complete_for"].value() == "changes"
    assert RosterUpload().complete_for == "changes"


def test_a_state_can_upload_for_one_district(staff, administration, console_of):
    state = console_of(staff.state)
    page = state.get(f"/console/administrations/{administration.pk}/roster/")
    places = dict(page.context["form"].fields["place"].choices)
    assert places["state"] == "The whole state"
    key = f"district-{staff.riverside.pk}"
    assert places[key] == staff.riverside.name
    rows = "school,student ID", "lincoln,1"
    upload = state.upload(administration, *rows, place=key)
    assert upload.district == staff.riverside
    assert (upload.state, counts(upload)) == ("checked", {"added": 1})
    # Of the whole state, each school tells its district.
    upload = state.upload(administration, *rows)
    assert (upload.state, upload.district) == ("checked", None)


def test_others_cannot_upload_for_a_place_that_is_not_theirs(
    staff, administration, console_of
):
    for place in ("state", f"district-{staff.lakeside.pk}", "district-0", "\x00", "x"):
        dana = console_of(staff.dana)
        upload = dana.upload(administration, HEADER, MAYA, place=place)
        assert (upload.district, upload.school) == (staff.riverside, None)
    response = console_of(staff.state).post(
        f"/console/administrations/{administration.pk}/roster/",
        file=SimpleUploadedFile("r.csv", f"{HEADER}\n{MAYA}".encode()),
        complete_for="changes",
        place="district-0",
    )
    assert "place" in errors_of(response)


def test_the_upload_page_takes_the_same_queries_for_many_districts(
    staff, administration, console_of, django_assert_num_queries
):
    state = console_of(staff.state)
    address = f"/console/administrations/{administration.pk}/roster/"
    state.get(address)
    for number in range(30):
        type(staff.riverside).objects.create(code=f"d{number}", name=f"D {number}")
    with django_assert_num_queries(5):
        assert b"D 29" in state.get(address).content


WITHOUT_PLACE = "Student ID,First Name,Grade"
PEOPLE = "00123,Maya,7", "00124,Ali,8"


def fields_of(page):
    return page.context["form"].fields


def test_the_state_chooses_one_district_and_school_for_everyone(
    staff, administration, console_of
):
    sam = console_of(staff.state)
    upload = sam.upload(
        administration, WITHOUT_PLACE, *PEOPLE, complete_for="state", place="state"
    )
    assert upload.samples["questions"] == ["district", "school"]
    page = sam.get(columns_page(upload)).content.decode()
    assert "place of everyone is asked for again" in page
    assert "is read without asking" not in page
    assert "Student ID (required)</option>" in page
    assert "School name (code or name required)</option>" in page
    assert "Given name</option>" in page
    columns = {"external_id": "Student ID", "given_name": "First Name"}
    response = sam.post(columns_page(upload), **columns)
    errors = response.context["form"].errors
    assert "district of everyone in this file" in str(errors["district"])

    district = {"everyone_district": staff.riverside.pk}
    response = sam.post(columns_page(upload), **columns, **district)
    assert set(errors_of(response)) == {"school"}
    offered = dict(fields_of(response)["everyone_school"].choices)
    assert str(staff.lincoln.pk) in offered
    assert str(staff.roosevelt.pk) not in offered

    response = sam.post(
        columns_page(upload), **columns, **district, everyone_school=staff.lincoln.pk
    )
    assert state_of(upload) == "checked", errors_of(response)
    assert (upload.school, upload.district) == (staff.lincoln, None)
    # From nobody elsewhere is anybody missing.
    assert upload.complete_for == "schools"
    sam.confirm(upload)
    assert set(Respondent.objects.values_list("school", flat=True)) == {
        staff.lincoln.pk
    }
    # The columns are remembered, and the place is asked for with each file.
    second = sam.upload(administration, WITHOUT_PLACE, *PEOPLE, place="state")
    assert second.samples["questions"] == ["district", "school"]
    assert second.layout["fields"]["given_name"] == "First Name"


def test_everyone_in_a_district_still_has_schools_of_their_own(
    staff, administration, console_of
):
    sam = console_of(staff.state)
    header = f"{WITHOUT_PLACE},School Name"
    upload = sam.upload(
        administration, header, "1,Maya,7,Lincoln", complete_for="state", place="state"
    )
    form = sam.get(columns_page(upload)).context["form"]
    # A column of names is no column of codes.
    assert form["school_name"].value() == "School Name"
    assert not form["school"].value()
    assert "everyone_school" not in form.fields
    sam.post(
        columns_page(upload),
        external_id="Student ID",
        school_name="School Name",
        everyone_district=staff.riverside.pk,
    )
    assert (state_of(upload), counts(upload)) == ("checked", {"added": 1})
    assert (upload.district, upload.complete_for) == (staff.riverside, "districts")


@pytest.mark.parametrize("place", ["99999", "x"])
def test_a_place_that_does_not_exist_is_refused(
    staff, administration, console_of, place
):
    sam = console_of(staff.state)
    upload = sam.upload(administration, WITHOUT_PLACE, *PEOPLE, place="state")
    response = sam.post(
        columns_page(upload), external_id="Student ID", everyone_district=place
    )
    assert "everyone_district" in errors_of(response)
    assert state_of(upload) == "mapping"


def test_a_district_chooses_only_its_own_schools(staff, administration, console_of):
    dana = console_of(staff.dana)
    upload = dana.upload(administration, WITHOUT_PLACE, *PEOPLE)
    response = dana.post(
        columns_page(upload),
        external_id="Student ID",
        everyone_school=staff.roosevelt.pk,
    )
    assert "everyone_school" in errors_of(response)
    dana.post(
        columns_page(upload),
        external_id="Student ID",
        everyone_school=staff.lincoln.pk,
    )
    assert state_of(upload) == "checked"
    assert upload.school == staff.lincoln


def test_a_column_and_a_place_for_everyone_contradict_each_other(
    staff, administration, console_of
):
    dana = console_of(staff.dana)
    upload = dana.upload(administration, f"{WITHOUT_PLACE},Haus", "1,Maya,7,lincoln")
    response = dana.post(
        columns_page(upload),
        external_id="Student ID",
        school="Haus",
        everyone_school=staff.lincoln.pk,
    )
    assert "either a column" in str(errors_of(response)["everyone_school"])


TWO = "Student ID,School,Status,Enrollment Status"


def test_a_person_decides_between_columns_that_contradict_each_other(
    staff, administration, console_of
):
    dana = console_of(staff.dana)
    rows = "1,lincoln,Active,Withdrawn", "2,lincoln,Active,Active"
    upload = dana.upload(administration, TWO, *rows)
    assert upload.samples["questions"] == ["status"]
    form = dana.get(columns_page(upload)).context["form"]
    assert form["status"].value() == ""
    assert "Status, Enrollment Status" in form["status"].help_text
    columns = {"external_id": "Student ID", "school": "School"}
    response = dana.post(columns_page(upload), **columns)
    assert "Choose one of these columns" in str(errors_of(response)["status"])
    dana.post(columns_page(upload), **columns, status="Enrollment Status")
    assert (state_of(upload), counts(upload)) == ("checked", {"added": 1})
    # Later, the choice is shown, and can be taken back.
    form = dana.get(columns_page(upload)).context["form"]
    assert form["status"].value() == "Enrollment Status"
    dana.post(columns_page(upload), **columns)
    assert (state_of(upload), counts(upload)) == ("checked", {"added": 2})


def test_no_column_can_be_chosen_where_two_contradict_each_other(
    staff, administration, console_of
):
    dana = console_of(staff.dana)
    upload = dana.upload(administration, TWO, "1,lincoln,Active,Withdrawn")
    dana.post(
        columns_page(upload), external_id="Student ID", school="School", status=" "
    )
    assert (state_of(upload), counts(upload)) == ("checked", {"added": 1})
    assert "status" not in upload.layout["fields"]
