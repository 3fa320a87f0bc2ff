"""Languages under their own names, and a chosen one that the survey lacks."""

from __future__ import annotations

import pytest

from survey.taking.language_names import languages_of, own_name
from survey.tests.conftest import code_of, enrol, open_now, publish_items
from survey.tests.taking.test_plain_forms import follow

pytestmark = pytest.mark.django_db

PAGES = [{"last": {"kind": "text"}}]


def language(code: str, name: str, direction: str = "ltr") -> dict[str, str]:
    return {"code": code, "name": name, "direction": direction}


@pytest.fixture
def person(lincoln):
    named = [language("en", "English"), language("es-MX", "Spanish")]
    named += [language("ur", "Urdu", "rtl")]
    return enrol(open_now(publish_items(PAGES, languages=named)), lincoln)


@pytest.mark.parametrize(
    ("code", "name", "shown"),
    [
        ("es", "Spanish", "Español"),
        ("es-MX", "spanish", "Español"),
        ("es", "es", "Español"),
        ("so", "Somali", "Soomaali"),
        ("zh-Hans", "Chinese", "Chinese"),
        ("zh-Hant", "Traditional Chinese", "繁體中文"),
        # What says more than the English name stays.
        ("es", "Español (Latinoamérica)", "Español (Latinoamérica)"),
        ("xx", "Klingon", "Klingon"),
    ],
)
def test_a_language_is_called_as_its_readers_call_it(code, name, shown):
    assert own_name(code, name) == shown


def test_two_kinds_of_one_language_keep_the_names_that_tell_them_apart():
    languages = [language("es-MX", "Spanish"), language("es", "Español")]
    assert languages_of({"languages": languages}) == languages[::-1]


def test_own_names_have_language_and_direction(browser, person):
    browser.log_in(person)
    options = '<option value="ur" lang="ur" dir="rtl">اردو</option>'
    assert options in browser.get("/take/").content.decode()
    names = [entry["name"] for entry in browser.bootstrap()["languages"]]
    assert names == ["English", "Español", "اردو"]
    page = follow(browser, browser.get("/take/plain/"))
    assert 'lang="ur" dir="rtl">اردو</button>' in page.html
    assert 'lang="ar" dir="rtl"' in browser.get("/").content.decode()


def test_a_chosen_language_that_the_survey_lacks_is_said(browser, person):
    response = browser.post("/", {"code": code_of(person), "language": "ar"})
    assert response["Location"] == "/take/?missing=ar"
    text = browser.get("/take/?missing=ar").content.decode()
    assert '<p class="notice" id="language-missing" lang="ar" dir="rtl">' in text
    # Without scripts too.
    assert text.count("&amp;missing=ar") == 2
    page = follow(browser, browser.get("/take/plain/?missing=ar"))
    assert 'id="language-missing" lang="ar"' in page.html
    assert "language-missing" not in page.send(last="Bye").html


@pytest.mark.parametrize("chosen", ["en", "es", "ur", "", "xx", '"><b>'])
def test_any_other_choice_needs_no_notice(browser, person, chosen):
    response = browser.post("/", {"code": code_of(person), "language": chosen})
    assert response["Location"] == "/take/"
    text = browser.get("/take/", {"missing": chosen}).content.decode()
    assert "language-missing" not in text
    assert "&amp;missing=&quot;" not in text and '&amp;missing="' in text


def test_spanish_is_also_that_of_mexico(browser, person):
    browser.post("/", {"code": code_of(person), "language": "es"})
    assert browser.bootstrap()["language"] == "es-MX"
