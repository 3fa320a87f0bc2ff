"""Upload a list of people who opt out."""

from __future__ import annotations

import re

import pytest
from django.core import signing
from django.core.files.uploadedfile import SimpleUploadedFile
from django.utils import timezone

from accounts.models import AuditEntry, Membership
from accounts.tests.logging_in import log_in
from survey.console.checked_files import SALT
from survey.models import ListedId, OptOut, RecordJoin, Respondent
from survey.people.opt_outs import list_file
from survey.tests.people import invite

pytestmark = pytest.mark.django_db


@pytest.fixture
def administration(administration):
    administration.coordinators_see_finished = True
    administration.save()
    return administration


@pytest.fixture
def people(administration, staff) -> dict[str, Respondent]:
    cast = {"00123": "Maya López", "00124": "Ali Diaz", "00125": "Zoe Kim"}
    return {
        key: invite(administration, staff.lincoln, key, name)
        for key, name in cast.items()
    }


def text_of(response) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", response.content.decode()))


@pytest.fixture
def upload(client, administration):
    """Return a function that uploads lines as a file, and returns the page."""

    def send(*lines, name="forms.csv", **changes):
        content = changes.pop("content", None) or "\n".join(lines).encode()
        data = {
            "file": SimpleUploadedFile(name, content),
            "requested_by": "parent",
            "requested_on": timezone.localdate().isoformat(),
            "reason": "no consent form",
            **changes,
        }
        address = f"/console/administrations/{administration.pk}/people/opt-outs/"
        return client.post(address, data)

    return send


@pytest.fixture
def confirm(client, administration):
    def send(page):
        checked = page if isinstance(page, str) else page.context["checked"]
        people = f"/console/administrations/{administration.pk}/people/"
        return client.post(f"{people}opt-outs/save/", {"checked": checked}, follow=True)

    return send


def opted_out() -> set[str]:
    rows = Respondent.objects.filter(opted_out_at__isnull=False)
    return set(rows.values_list("identity__external_id", flat=True))


def test_ms_chen_uploads_the_forms_of_a_week(client, staff, people, upload, confirm):
    log_in(client, staff.chen)
    page = upload("Student ID;Remark", "00123;form", "00124;", "99999;", ";x", "00123;")
    text = text_of(page)
    assert "2 people would opt out" in text
    assert "1 row names a person of an earlier row" in text
    assert "1 row opts nobody out" in text
    assert "1 ID is not on the roster of your schools yet. It would be kept" in text
    assert "99999" in text
    assert "5 – has no ID" in text
    assert "López, Maya" in text and "Kim" not in text
    assert opted_out() == set()

    assert "2 people have opted out" in text_of(confirm(page))
    assert opted_out() == {"00123", "00124"}
    opt_out = OptOut.objects.first()
    assert (opt_out.requested_by, opt_out.reason, opt_out.by) == (
        "parent",
        "no consent form",
        staff.chen,
    )
    entry = AuditEntry.objects.get(action="opt out people of a list")
    assert (entry.school_id, entry.after["people"]) == (staff.lincoln.pk, 2)
    assert "consent" not in str(list(AuditEntry.objects.values()))

    repeated = text_of(upload("Student ID", "00123", "00125"))
    assert "1 person would opt out" in repeated and "1 has opted out before" in repeated


def test_people_of_other_schools_are_as_unknown_as_anybody(
    client, administration, staff, people, upload
):
    invite(administration, staff.roosevelt, "77", "Noor Hassan")
    invite(administration, staff.washington, "78", "Leo Sand")
    log_in(client, staff.chen)
    text = text_of(upload("ID", "77", "78", "79"))
    assert "3 IDs are not on the roster of your schools yet" in text
    assert "Hassan" not in text and "Sand" not in text
    assert "77 , 78 , 79" in text


def test_one_id_in_two_districts_needs_the_district(
    client, administration, staff, people, upload, confirm
):
    invite(administration, staff.roosevelt, "00123", "Noor Hassan")
    log_in(client, staff.state)
    text = text_of(upload("ID", "00123"))
    assert "is an ID in several districts" in text and "0 people would" in text
    page = upload("ID,district code", "00123,RIVERSIDE")
    assert "López" in text_of(page) and "Hassan" not in text_of(page)
    confirm(page)
    assert OptOut.objects.get().respondent == people["00123"]


def test_a_person_is_found_by_the_id_of_a_joined_record(
    client, administration, staff, people, upload, confirm
):
    twin = invite(administration, staff.lincoln, "old", withdrawn_at=timezone.now())
    twin.identity.delete()
    RecordJoin.objects.create(
        administration=administration,
        kept=people["00123"],
        other=twin,
        state="joined",
        district=staff.riverside,
        external_id="A-77",
        by=staff.chen,
    )
    log_in(client, staff.chen)
    confirm(upload("ID", "A-77"))
    assert opted_out() == {"00123"}


def test_those_who_have_started_are_counted_and_confirmed(
    client, staff, people, upload, confirm
):
    log_in(client, staff.chen)
    before = upload("ID", "00123", "00124")
    assert "started." not in text_of(before)
    Respondent.objects.filter(pk=people["00123"].pk).update(started_at=timezone.now())
    assert "has started in the meantime" in text_of(confirm(before))
    assert opted_out() == set()
    now = upload("ID", "00123", "00124")
    assert "1 person has started." in text_of(now)
    confirm(now)
    assert opted_out() == {"00123", "00124"}


def test_a_list_does_not_tell_who_has_started(
    client, administration, staff, people, upload, confirm
):
    administration.coordinators_see_finished = False
    administration.save()
    Respondent.objects.filter(pk=people["00123"].pk).update(started_at=timezone.now())
    log_in(client, staff.dana)
    page = upload("ID", "00123")
    assert "person has started" not in text_of(page)
    assert "If any of these people have started" in text_of(page)
    # What is signed can be read.
    signed = signing.loads(page.context["checked"], salt=SALT)
    assert signed["people"] == [[people["00123"].pk, None]]
    confirm(page)
    assert opted_out() == {"00123"}


def test_a_list_is_confirmed_by_whom_it_was_shown_to(
    client, administration, staff, people, upload, confirm
):
    log_in(client, staff.dana)
    checked = upload("ID", "00123").context["checked"]
    log_in(client, staff.chen)
    assert "too old" in text_of(confirm(checked))
    assert "too old" in text_of(confirm("nonsense"))
    assert opted_out() == set()


def test_people_who_moved_to_another_district_meanwhile_are_left_alone(
    client, staff, people, upload, confirm
):
    log_in(client, staff.chen)
    page = upload("ID", "00123", "00124")
    Respondent.objects.filter(pk=people["00124"].pk).update(school=staff.roosevelt)
    assert "no longer in one of your schools" in text_of(confirm(page))
    assert opted_out() == set()


def test_confirming_twice_changes_nothing_more(client, staff, people, upload, confirm):
    log_in(client, staff.chen)
    page = upload("ID", "00123")
    confirm(page)
    assert "0 people have opted out" in text_of(confirm(page))
    assert OptOut.objects.count() == 1


@pytest.mark.parametrize(
    ("lines", "name", "message"),
    [
        (("first name", "Maya"), "a.csv", "student or staff ID"),
        (("ID",), "a.pdf", "Only CSV and Excel files"),
        (("%PDF-1.7",), "a.csv", "PDF"),
    ],
)
def test_files_that_are_no_list_say_what_to_do(
    client, staff, people, upload, lines, name, message
):
    log_in(client, staff.chen)
    assert message in text_of(upload(*lines, name=name))
    assert opted_out() == set()


def test_a_list_has_a_limit(client, staff, people, upload, monkeypatch):
    monkeypatch.setattr(list_file, "MOST_ROWS", 2)
    log_in(client, staff.chen)
    assert "more than" in text_of(upload("ID", "1", "2", "3"))


def test_an_excel_cell_and_an_escaped_id_are_read(client, staff, people, upload):
    log_in(client, staff.chen)
    assert "1 person would" in text_of(upload("ID", '" 00123 "'))


def test_analysts_cannot_upload_lists(client, staff, people, upload, confirm):
    log_in(client, staff.analyst)
    assert upload("ID", "00123").status_code == 404
    assert confirm("x").status_code == 404


@pytest.mark.parametrize("number", [1, 3])
def test_three_people_take_as_many_statements_as_one(
    client, staff, people, upload, confirm, django_assert_num_queries, number
):
    log_in(client, staff.chen)
    upload("ID", "1")
    keys = list(people)[:number]
    # Session, user, memberships, administration; districts, identities, joins,
    # people; the audit.
    with django_assert_num_queries(9):
        page = upload("ID", *keys)
    assert len(page.context["changes"]) == number


@pytest.fixture
def kept_page(client, administration):
    people = f"/console/administrations/{administration.pk}/people/"

    def get(**query):
        return client.get(f"{people}opt-outs/kept/", query)

    return get


def test_ids_of_a_list_are_kept_shown_and_removed(
    client, administration, staff, people, upload, confirm, kept_page
):
    log_in(client, staff.chen)
    page = upload("ID", "00123", "77001", "77001")
    text = text_of(page)
    assert "IDs that would be kept for a later roster" in text
    assert "Opt out 1 person and keep 1 ID" in text
    assert "1 row names a person of an earlier row" in text
    done = text_of(confirm(page))
    assert "1 person has opted out" in done and "1 ID is kept" in done
    assert "77001" in done and "Lincoln, Riverside" in done
    row = ListedId.objects.get()
    assert (row.school, row.external_id) == (staff.lincoln, "77001")
    entry = AuditEntry.objects.get(action="keep opt-outs for later rosters")
    assert (entry.school_id, entry.after["IDs"]) == (staff.lincoln.pk, 1)
    assert "77001" not in str(list(AuditEntry.objects.values()))

    # The IDs of a school are for its own staff, and for the district.
    removal = (
        f"/console/administrations/{administration.pk}"
        f"/people/opt-outs/kept/{row.pk}/remove/"
    )
    log_in(client, staff.sam)
    assert "77001" not in text_of(kept_page())
    assert client.post(removal).status_code == 404
    log_in(client, staff.dana)
    assert "77001" in text_of(kept_page(q="770"))
    assert "The ID was removed" in text_of(client.post(removal, follow=True))
    assert not ListedId.objects.exists()


def test_a_districts_list_is_not_shown_to_a_school(
    client, administration, staff, people, upload, confirm, kept_page
):
    log_in(client, staff.dana)
    confirm(upload("ID", "77001"))
    assert ListedId.objects.get().school is None
    log_in(client, staff.chen)
    assert "77001" not in text_of(kept_page())


def test_the_state_says_the_district_of_an_unknown_id(
    client, administration, staff, people, upload, confirm
):
    invite(administration, staff.roosevelt, "5")
    log_in(client, staff.state)
    text = text_of(upload("ID", "77001"))
    assert "add a column with the code of a district" in text
    page = upload("ID,district", "77001,Lakeside", "77002,nowhere")
    assert "1 ID is not on the roster" in text_of(page)
    confirm(page)
    assert ListedId.objects.get().district == staff.lakeside


def test_a_list_of_two_schools_says_which(client, staff, people, upload):
    Membership.objects.create(
        user=staff.chen, role="coordinator", school=staff.washington
    )
    log_in(client, staff.chen)
    assert "code of your school" in text_of(upload("ID", "77001"))
    text = text_of(upload("ID,school", "77001,LINCOLN", "77002,roosevelt"))
    assert "1 ID is not on the roster" in text and "1 row opts nobody out" in text


def test_an_id_that_no_roster_could_have_is_not_kept(client, staff, people, upload):
    log_in(client, staff.chen)
    assert "was shortened by Excel" in text_of(upload("ID", "1.2E+07"))


def test_a_list_is_refused_whose_people_arrived_meanwhile(
    client, administration, staff, people, upload, confirm
):
    log_in(client, staff.chen)
    page = upload("ID", "00123", "77001")
    invite(administration, staff.lincoln, "77001", "Leo Sand")
    assert "is on the roster since the file was checked" in text_of(confirm(page))
    assert opted_out() == set() and not ListedId.objects.exists()


@pytest.mark.parametrize("number", [1, 3])
def test_three_kept_ids_take_as_many_statements_as_one(
    client, staff, people, upload, confirm, kept_page, django_assert_num_queries, number
):
    log_in(client, staff.chen)
    confirm(upload("ID", *(f"7700{n}" for n in range(number))))
    with django_assert_num_queries(6):
        assert len(kept_page().context["rows"]) == number
