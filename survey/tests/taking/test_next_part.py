"""One visit of two parts: the state's pages, and then those of the district."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.conf import settings
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from survey.fieldwork.administrations.changes import add_partition
from survey.models import Administration, Respondent, Response
from survey.taking.published import published_survey
from survey.tests.conftest import (
    FIRST_PAGE,
    SECOND_PAGE,
    Browser,
    code_of,
    enrol,
    publish_items,
)
from survey.tests.taking.test_budgets import cost
from survey.tests.taking.test_resume_cookie import tag_of

pytestmark = pytest.mark.django_db

DISTRICT_PAGES = [{"bus_ride": {"kind": "text"}}, {"lunch": {"kind": "text"}}]
GO_ON = "Your district has a few more questions"
CONTINUE = "El distrito tiene algunas preguntas más"


def create_module(administration: Administration, district) -> Administration:
    """Add a module without the checks of `add_module`."""
    administration.district_pages_limit = 2
    administration.save(update_fields=["district_pages_limit"])
    module = Administration.objects.create(
        name=f"{district.code}-pages",
        published=publish_items(DISTRICT_PAGES, name=f"{district.code}-pages"),
        role=administration.role,
        district=district,
        opens_at=administration.opens_at,
        closes_at=administration.closes_at,
        module_of=administration,
    )
    add_partition(module)
    return module


@pytest.fixture
def module(administration, lincoln) -> Administration:
    return create_module(administration, lincoln.district)


def answer_everything(browser: Browser) -> None:
    base = browser.bootstrap()["revision"]
    assert browser.save(1, FIRST_PAGE, base).status_code == 200
    assert browser.save(2, SECOND_PAGE, base + 1).status_code == 200
    assert browser.save(3, {"last": "bye"}, base + 2).status_code == 200


def tag_on(page) -> str:
    """Return the person's tag in a form; the context of a page may be of nobody."""
    return re.findall('name="for" value="([^"]+)"', page.content.decode())[0]


def finish(browser: Browser):
    """Send the review's form, and return the page that says thank you."""
    review = browser.get("/take/complete/")
    response = browser.post(
        "/take/complete/",
        {
            "reviewed": review.context["reviewed"],
            "for": tag_on(review),
            "language": "en",
        },
    )
    return browser.get(response["Location"])


def go_on(browser: Browser, thanks, *, tag: str = ""):
    form = {"for": tag or tag_on(thanks), "language": "en"}
    return browser.post("/take/next-part/", form)


@pytest.fixture
def finished(browser, maya, module):
    """Maya has finished the state's part, and sees the thanks."""
    browser.log_in(maya)
    answer_everything(browser)
    return finish(browser)


@pytest.mark.sqlite
def test_one_visit_leads_from_the_state_to_the_district(
    browser, maya, module, finished
):
    assert GO_ON in finished.content.decode()
    assert "2 more pages" in finished.content.decode()

    assert go_on(browser, finished)["Location"] == "/take/?next-part=1"
    shown = browser.bootstrap()
    assert (shown["pages"], shown["answers"]) == (2, {})
    base = shown["revision"]
    assert browser.save(1, {"bus_ride": "long"}, base).status_code == 200
    assert browser.save(2, {"lunch": None}, base + 1).status_code == 200
    thanks = finish(browser)

    assert GO_ON not in thanks.content.decode()
    assert "All 2 pages saved" in thanks.content.decode()
    person = module.respondents.get()
    assert person.completed_at is not None
    assert (person.school_id, person.grade) == (maya.school_id, "07")
    answers = Response.objects.filter(administration_id=module.pk)
    assert {*answers.values_list("value", flat=True)} == {"long", None}


@pytest.mark.sqlite
def test_the_states_answers_stay_as_they_were(browser, maya, module, finished):
    def of_state():
        rows = Response.objects.filter(administration_id=maya.administration_id)
        person = Respondent.objects.filter(pk=maya.pk).values().get()
        return person, list(rows.order_by("item_id").values())

    before = of_state()
    assert len(before[1]) > 8
    go_on(browser, finished)
    browser.save(1, {"bus_ride": "long"}, browser.bootstrap()["revision"])
    browser.post("/take/stop/")

    assert of_state() == before


def test_a_person_who_takes_a_break_goes_on_with_the_same_card(
    browser, maya, module, finished
):
    go_on(browser, finished)
    browser.save(1, {"bus_ride": "long"}, browser.bootstrap()["revision"])
    browser.cookies.pop(settings.SESSION_COOKIE_NAME)

    response = browser.post("/", {"code": code_of(maya)})
    assert response["Location"] == "/take/complete/"
    thanks = browser.get("/take/complete/")
    assert GO_ON in thanks.content.decode() or CONTINUE in thanks.content.decode()
    go_on(browser, thanks)

    assert browser.bootstrap()["answers"] == {"bus_ride": "long"}
    assert module.respondents.count() == 1


def test_a_break_before_the_districts_pages(browser, maya, module, finished):
    browser.cookies.pop(settings.SESSION_COOKIE_NAME)
    browser.log_in(maya)
    go_on(browser, browser.get("/take/complete/"))

    assert browser.bootstrap()["pages"] == 2


def test_another_device_reads_no_answers_of_the_district(
    browser, maya, module, finished
):
    go_on(browser, finished)
    browser.save(1, {"bus_ride": "secret"}, browser.bootstrap()["revision"])

    elsewhere = Browser()
    elsewhere.log_in(maya)
    # As without a module, nothing tells that the person has finished.
    assert elsewhere.get("/take/").status_code == 200
    thanks = finish(elsewhere)
    go_on(elsewhere, thanks)
    shown = elsewhere.bootstrap()
    assert (shown["answers"], shown["earlier"]) == ({}, ["bus_ride"])


def test_two_clicks_make_one_respondent(browser, maya, module, finished):
    assert go_on(browser, finished)["Location"] == "/take/?next-part=1"
    # Its reply was lost: the same cookies come again.
    assert go_on(browser, finished)["Location"] == "/take/"

    assert module.respondents.count() == 1
    assert browser.bootstrap()["pages"] == 2


def test_the_next_child_at_the_computer_does_not_go_on_for_the_last_one(
    browser, maya, noor, module, finished
):
    browser.log_in(noor)
    response = go_on(browser, finished)

    assert response.status_code == 403
    assert not module.respondents.exists()


def test_nobody_goes_on_before_the_end(browser, maya, module):
    browser.log_in(maya)
    form = {"for": browser.tag, "language": "en"}
    assert browser.post("/take/next-part/", form)["Location"] == "/take/complete/"
    assert not module.respondents.exists()
    # Opening the address does nothing either.
    assert browser.get("/take/next-part/")["Location"] == "/take/"


def test_a_district_without_a_module_is_not_concerned(browser, module, noor):
    browser.log_in(noor)
    answer_everything(browser)
    thanks = finish(browser)

    assert GO_ON not in thanks.content.decode()
    assert go_on(browser, thanks, tag=tag_of(noor))["Location"] == "/take/complete/"
    assert not module.respondents.exists()


@pytest.mark.parametrize(
    "change",
    [
        {"closes_at": timezone.now() - timedelta(minutes=1)},
        {"opens_at": timezone.now() + timedelta(days=1)},
        {"stopped_at": timezone.now()},
    ],
)
def test_a_module_that_is_not_open_takes_nobody(browser, maya, module, change):
    Administration.objects.filter(pk=module.pk).update(**change)
    browser.log_in(maya)
    answer_everything(browser)
    thanks = finish(browser)

    assert GO_ON not in thanks.content.decode()
    assert go_on(browser, thanks, tag=tag_of(maya))["Location"] == "/take/complete/"


def test_the_state_stops_offering_modules(browser, maya, module, finished):
    Administration.objects.filter(pk=module.module_of_id).update(district_pages_limit=0)

    assert GO_ON not in browser.get("/take/complete/").content.decode()
    assert go_on(browser, finished)["Location"] == "/take/complete/"


def test_people_who_are_added_later_go_on_too(browser, administration, module, lincoln):
    added = enrol(administration, lincoln, grade="05", language="en")
    browser.log_in(added)
    answer_everything(browser)
    go_on(browser, finish(browser))

    assert module.respondents.get().grade == "05"


def test_nothing_stored_leads_from_one_part_to_the_other(
    browser, maya, module, finished
):
    go_on(browser, finished)
    first = Respondent.objects.filter(pk=maya.pk).values().get()
    second = module.respondents.values().get()
    # A person's row in the state's round is told from others by these.
    for name in ("id", "code_digest"):
        assert first[name] != second[name]
    assert not hasattr(module.respondents.get(), "identity")


def test_costs(browser, maya, module, noor, monkeypatch):
    published_survey(module.published_id)
    browser.log_in(maya)
    answer_everything(browser)
    review = browser.get("/take/complete/")
    form = {
        "reviewed": review.context["reviewed"],
        "for": tag_on(review),
        "language": "en",
    }
    with cost(monkeypatch) as spent:
        browser.post("/take/complete/", form)
    assert len(spent.statements) == 1
    with cost(monkeypatch) as spent:
        thanks = browser.get("/take/complete/")
    assert GO_ON in thanks.content.decode() or CONTINUE in thanks.content.decode()
    assert len(spent.statements) == 4
    with cost(monkeypatch) as spent:
        go_on(browser, thanks)
    assert [sql.split()[0] for sql in spent.statements] == 4 * ["SELECT"] + [
        "INSERT",
        "INSERT",
    ]
    assert spent.counts["session writes"] == 1
    base = browser.bootstrap()["revision"]
    with cost(monkeypatch) as spent:
        assert browser.save(1, {"bus_ride": "long"}, base).status_code == 200
    assert len(spent.statements) == 1


def test_a_round_without_modules_costs_what_it_did(browser, maya, monkeypatch):
    browser.log_in(maya)
    answer_everything(browser)
    finish(browser)
    with CaptureQueriesContext(connection) as queries:
        browser.get("/take/complete/")
    statements = [
        query["sql"]
        for query in queries.captured_queries
        if "django_session" not in query["sql"]
    ]
    assert len(statements) == 1


def test_without_scripts(browser, maya, module, finished):
    shown = browser.get(go_on(browser, finished)["Location"]).content.decode()
    # What browsers without scripts load instead.
    assert "url=/take/plain/" in shown
    page = browser.get("/take/plain/", follow=True).content.decode()
    assert "About bus_ride" in page
    assert "<form" in page


def test_the_language_stays(browser, maya, module):
    browser.log_in(maya)
    answer_everything(browser)
    review = browser.get("/take/complete/?language=es")
    form = {"reviewed": review.context["reviewed"], "for": tag_on(review)}
    response = browser.post("/take/complete/", {**form, "language": "es"})
    thanks = browser.get(response["Location"])
    browser.post("/take/next-part/", {"for": tag_on(thanks), "language": "es"})
    assert browser.bootstrap()["language"] == "es"


def test_a_person_who_opted_out_meanwhile_does_not_go_on(
    browser, maya, module, finished
):
    Respondent.objects.filter(pk=maya.pk).update(withdrawn_at=timezone.now())
    go_on(browser, finished)
    assert not module.respondents.exists()
