"""Login cards of all schools of a district or of the state in one file."""

from __future__ import annotations

import io
import re
from zipfile import ZipFile

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from accounts.models import AuditEntry, Membership, School
from accounts.permissions import Permissions
from accounts.tests.conftest import member
from accounts.tests.logging_in import log_in
from survey.fieldwork.login_cards import card_sets, pdf
from survey.models import Administration, CardSet, Identity, RosterUpload
from survey.people.access_codes import code_of, format_code
from survey.tests.card_readers import read_pages
from survey.tests.people import invite

pytestmark = pytest.mark.django_db


@pytest.fixture
def administration(administration):
    administration.coordinators_see_finished = True
    administration.save()
    return administration


@pytest.fixture
def people(administration, staff):
    """Two students of Lincoln, in two classes, and one of Roosevelt."""
    return [
        invite(administration, staff.lincoln, "1", "Layla Haddad", classroom="10A"),
        invite(administration, staff.lincoln, "2", "Maya López", classroom="7B"),
        invite(administration, staff.roosevelt, "3", "Noor Hassan"),
    ]


@pytest.fixture
def order(client, administration, django_capture_on_commit_callbacks):
    """Press the button for all schools, and run the job."""

    def order(**options) -> CardSet | None:
        known = CardSet.objects.count()
        with django_capture_on_commit_callbacks(execute=True):
            client.post(
                f"/console/administrations/{administration.pk}/cards/",
                {"format": "zip", "district": "state", **options},
            )
        return CardSet.objects.latest("pk") if CardSet.objects.count() > known else None

    return order


def address_of(card_set: CardSet, action: str = "") -> str:
    pk = card_set.administration_id
    return f"/console/administrations/{pk}/cards/{card_set.pk}/{action}"


def unpack(client, card_set: CardSet) -> dict[str, bytes]:
    response = client.get(address_of(card_set, "file/"))
    assert response.status_code == 200, response
    assert response["Content-Type"] == "application/zip"
    content = b"".join(response.streaming_content)
    with ZipFile(io.BytesIO(content)) as archive:
        assert archive.testzip() is None
        return {name: archive.read(name) for name in archive.namelist()}


def name_of(school: School) -> str:
    return f"{school.name.lower()}.pdf"


def test_the_state_gets_a_pdf_of_each_school_class_by_class(
    client, staff, order, people
):
    log_in(client, staff.state)
    cards = order()
    files = unpack(client, cards)
    layla, maya, noor = people
    assert list(files) == [
        f"lakeside/{name_of(staff.roosevelt)}",
        f"riverside/{name_of(staff.lincoln)}",
    ]
    of_lincoln = read_pages(files[f"riverside/{name_of(staff.lincoln)}"])
    # 10A comes after 7B.
    for page, person, name in zip(
        of_lincoln, (maya, layla), ("Maya López", "Layla Haddad"), strict=True
    ):
        assert page.links == [
            f"https://survey.example.org/#{format_code(code_of(person))}"
        ]
        assert name in page.text
        assert "Noor" not in page.text
    [page] = read_pages(files[f"lakeside/{name_of(staff.roosevelt)}"])
    assert page.links == [f"https://survey.example.org/#{format_code(code_of(noor))}"]
    cards.refresh_from_db()
    assert cards.people == 3
    shown = client.get(address_of(cards)).content.decode()
    assert "it has one PDF for each school" in shown
    assert "Cut along the dashed lines" in shown
    actions = AuditEntry.objects.order_by("pk").values_list("action", flat=True)
    assert list(actions)[-2:] == ["ask for cards", "download cards"]


def test_a_district_gets_its_own_schools_only(client, staff, order, people):
    log_in(client, staff.dana)
    cards = order()
    assert list(unpack(client, cards)) == [name_of(staff.lincoln)]
    assert cards.district == staff.riverside
    # There is nothing to choose, and no other district to ask for.
    page = client.get(f"/console/administrations/{cards.administration_id}/cards/")
    assert "district" not in page.context["form"].fields
    assert order(district=staff.lakeside.pk).district == staff.riverside

    log_in(client, staff.sam)
    assert client.get(address_of(cards)).status_code == 404
    assert client.get(address_of(cards, "file/")).status_code == 404
    log_in(client, staff.chen)
    assert client.get(address_of(cards, "file/")).status_code == 404


def test_the_state_may_choose_one_district(client, staff, order, people):
    log_in(client, staff.state)
    cards = order(district=staff.lakeside.pk)
    assert list(unpack(client, cards)) == [name_of(staff.roosevelt)]
    assert order(district="0") is None
    assert order(district="x" * 1000) is None


def test_a_round_of_a_district_is_of_that_district(
    client, staff, order, administration, people
):
    Administration.objects.update(district=staff.riverside)
    log_in(client, staff.state)
    assert order().district == staff.riverside


def test_a_user_of_two_districts_chooses(client, staff, order, people):
    both = member("both@example.org", "district", district=staff.riverside)
    Membership.objects.create(user=both, role="district", district=staff.lakeside)
    log_in(client, both)
    assert order() is None
    assert order(district=staff.lakeside.pk).district == staff.lakeside


def test_a_coordinator_of_two_schools_makes_cards_for_both(
    client, staff, order, administration, people
):
    invite(administration, staff.washington, "4", "Sofia Rossi")
    empty = School.objects.create(district=staff.riverside, code="e", name="Empty")
    coordinator = member("two@example.org", "coordinator", school=staff.lincoln)
    for school in (staff.washington, empty):
        Membership.objects.create(user=coordinator, role="coordinator", school=school)
    log_in(client, coordinator)
    page = client.get(f"/console/administrations/{administration.pk}/cards/")
    assert "Make cards for all my schools" in page.content.decode()
    order()
    made = {cards.school: cards for cards in CardSet.objects.all()}
    assert made.keys() == {staff.lincoln, staff.washington}
    assert {cards.format for cards in made.values()} == {"pdf"}
    for cards in made.values():
        sent = client.get(address_of(cards, "file/"))
        assert b"".join(sent.streaming_content).startswith(b"%PDF")


def test_many_cards_of_a_school_are_in_several_files(
    client, staff, order, people, monkeypatch
):
    drawn: list[int] = []

    def draw(cards, sheet, advance):
        drawn.append(len(cards))
        return original(cards, sheet, advance)

    original = pdf.draw_cards
    monkeypatch.setattr(pdf, "draw_cards", draw)
    monkeypatch.setattr(card_sets, "MAX_CARDS", 1)
    log_in(client, staff.dana)
    name = name_of(staff.lincoln)
    assert list(unpack(client, order())) == [name, name.replace(".pdf", "-2.pdf")]
    # So many are in memory at a time.
    assert drawn == [1, 1]


def test_names_of_schools_are_names_of_files(client, staff, order, administration):
    names = ["../../etc", "مدرسة", "???", "A/B: C", "x" * 200]
    for number, name in enumerate(names):
        school = School.objects.create(
            district=staff.riverside, code=f"{number}", name=name
        )
        invite(administration, school, f"{number}", "Ann Smith")
    log_in(client, staff.dana)
    files = list(unpack(client, order()))
    assert len(files) == len(set(files)) == len(names)
    assert all(re.fullmatch(r"[\w-]{1,100}\.pdf", name) for name in files)
    assert "مدرسة-1.pdf" in files
    assert "2.pdf" in files


def test_schools_of_one_name_have_files_of_their_own(
    client, staff, order, administration
):
    for code in ("a-1", "A 1", "a_1"):
        school = School.objects.create(
            district=staff.riverside, code=code, name="Central"
        )
        invite(administration, school, code, "Ann Smith")
    log_in(client, staff.dana)
    assert set(unpack(client, order())) == {
        "central-a-1.pdf", "central-a-1-2.pdf", "central-a_1.pdf"
    }  # fmt: skip


def test_cards_to_draw_from_leave_small_schools_out(
    client, staff, order, administration, people
):
    Administration.objects.update(coordinators_see_finished=False)
    # Each school has fewer than five: whose card it is would be known.
    choice = f"/console/administrations/{administration.pk}/cards/"
    log_in(client, staff.dana)
    assert "1 school has fewer than 5 people" in client.get(choice).text
    # For the state, which may have thousands of schools, the job counts them.
    log_in(client, staff.state)
    assert "fewer than 5 people" not in client.get(choice).text
    cards = order()
    shown = client.get(address_of(cards)).text
    assert "2 schools have fewer than 5 people" in shown
    assert "Lincoln, Roosevelt" in shown
    # Nobody has an address, and trying again would fail in the same way.
    assert "Add people to the roster, or let coordinators see" in shown
    assert "Try again" not in shown and "Send these codes" not in shown
    assert ">failed<" in client.get(choice).text
    assert client.get(address_of(cards, "file/")).status_code == 302
    Identity.objects.filter(respondent=people[0]).update(email="layla@example.org")
    assert "Send these codes by e-mail" in client.get(address_of(cards)).text

    for number in range(5):
        invite(administration, staff.lincoln, f"9{number}", f"Secret Name{number}")
    cards = order()
    files = unpack(client, cards)
    assert list(files) == [f"riverside/{name_of(staff.lincoln)}"]
    text = "".join(page.text for page in read_pages(*files.values()))
    assert "Secret" not in text
    assert "Maya" not in text
    shown = client.get(address_of(cards)).content.decode()
    assert "1 school has fewer than 5 people" in shown
    assert "Roosevelt" in shown
    assert "1 person has no card" in shown
    cards.refresh_from_db()
    assert cards.people == 7
    # The small school is one of another district.
    log_in(client, staff.dana)
    assert "too few to draw cards" not in client.get(choice).text


def test_a_coordinator_learns_that_the_state_made_the_cards(
    client, staff, order, administration, people
):
    address = f"/console/administrations/{administration.pk}/cards/"
    log_in(client, staff.chen)
    assert "No cards have been made for this school yet" in client.get(address).text
    log_in(client, staff.state)
    cards = order(district=staff.lakeside.pk)
    log_in(client, staff.chen)
    assert "with this one" not in client.get(address).text
    log_in(client, staff.state)
    cards = order()
    log_in(client, staff.chen)
    shown = client.get(address).text
    assert "Cards for all schools, with this one, were made by the state" in shown
    assert "for this school yet" not in shown
    # The file itself has codes of other schools.
    assert client.get(address_of(cards)).status_code == 404
    # Those of few people were left out of cards to draw from.
    CardSet.objects.update(anonymous=True)
    assert "with this one" not in client.get(address).text


def test_cards_of_unfinished_people_are_not_those_of_all(
    client, staff, order, administration, people
):
    address = f"/console/administrations/{administration.pk}/cards/"

    def are_made() -> bool:
        pk = administration.pk
        with_cards = card_sets.administrations_with_cards(Permissions(staff.chen), [pk])
        log_in(client, staff.chen)
        says = "with this one, were made" in client.get(address).text
        assert says is bool(with_cards)
        return says

    log_in(client, staff.state)
    order(unfinished="on")
    assert not are_made()
    # The twin: the same set, of everybody.
    CardSet.objects.update(unfinished=False)
    assert are_made()


@pytest.mark.parametrize(
    ("user", "district", "button"),
    [
        ("state", None, "Make login cards for all schools"),
        ("state", "riverside", "Make login cards for all schools of Riverside"),
        ("dana", "riverside", "Make login cards for all schools of Riverside"),
        ("chen", None, ""),
    ],
)
def test_an_applied_roster_offers_the_cards_of_its_schools(
    client, staff, order, administration, people, user, district, button
):
    place = getattr(staff, district) if district else None
    upload = RosterUpload.objects.create(
        administration=administration,
        by=getattr(staff, user),
        district=place,
        school=None if user != "chen" else staff.lincoln,
        state=RosterUpload.State.APPLIED,
        confirmed_at=timezone.now(),
        confirmed_by=getattr(staff, user),
        ended_at=timezone.now(),
        complete_for=RosterUpload.CompleteFor.CHANGES,
        name="roster.csv",
        size=1,
    )
    log_in(client, getattr(staff, user))
    page = client.get(f"/console/rosters/{upload.pk}/").text
    assert ("Make login cards" in page) is bool(button)
    assert ("Print login cards" in page) is not bool(button)
    if not button:
        return
    assert f">{button}</button>" in page
    [form] = re.findall(r'<form method="post" action="[^"]*/cards/">(.*)', page, re.S)
    form = form.partition("</form>")[0]
    sent = dict(re.findall(r'name="(\w+)" value="([^"]*)"', form))
    del sent["csrfmiddlewaretoken"]
    cards = order(**sent)
    assert cards is not None and cards.made_at
    assert cards.district == place
    # Everybody's would be printed twice.
    page = client.get(f"/console/rosters/{upload.pk}/").text
    assert "Make login cards" not in page


def test_a_file_that_failed_can_be_tried_again_once_that_can_help(
    client, staff, order, administration, people
):
    Administration.objects.update(coordinators_see_finished=False)
    log_in(client, staff.state)
    cards = order()
    assert "Try again" not in client.get(address_of(cards)).text
    for number in range(5):
        invite(administration, staff.lincoln, f"9{number}", f"Secret Name{number}")
    assert "Try again" in client.get(address_of(cards)).text


@pytest.mark.parametrize("schools", [1, 3])
def test_each_school_takes_one_statement(
    staff, administration, schools, django_assert_num_queries, tmp_path
):
    for number in range(schools):
        school = School.objects.create(
            district=staff.riverside, code=f"n{number}", name=f"New {number}"
        )
        for person in range(3):
            invite(administration, school, f"{number}-{person}", "Ann Smith")
    cards = CardSet(
        administration=administration, district=staff.riverside, format="zip"
    )

    class Progress:
        message = ""

        def advance(self, number: int) -> None:
            pass

    people = card_sets.people_in(cards)
    # The languages of the survey are read once and cached.
    card_sets.write_zip(cards, people, tmp_path / "first", Progress())
    with django_assert_num_queries(2 + schools):
        card_sets.write_zip(cards, people, tmp_path / "second", Progress())


def test_only_whole_files_are_of_many_schools(administration, staff):
    for fields in ({"grade": "7"}, {"classroom": "7B"}, {"reissue": True}):
        with pytest.raises(IntegrityError), transaction.atomic():
            CardSet.objects.create(
                administration=administration, by=staff.state, format="zip", **fields
            )
