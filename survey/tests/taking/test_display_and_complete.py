from __future__ import annotations

import json
import re
from datetime import timedelta

import pytest
from django.utils import timezone

from survey.models import Administration, Respondent
from survey.people.access_codes import digest_for
from survey.taking.refusals import refusal
from survey.tests.conftest import (
    FIRST_PAGE,
    LANGUAGES,
    SECOND_PAGE,
    Browser,
    code_of,
    enrol,
    open_now,
    publish_items,
)

pytestmark = pytest.mark.django_db


def reviewed(browser: Browser) -> str:
    return browser.get("/take/complete/").context["reviewed"]


@pytest.fixture
def answered(browser, maya):
    browser.log_in(maya)
    base = browser.bootstrap()["revision"]
    assert browser.save(1, FIRST_PAGE, base).status_code == 200
    assert browser.save(2, SECOND_PAGE, base + 1).status_code == 200
    assert browser.save(3, {"last": "bye"}, base + 2).status_code == 200
    return browser


@pytest.mark.sqlite
def test_display_returns_the_saved_answers(answered):
    shell = answered.bootstrap()
    assert shell["answers"] == {
        **FIRST_PAGE,
        "subjects": ["art", "sport"],
        **SECOND_PAGE,
        "last": "bye",
    }
    assert shell["pages"] == 3


@pytest.mark.sqlite
def test_another_device_gets_the_same_key_and_a_higher_base(answered, maya):
    first = answered.bootstrap()
    second = Browser().log_in(maya).bootstrap()
    assert second["revision"] > first["revision"]
    assert (second["tag"], second["queueKey"]) == (first["tag"], first["queueKey"])


@pytest.mark.sqlite
def test_the_base_is_above_every_stored_revision(browser, maya):
    browser.log_in(maya)
    ahead = browser.bootstrap()["revision"] + 3_600_000_000
    assert browser.save(1, FIRST_PAGE, ahead).status_code == 200
    assert browser.bootstrap()["revision"] == ahead + 1


def test_two_respondents_have_different_keys(browser, maya, noor):
    mine = browser.log_in(maya).bootstrap()
    hers = browser.log_in(noor).bootstrap()
    for name in ("tag", "queueKey", "seed"):
        assert mine[name] != hers[name]
    assert hers["answers"] == {}


def test_a_frame_without_messages_in_the_surveys_language_names_its_own(
    browser, lincoln
):
    hebrew = {"code": "he", "name": "עברית", "direction": "rtl"}
    published = publish_items(languages=[*LANGUAGES, hebrew])
    browser.log_in(enrol(open_now(published), lincoln, language="he"))
    tag = browser.session["taking"]["tag"]
    base = browser.bootstrap()["revision"]
    assert browser.save(1, {"safe": None}, base, tag=tag).status_code == 200
    for address in ("/take/", "/take/complete/"):
        text = browser.get(address).content.decode()
        assert '<html lang="en" dir="ltr"' in text
        assert '<h1 id="survey-title" lang="he" dir="rtl">' in text
    assert '<dt id="question-safe" lang="he" dir="rtl">' in text
    shell = browser.bootstrap()
    values = [shell[name] for name in ("language", "frame", "frameDirection")]
    assert values == ["he", "en", "ltr"]


def test_display_contains_no_name(browser, maya):
    Respondent.objects.filter(pk=maya.pk).update(id=987_654_321)
    maya.pk = 987_654_321
    browser.post("/", {"code": recoded(maya)})
    assert "987654321" in json.dumps(dict(browser.session))
    assert "987654321" not in browser.get("/take/").content.decode()


def recoded(respondent: Respondent) -> str:
    """Return the code of the respondent's new issue number."""
    code = code_of(respondent)
    Respondent.objects.filter(pk=respondent.pk).update(
        code_digest=digest_for(code, respondent.code_key_version)
    )
    return code


def test_every_page_needs_a_login(browser, db):
    for address in ("/take/", "/take/complete/"):
        assert browser.get(address)["Location"] == "/"
    response = browser.get("/take/", headers={"Accept": "application/json"})
    assert (response.status_code, response.json()["error"]) == (401, "session")


@pytest.mark.parametrize(
    ("change", "error"),
    [({"withdrawn_at": timezone.now()}, "withdrawn"), ({"issue": 2}, "reissued")],
)
def test_an_ended_session_shows_no_answers(answered, maya, change, error):
    Respondent.objects.filter(pk=maya.pk).update(**change)
    assert answered.get("/take/").status_code == 302
    response = answered.get("/take/", headers={"Accept": "application/json"})
    assert response.json() == refusal(error)


@pytest.mark.parametrize(
    ("role", "required", "title"),
    [
        ("student", "Responde a esta pregunta", "Revisa tus respuestas"),
        ("parent", "Responda a esta pregunta", "Revise sus respuestas"),
        ("teacher", "Responda a esta pregunta", "Revise sus respuestas"),
    ],
)
def test_adults_are_addressed_formally(
    browser, administration, maya, role, required, title
):
    Administration.objects.update(role=role)
    browser.log_in(maya)
    for address in ("/take/", "/take/?language=es"):
        response = browser.get(address, headers={"Accept": "application/json"})
        assert required in response.json()["messages"]["required"]
        assert required in browser.get(address).content.decode()
    assert title in browser.get("/take/complete/").content.decode()
    # Cached for everyone: without an imperative.
    page = browser.get(content_address(browser, 1, "es")).content.decode()
    assert "Se pueden elegir todas las que correspondan" in page


# Finishing


@pytest.mark.sqlite
def test_finishing_stores_the_time_and_says_thank_you(answered, maya):
    page = answered.get("/take/complete/")
    assert page.context["missing"] == []
    response = answered.post(
        "/take/complete/", {"reviewed": page.context["reviewed"]}, follow=True
    )
    maya.refresh_from_db()
    assert maya.completed_at is not None
    assert response.context["finished_at"] == maya.completed_at
    assert re.search(r"\b3\b", response.context["saved_text"])
    assert answered.session.get_expiry_age() <= 600


@pytest.mark.sqlite
def test_a_required_answer_that_is_missing_stops_finishing(browser, maya):
    browser.log_in(maya)
    base = browser.bootstrap()["revision"]
    browser.save(1, {**FIRST_PAGE, "safe": None}, base)
    page = browser.get("/take/complete/")
    (gap,) = page.context["missing"]
    assert gap.page == 1
    assert [item["name"] for item in gap.items] == ["safe"]
    assert page.context["reviewed"] == ""
    assert b"/take/#page-1/safe" in page.content

    browser.post("/take/complete/", {"reviewed": ""})
    maya.refresh_from_db()
    assert maya.completed_at is None


@pytest.mark.sqlite
def test_an_answer_changed_after_the_review_is_reviewed_again(answered, maya):
    seen = reviewed(answered)
    base = answered.bootstrap()["revision"]
    answered.save(1, {**FIRST_PAGE, "safe": None}, base)
    response = answered.post("/take/complete/", {"reviewed": seen})
    assert response.status_code == 200
    assert [gap.page for gap in response.context["missing"]] == [1]
    maya.refresh_from_db()
    assert maya.completed_at is None


@pytest.mark.sqlite
def test_a_late_page_below_the_newest_revision_is_reviewed_too(browser, maya):
    browser.log_in(maya)
    base = browser.bootstrap()["revision"]
    browser.save(1, FIRST_PAGE, base)
    browser.save(2, SECOND_PAGE, base + 5)
    seen = reviewed(browser)
    browser.save(1, {**FIRST_PAGE, "safe": None}, base + 1)
    response = browser.post("/take/complete/", {"reviewed": seen})
    assert [gap.page for gap in response.context["missing"]] == [1]
    maya.refresh_from_db()
    assert maya.completed_at is None


@pytest.mark.parametrize("forged", ["x", "", "a:b:c", "\0", "é" * 5000])
def test_an_unsigned_review_is_refused(answered, maya, forged):
    assert answered.post("/take/complete/", {"reviewed": forged}).status_code == 200
    maya.refresh_from_db()
    assert maya.completed_at is None


def test_a_review_of_another_respondent_is_refused(answered, maya, noor):
    seen = reviewed(answered)
    sibling = Browser().log_in(noor)
    sibling.post("/take/complete/", {"reviewed": seen})
    noor.refresh_from_db()
    assert noor.completed_at is None


@pytest.mark.sqlite
def test_finishing_twice_says_thank_you_twice(answered, maya):
    seen = reviewed(answered)
    answered.post("/take/complete/", {"reviewed": seen})
    maya.refresh_from_db()
    first = maya.completed_at
    page = answered.post("/take/complete/", {"reviewed": seen})
    maya.refresh_from_db()
    assert maya.completed_at == first
    assert page.context["finished_at"] == first


@pytest.mark.sqlite
def test_after_finishing_nothing_is_saved_or_shown(answered, maya):
    shell = answered.bootstrap()
    answered.post("/take/complete/", {"reviewed": reviewed(answered)})
    response = answered.save(1, FIRST_PAGE, shell["revision"] + 10)
    assert response.json() == refusal("finished")
    assert answered.get("/take/")["Location"] == "/take/complete/"
    thanks = answered.get("/take/complete/").content.decode()
    assert "colours" not in thanks


@pytest.mark.sqlite
def test_finishing_too_late_is_refused(answered, maya):
    seen = reviewed(answered)
    Administration.objects.update(closes_at=timezone.now() - timedelta(minutes=11))
    response = answered.post("/take/complete/", {"reviewed": seen})
    assert response.context["closed"]
    assert answered.get("/take/")["Location"] == "/take/complete/"
    maya.refresh_from_db()
    assert maya.completed_at is None


JSON = {"Accept": "application/json"}


@pytest.mark.sqlite
def test_a_script_finishes_once_and_may_ask_again(answered, maya):
    seen = {"reviewed": reviewed(answered)}
    reply = answered.post("/take/complete/", seen, headers=JSON)
    assert (reply.status_code, reply.json()) == (200, {"finished": True})
    maya.refresh_from_db()
    first = maya.completed_at
    # The reply was lost.
    reply = answered.post("/take/complete/", seen, headers=JSON)
    assert (reply.status_code, reply.json()) == (200, {"finished": True})
    maya.refresh_from_db()
    assert maya.completed_at == first


@pytest.mark.sqlite
def test_a_script_is_told_that_answers_changed(answered, maya):
    seen = {"reviewed": reviewed(answered)}
    base = answered.bootstrap()["revision"]
    answered.save(3, {"last": "more"}, base)
    reply = answered.post("/take/complete/", seen, headers=JSON)
    assert (reply.status_code, reply.json()) == (409, refusal("changed"))
    maya.refresh_from_db()
    assert maya.completed_at is None


def test_a_script_without_a_session_is_told_so(browser, db):
    reply = browser.post("/take/complete/", {"reviewed": "x"}, headers=JSON)
    assert (reply.status_code, reply.json()) == (401, refusal("session"))


# One person for each tab


@pytest.mark.parametrize("address", ["/take/", "/take/complete/"])
def test_a_tab_of_another_person_gets_no_answers(answered, maya, noor, address):
    hers = answered.bootstrap()["tag"]
    assert b"colours" in answered.get(f"/take/?for={hers}").content
    stranger = Browser().log_in(noor).bootstrap()["tag"]
    page = answered.get(f"{address}?for={stranger}")
    assert page.status_code == 403
    assert b"colours" not in page.content
    assert b'href="/"' in page.content
    headers = {"Accept": "application/json", "X-Groundswell-Respondent": stranger}
    response = answered.get(address, headers=headers)
    assert (response.status_code, response.json()) == (403, refusal("person"))


def test_a_tab_of_another_person_cannot_finish(answered, maya, noor):
    seen = reviewed(answered)
    stranger = Browser().log_in(noor).bootstrap()["tag"]
    page = answered.post("/take/complete/", {"reviewed": seen, "for": stranger})
    assert page.status_code == 403
    maya.refresh_from_db()
    assert maya.completed_at is None


# Content


def content_address(browser: Browser, n: int, language: str = "en") -> str:
    template = browser.bootstrap()["urls"]["content"]
    return template.replace("{n}", str(n)).replace("{language}", language)


def test_content_is_the_same_for_everyone_and_cached_for_ever(browser, maya):
    browser.log_in(maya)
    address = content_address(browser, 1)
    stranger = Browser()
    response = stranger.get(address)
    assert response.content == browser.get(address).content
    assert "immutable" in response["Cache-Control"]
    assert not response.cookies
    assert "Cookie" not in response.get("Vary", "")
    assert b"About safe" in response.content


def test_the_outline_contains_the_rules(browser, maya):
    browser.log_in(maya)
    outline = browser.get(content_address(browser, 0)).json()
    assert outline["items"]["why_art"]["relevant"] == [
        "selected",
        ["$", "subjects"],
        "art",
    ]
    assert [page["title"] for page in outline["pages"]] == [
        "Page 1",
        "Page 2",
        "Page 3",
    ]


def test_content_of_an_older_renderer_is_served_but_not_cached(browser, maya):
    browser.log_in(maya)
    parts = content_address(browser, 1).split("/")
    parts[3] = "0000"
    response = browser.get("/".join(parts))
    assert response.status_code == 200
    assert response["Cache-Control"] == "no-store"


def test_content_that_does_not_exist_is_not_found(browser, maya):
    browser.log_in(maya)
    address = content_address(browser, 1)
    assert browser.get(content_address(browser, 4)).status_code == 404
    assert browser.get(content_address(browser, 1, "fr")).status_code == 404
    digest = address.split("/")[2]
    assert browser.get(address.replace(digest, "0" * 64)).status_code == 404


@pytest.mark.sqlite
def test_the_language_of_the_review_is_stored_when_finishing(answered, maya):
    finish_in(answered, maya, language="en")
    assert maya.response_language == "en"


def test_an_unknown_language_is_that_of_the_login(answered, maya):
    finish_in(answered, maya, language="x" * 60)
    assert maya.response_language == "es"


def finish_in(browser, person, language):
    form = {"reviewed": reviewed(browser), "language": language}
    assert browser.post("/take/complete/", form).status_code == 302
    person.refresh_from_db()
    assert person.completed_at is not None
