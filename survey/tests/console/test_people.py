"""The console pages of invited people and their access codes."""

from __future__ import annotations

import html
import re
from datetime import timedelta

import pytest
from django.utils import timezone

from accounts.models import AuditEntry
from accounts.tests.logging_in import log_in
from survey.fieldwork.login_cards.card_sets import order_cards, reissue_once
from survey.models import Administration, CardSet, Identity, Respondent
from survey.people.access_codes import code_of, format_code
from survey.taking.login import LoginRefused, log_in_respondent
from survey.tests.conftest import FIRST_PAGE, Browser
from survey.tests.people import invite

pytestmark = pytest.mark.django_db


@pytest.fixture
def administration(administration):
    """Codes are shown next to names only where completion is."""
    administration.coordinators_see_finished = True
    administration.save()
    return administration


@pytest.fixture
def confidential(administration):
    administration.coordinators_see_finished = False
    administration.save()
    return administration


@pytest.fixture
def maya(administration, staff) -> Respondent:
    return invite(
        administration, staff.lincoln, "40313", "Maya López", grade="07", classroom="7B"
    )


@pytest.fixture
def noor(administration, staff) -> Respondent:
    """A student at Roosevelt, whom staff of Lincoln may not see."""
    return invite(
        administration, staff.roosevelt, "77", "Noor Hassan", "noor@example.org"
    )


def get_people(client, administration, **query):
    return client.get(f"/console/administrations/{administration.pk}/people/", query)


def person_url(administration, respondent, action=""):
    return (
        f"/console/administrations/{administration.pk}/people/{respondent.pk}/{action}"
    )


def text_of(response) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", response.content.decode()))


def test_a_coordinator_finds_maya_and_issues_a_new_code(
    client, staff, administration, maya, noor
):
    old = code_of(maya)
    log_in(client, staff.chen)

    response = get_people(client, administration, q="lóp may")
    assert "López, Maya" in text_of(response)
    assert "Hassan" not in text_of(get_people(client, administration))

    page = client.post(person_url(administration, maya, "reissue/"), follow=True)
    maya.refresh_from_db()
    assert maya.issue == 2
    assert format_code(code_of(maya)) in text_of(page)
    assert log_in_respondent(code_of(maya)).respondent_id == maya.pk
    with pytest.raises(LoginRefused, match="code_wrong"):
        log_in_respondent(old)
    # It is shown only once.
    repeated = client.get(person_url(administration, maya))
    assert format_code(code_of(maya)) not in text_of(repeated)


def test_a_new_code_ends_sessions_with_the_old_one(client, staff, administration, maya):
    child = Browser().log_in(maya)
    base = child.bootstrap()["revision"]
    assert child.save(1, FIRST_PAGE, base).status_code == 200

    log_in(client, staff.chen)
    client.post(person_url(administration, maya, "reissue/"))

    assert child.save(1, FIRST_PAGE, base + 1).status_code == 401
    maya.refresh_from_db()
    assert Browser().log_in(maya).save(1, FIRST_PAGE, base + 2).status_code == 200


def test_grades_are_written_as_schools_do(client, staff, administration, maya):
    log_in(client, staff.chen)
    page = get_people(client, administration, grade="07")
    assert '<option value="07" selected>7</option>' in page.text
    assert "<td>7</td>" in page.text
    assert "<dd>7</dd>" in client.get(person_url(administration, maya)).text
    form = client.get(person_url(administration, maya, "correct/")).context["form"]
    assert form["grade"].value() == "7"


def test_viewing_people_is_audited_without_names(client, staff, administration, maya):
    log_in(client, staff.chen)
    get_people(client, administration, q="López", grade="07")
    client.get(person_url(administration, maya))
    client.post(person_url(administration, maya, "code/"))

    list_, detail, code = AuditEntry.objects.order_by("id")
    assert (list_.action, list_.subject, list_.school_id, list_.after) == (
        "look at people",
        "students-2027",
        staff.lincoln.pk,
        {"grade": "07", "searched": True, "page": 1, "people": 1},
    )
    assert (detail.action, detail.subject_id) == ("look at a person", maya.pk)
    assert (code.action, code.after) == ("show an access code", {"issue": 1})
    written = str(list(AuditEntry.objects.values()))
    assert "López" not in written
    assert code_of(maya) not in written.replace("-", "")


@pytest.mark.parametrize("login", ["state", "dana", "chen"])
def test_individual_progress_is_hidden_unless_allowed(
    client, staff, administration, confidential, maya, login
):
    Respondent.objects.filter(pk=maya.pk).update(
        started_at=timezone.now(), completed_at=timezone.now()
    )
    log_in(client, getattr(staff, login))
    school = staff.lincoln.pk

    def page_text(**query) -> str:
        return text_of(
            get_people(client, administration, school=school, **query)
        ).lower()

    shown = page_text()
    assert "lópez" in shown
    assert "finished" not in shown
    assert "individual progress is hidden" in shown
    # Filters and sorting do not reveal it either.
    for state in ("finished", "started", "not-started", "not-finished"):
        assert "no one matches" in page_text(state=state)
    assert page_text(sort="-completed_at") == shown
    detail = text_of(client.get(person_url(administration, maya))).lower()
    assert "invited" in detail
    assert "finished" not in detail

    administration.coordinators_see_finished = True
    administration.save()
    shown = page_text()
    assert "finished" in shown
    assert "progress is hidden" not in shown
    assert "lópez" in page_text(state="finished")
    assert "lópez" not in page_text(state="not-started")
    assert "lópez" not in page_text(state="not-finished")
    assert "finished" in text_of(client.get(person_url(administration, maya))).lower()
    Respondent.objects.filter(pk=maya.pk).update(completed_at=None)
    assert "lópez" in page_text(state="not-finished")


def test_individual_progress_of_teachers_is_never_shown(administration):
    """The database refuses the setting, and the pages would ignore it."""
    administration.coordinators_see_finished = True
    assert not administration.is_completion_confidential
    administration.role = "teacher"
    assert administration.is_completion_confidential


@pytest.mark.parametrize("act", ["", "code/", "reissue/", "card/"])
def test_people_of_other_schools_are_not_found(
    client, staff, administration, noor, act
):
    log_in(client, staff.chen)
    address = person_url(administration, noor, act)
    response = client.post(address) if act else client.get(address)
    assert response.status_code == 404
    noor.refresh_from_db()
    assert noor.issue == 1
    assert not AuditEntry.objects.exists()

    log_in(client, staff.sam)
    assert (client.post(address) if act else client.get(address)).status_code in (
        200,
        302,
    )


def test_schools_and_administrations_of_other_districts_are_not_found(
    client, staff, administration, noor
):
    log_in(client, staff.dana)
    roosevelt = staff.roosevelt.pk
    assert get_people(client, administration, school=roosevelt).status_code == 404
    for nonsense in ("x", "²", "9" * 30, "-1"):
        assert get_people(client, administration, school=nonsense).status_code == 404
    administration.district = staff.lakeside
    administration.save()
    assert get_people(client, administration).status_code == 404


def test_analysts_cannot_see_people(client, staff, administration, maya):
    log_in(client, staff.analyst)
    assert get_people(client, administration).status_code == 404
    assert client.get(person_url(administration, maya)).status_code == 404


def test_schools_that_came_later_are_not_listed_in_an_ended_administration(
    client, administration, staff, noor
):
    for school in (staff.roosevelt, staff.washington):
        school.added_at = administration.opens_at + timedelta(seconds=1)
        school.save(update_fields=["added_at"])
    log_in(client, staff.state)
    assert "Washington" in text_of(get_people(client, administration))
    administration.closes_at = timezone.now()
    administration.save(update_fields=["closes_at"])
    text = text_of(get_people(client, administration))
    assert "Washington" not in text
    # Noor is on the roster there.
    assert "Lincoln" in text and "Roosevelt" in text


def test_staff_of_several_schools_choose_one_or_search(
    client, staff, administration, maya, noor
):
    log_in(client, staff.state)
    first = text_of(get_people(client, administration))
    assert "Lincoln" in first and "Roosevelt" in first
    assert "López" not in first
    assert not AuditEntry.objects.exists()

    for query in ("lóp", "maya lópez", "40313", "noor@ex", "77"):
        page = text_of(get_people(client, administration, q=query))
        assert ("López" in page) != ("Hassan" in page), query
    assert "Hassan" not in text_of(get_people(client, administration, q="assan"))
    schools = get_people(client, administration, q="roosev")
    assert f"?school={staff.roosevelt.pk}" in schools.content.decode()


@pytest.mark.parametrize("name", ["De la Cruz, Ana Sofía", "O'Connor-Núñez, Zoë"])
@pytest.mark.parametrize("role", ["chen", "state"])
def test_names_are_found_as_they_are_listed_or_typed_without_accents(
    client, staff, administration, noor, name, role
):
    family, given = name.split(", ")
    child = invite(administration, staff.lincoln, "7001", "Ann Lee")
    Identity.objects.filter(respondent=child).update(
        family_name=family, given_name=given
    )
    plain = name.replace("í", "i").replace("ú", "u").replace("ñ", "n")
    plain = plain.replace("ë", "e").replace("'", "\u2019").lower()
    log_in(client, getattr(staff, role))
    for query in (name, f"{given} {family}", family, plain, plain.replace("-", " ")):
        page = text_of(get_people(client, administration, q=query))
        assert html.escape(name) in html.escape(html.unescape(page)), query
        assert "Hassan" not in page


def test_a_district_searches_only_its_own_people(
    client, staff, administration, maya, noor
):
    log_in(client, staff.dana)
    assert "López" in text_of(get_people(client, administration, q="maya"))
    assert "Hassan" not in text_of(get_people(client, administration, q="noor"))
    assert AuditEntry.objects.latest("id").district_id == staff.riverside.pk


def test_too_many_matches_are_limited_with_a_hint(
    client, staff, administration, monkeypatch
):
    monkeypatch.setattr("survey.console.people.search.MAX_FOUND", 2)
    for number in range(3):
        invite(administration, staff.lincoln, str(number), f"Ann Smith{number}")
    log_in(client, staff.state)
    page = text_of(get_people(client, administration, q="smith"))
    assert "More than" in page
    assert "1–2 of 2 people" in page


def test_invalid_queries_find_no_one(client, staff, administration, maya):
    cases = [
        {"q": "\x00' OR 1=1 --"},
        {"q": "%"},
        {"q": "ü" * 5000},
        {"grade": "99"},
        {"state": "finished'"},
        {"page": "99999"},
        {"sort": "identity__birth_date"},
    ]
    for user in (staff.chen, staff.state):
        log_in(client, user)
        for asked in cases:
            response = get_people(client, administration, **asked)
            assert response.status_code == 200, asked


def test_withdrawn_people_are_listed_without_codes(client, staff, administration, maya):
    Respondent.objects.filter(pk=maya.pk).update(withdrawn_at=timezone.now())
    log_in(client, staff.chen)
    assert "withdrawn" in text_of(get_people(client, administration))
    assert "López" not in text_of(get_people(client, administration, state="invited"))
    assert "Print card" not in text_of(client.get(person_url(administration, maya)))
    # From a page that was loaded before.
    for act in ("code/", "reissue/", "card/"):
        page = client.post(person_url(administration, maya, act), follow=True)
        assert page.redirect_chain == [(person_url(administration, maya), 302)]
        assert "was withdrawn, so there is no card to print" in text_of(page)
    Respondent.objects.filter(pk=maya.pk).update(opted_out_at=timezone.now())
    page = client.post(person_url(administration, maya, "card/"), follow=True)
    assert "has opted out, so there is no card to print" in text_of(page)
    maya.refresh_from_db()
    assert maya.issue == 1
    assert not CardSet.objects.exists()


def test_people_without_identity_are_listed_with_codes(
    client, staff, administration, maya
):
    Identity.objects.all().delete()
    log_in(client, staff.chen)
    assert f"No name ({maya.pk})" in text_of(get_people(client, administration))
    page = client.post(person_url(administration, maya, "code/"), follow=True)
    assert format_code(code_of(maya)) in text_of(page)


def test_changes_need_post_requests(client, staff, administration, maya):
    log_in(client, staff.chen)
    for act in ("code/", "card/"):
        assert client.get(person_url(administration, maya, act)).status_code == 405
    maya.refresh_from_db()
    assert maya.issue == 1


def test_a_new_code_is_confirmed_on_a_page_that_says_what_it_means(
    client, staff, administration, maya, noor
):
    log_in(client, staff.chen)
    person = client.get(person_url(administration, maya)).content.decode()
    address = person_url(administration, maya, "reissue/")
    assert f'href="{address}"' in person
    assert f'action="{address}"' not in person
    page = text_of(client.get(address))
    assert "stop working at once" in page and "Saved answers are kept" in page
    maya.refresh_from_db()
    assert maya.issue == 1
    assert client.get(person_url(administration, noor, "reissue/")).status_code == 404
    Respondent.objects.filter(pk=maya.pk).update(withdrawn_at=timezone.now())
    assert "was withdrawn" in text_of(client.get(address, follow=True))


def test_browsers_do_not_cache_these_pages(client, staff, administration, maya):
    log_in(client, staff.chen)
    for response in (
        get_people(client, administration),
        client.get(person_url(administration, maya)),
        client.post(person_url(administration, maya, "code/")),
        client.get(person_url(administration, maya)),
    ):
        assert "no-store" in response["Cache-Control"]


def test_a_code_is_shown_only_on_its_own_person_page(
    client, staff, administration, maya
):
    ben = invite(administration, staff.lincoln, "8", "Ben Adams")
    log_in(client, staff.chen)
    client.post(person_url(administration, maya, "code/"))
    page = text_of(client.get(person_url(administration, ben)))
    assert format_code(code_of(ben)) not in page
    assert format_code(code_of(maya)) not in page


@pytest.mark.parametrize("number", [1, 3])
def test_listing_three_people_takes_as_many_statements_as_one(
    client, staff, administration, django_assert_num_queries, number
):
    for n in range(number):
        invite(administration, staff.lincoln, str(n), "Ann Smith", grade="07")
    log_in(client, staff.chen)
    get_people(client, administration)
    # User, memberships, administration, school, its classes, the number of
    # people, the people, the audit.
    with django_assert_num_queries(9):
        assert "Smith" in text_of(get_people(client, administration))


@pytest.mark.parametrize("number", [1, 3])
def test_finding_three_people_takes_as_many_statements_as_one(
    client, staff, administration, django_assert_num_queries, number
):
    for n in range(number):
        invite(administration, staff.lincoln, str(n), "Ann Smith")
    log_in(client, staff.state)
    get_people(client, administration, q="smith")
    # User, memberships, administration, districts, matches, their number, the
    # people, the schools, the audit.
    with django_assert_num_queries(10):
        assert "Smith" in text_of(get_people(client, administration, q="smith"))


def test_people_are_listed_before_opening_and_after_closing(
    client, staff, administration, maya
):
    for days in (-400, 400):
        administration.opens_at = timezone.now() + timedelta(days=days)
        administration.closes_at = administration.opens_at + timedelta(days=30)
        administration.save()
        log_in(client, staff.chen)
        assert "López" in text_of(get_people(client, administration))


def test_maya_is_found_by_the_end_of_her_code(client, staff, administration, maya):
    invite(administration, staff.lincoln, "8", "Ben Adams")
    log_in(client, staff.chen)
    code = code_of(maya)
    for typed in (code[-4:], f" {code[-5:].lower()} ", format_code(code)):
        page = text_of(get_people(client, administration, q=typed))
        assert "López, Maya" in page and "Adams" not in page, typed
        assert "by the end of the access code" in page
    # Fewer characters would be those of many people.
    assert "No one matches" in text_of(get_people(client, administration, q=code[-3:]))
    wrong = "AAAA" if code[-4:] != "AAAA" else "BBBB"
    assert "No one matches" in text_of(get_people(client, administration, q=wrong))
    grade = get_people(client, administration, q=code[-4:], grade="07")
    assert "López" in text_of(grade)


def test_a_name_is_not_taken_for_a_code(client, staff, administration, maya):
    ending = code_of(maya)[-4:]
    invite(administration, staff.lincoln, "8", f"Ben {ending}")
    log_in(client, staff.chen)
    page = text_of(get_people(client, administration, q=ending.lower()))
    assert f"{ending}, Ben" in page and "López" not in page


def test_nobody_is_found_by_a_code_where_codes_are_hidden(
    client, staff, administration, confidential, maya
):
    log_in(client, staff.chen)
    page = text_of(get_people(client, administration, q=code_of(maya)[-4:]))
    assert "No one matches" in page and "López" not in page


def test_finding_by_code_takes_a_few_more_statements(
    client, staff, administration, maya, django_assert_num_queries
):
    log_in(client, staff.chen)
    get_people(client, administration)
    # Those of a list; the number of matches again, the codes, the people.
    with django_assert_num_queries(11):
        get_people(client, administration, q=code_of(maya)[-4:])


def test_a_name_that_nobody_has_is_searched_in_other_open_administrations(
    client, staff, administration, maya
):
    log_in(client, staff.chen)
    text = client.get(
        f"/console/administrations/{administration.pk}/people/?q=Nobody"
    ).content.decode()
    assert "Search in" not in text
    second = Administration.objects.get(pk=administration.pk)
    second.pk, second.name = None, "Second survey"
    second.save()
    text = client.get(
        f"/console/administrations/{second.pk}/people/?q=López"
    ).content.decode()
    assert f"Search in {html.escape(administration.title)}" in text
    assert f'/administrations/{administration.pk}/people/?q=L%C3%B3pez"' in text


def declines(person: Respondent) -> None:
    now = timezone.now()
    Respondent.objects.filter(pk=person.pk).update(
        started_at=now, completed_at=now, declined_at=now
    )


def test_a_coordinator_sees_who_declined_and_takes_a_mistake_back(
    client, staff, administration, maya
):
    log_in(client, staff.chen)
    school = staff.lincoln.pk
    page = get_people(client, administration, school=school, state="declined")
    assert "López, Maya" not in text_of(page)
    declines(maya)
    page = get_people(client, administration, school=school, state="declined")
    assert "López, Maya" in text_of(page)
    page = get_people(client, administration, school=school, state="finished")
    assert "López, Maya" not in text_of(page)
    text = text_of(client.get(person_url(administration, maya)))
    assert "do not want to take part" in text

    page = client.get(person_url(administration, maya, "reopen/"))
    assert "by mistake that they do not want to take part" in text_of(page)
    client.post(person_url(administration, maya, "reopen/"))
    maya.refresh_from_db()
    assert maya.declined_at is None and maya.completed_at is None
    assert log_in_respondent(code_of(maya)).respondent_id == maya.pk


def test_where_progress_is_confidential_no_page_tells_who_declined(
    client, staff, confidential, maya
):
    log_in(client, staff.chen)
    addresses = (
        person_url(confidential, maya),
        f"/console/administrations/{confidential.pk}/people/?school={staff.lincoln.pk}",
        f"/console/administrations/{confidential.pk}/people/?q=L%C3%B3pez",
    )
    before = [text_of(client.get(address)) for address in addresses]
    declines(maya)
    assert [text_of(client.get(address)) for address in addresses] == before
    assert "invited" in before[0]


def test_a_card_that_one_person_asked_for_lets_them_in_again(
    staff, administration, maya
):
    ana = invite(administration, staff.lincoln, "40314", "Ana Ruiz")
    declines(maya)
    declines(ana)
    everybody = order_cards(
        administration=administration,
        by=staff.chen,
        school=staff.lincoln,
        reissue=True,
    )
    reissue_once(everybody)
    maya.refresh_from_db()
    assert maya.declined_at is not None
    card = order_cards(
        administration=administration,
        by=staff.chen,
        school=staff.lincoln,
        respondent=maya,
        reissue=True,
    )
    reissue_once(card)
    for person in (maya, ana):
        person.refresh_from_db()
    assert (maya.declined_at, maya.completed_at) == (None, None)
    assert ana.declined_at is not None
