"""Pages that are rendered once hold nothing of the person who came first."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from html import unescape

import pytest
from django.template.loader import render_to_string
from django.utils.html import json_script

from survey.taking import prepared_pages
from survey.taking.bootstrap import frame_context
from survey.taking.language_names import languages_of
from survey.taking.prepared_pages import (
    MARK,
    fill_in,
    members_of,
    split_page,
)
from survey.taking.published import published_survey
from survey.tests.conftest import FIRST_PAGE, SECOND_PAGE, Browser

SECRET = "Only Maya wrote this"
pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def prepared(monkeypatch, settings):
    """Prepare pages as in production, where bundles are built offline."""
    settings.COMPRESS_OFFLINE = True
    for name in ("login", "survey", "frame", "complete"):
        fresh = lru_cache(getattr(prepared_pages, f"render_{name}"))
        monkeypatch.setattr(prepared_pages, f"prepared_{name}", fresh)


def test_the_second_person_gets_only_their_own_page(maya, noor):
    first = Browser().log_in(maya)
    base = first.bootstrap()["revision"]
    first.save(1, {**FIRST_PAGE, "comment": SECRET}, base)
    mine = first.get("/take/").content.decode()

    second = Browser().log_in(noor)
    hers = second.get("/take/").content.decode()
    assert second.bootstrap()["answers"] == {}
    tags = [browser.session["taking"]["tag"] for browser in (first, second)]
    assert tags[0] in mine and tags[1] not in mine
    assert tags[1] in hers and tags[0] not in hers
    assert SECRET in mine and SECRET not in hers
    assert MARK not in mine + hers


def test_a_page_is_prepared_for_each_language(maya):
    browser = Browser().log_in(maya)
    spanish = browser.get("/take/?language=es").content.decode()
    english = browser.get("/take/?language=en").content.decode()
    assert '<html lang="en"' in english and '<html lang="es"' in spanish


def test_the_login_page_has_a_token_of_its_own_and_the_time():
    pages = [Browser().get("/").content.decode() for _ in range(2)]
    tokens = [
        re.search(r'csrfmiddlewaretoken" value="(\w{64})"', page) for page in pages
    ]
    assert tokens[0] and tokens[1] and tokens[0][1] != tokens[1][1]
    times = [re.search(r'data-now="(20[^"]{20,})"', page) for page in pages]
    assert times[0] and times[1] and times[0][1] < times[1][1]
    assert MARK not in "".join(pages)


def test_what_is_filled_in_is_escaped():
    page = split_page(f"<p>{prepared_pages.TAG}</p>")
    filled = fill_in(page, {prepared_pages.TAG: "<script>"})
    assert filled == b"<p>&lt;script&gt;</p>"


def test_answers_are_filled_in_as_json_is_written_into_a_page():
    person = {"answers": {"q1": "</script><!-- & \u2028 ñ", "q2": None}, "shown": [[1]]}
    script = json_script(person, "take")
    assert members_of(person) == script[script.index("{") + 1 : script.rindex("}")]
    assert "</script>" in json.dumps(person)


def test_the_data_of_a_page_are_those_that_a_running_tab_renews(maya):
    browser = Browser().log_in(maya)
    browser.save(1, {**FIRST_PAGE, "comment": SECRET}, browser.bootstrap()["revision"])
    page = browser.get("/take/").content.decode()
    [script] = re.findall(r'<script id="take" type="[^"]*">(.*?)</script>', page)
    renewed = browser.get("/take/", headers={"accept": "application/json"}).content
    changing = ("csrf", "now", "revision")
    in_page, in_tab = json.loads(script), json.loads(renewed)
    assert list(in_page) == list(in_tab) and SECRET in script
    assert {key: in_page[key] for key in in_page if key not in changing} == {
        key: in_tab[key] for key in in_tab if key not in changing
    }


def answered_pages(*people, last=(SECRET, "x"), first=FIRST_PAGE):
    """Return each person's review, and the page after finishing."""
    for person, text in zip(people, last, strict=False):
        browser = Browser().log_in(person)
        base = browser.bootstrap()["revision"]
        pages = [first, SECOND_PAGE, {"last": text}]
        for number, answers in enumerate(pages, start=1):
            assert browser.save(number, answers, base + number).status_code == 200
        review = browser.get("/take/complete/?language=en").content.decode()
        [reviewed] = re.findall('name="reviewed" value="([^"]+)"', review)
        finishing = {"reviewed": unescape(reviewed)}
        assert browser.post("/take/complete/", finishing).status_code == 302
        yield review
        yield browser.get("/take/complete/?language=en").content.decode()


def test_the_second_person_reviews_and_is_thanked_alone(maya, noor):
    first_review, first_thanks, review, thanks = answered_pages(maya, noor)
    assert prepared_pages.prepared_complete.cache_info().hits
    assert SECRET in first_review and SECRET not in review + thanks + first_thanks
    tags = [re.search(r'data-tag="(\w+)"', page)[1] for page in (first_review, review)]
    assert tags[0] not in review + thanks and tags[1] in review and tags[1] in thanks
    assert MARK not in first_review + first_thanks + review + thanks


@pytest.mark.parametrize(
    ("answers", "kind"),
    [
        ({"comment": "Nothing"}, prepared_pages.ALL_ANSWERED),
        ({}, prepared_pages.ONE_BLANK),
        ({"why_art": None}, prepared_pages.SOME_BLANK),
    ],
)
def test_a_prepared_page_is_the_whole_template(
    maya, noor, lincoln, monkeypatch, answers, kind
):
    """But for what is of the person and the moment."""
    kinds, first = [], FIRST_PAGE | answers

    def render_at_once(digest, language, role, context, place):
        kinds.append(prepared_pages.kind_of(context))
        published = published_survey(digest)
        return render_to_string(
            "survey/survey_complete.html",
            {
                **frame_context(published, language, role),
                "languages": languages_of(published.definition),
                **context,
                "place": place,
            },
        )

    def comparable(page: str) -> str:
        page = re.sub(r'(?:value|data-\w+|datetime)="[^"]*"|for=\w+|\s', "", page)
        return re.sub(r"\d\d:\d\d", "", page)

    noor.school = lincoln
    noor.save()
    prepared = [comparable(page) for page in answered_pages(maya, first=first)]
    monkeypatch.setattr("survey.taking.views.complete_page", render_at_once)
    rendered = [
        comparable(page) for page in answered_pages(noor, last=(SECRET,), first=first)
    ]
    assert prepared == rendered
    assert kinds == [kind, prepared_pages.THANKS]


def test_what_differs_in_more_than_texts_is_rendered_for_each_person(maya, noor):
    browser = Browser().log_in(maya)
    review = browser.get("/take/complete/?language=en").content.decode()
    assert prepared_pages.prepared_complete.cache_info().currsize == 0
    assert 'class="missing"' in review or 'class="unopened"' in review


@pytest.mark.parametrize(
    "difference",
    [
        {"is_finished": True, "open_code": "SCHOOL"},
        {"is_finished": True, "next_part": object()},
        {"missing": 2},
        # Somebody saw the answers before: they are not shown again.
        {"review": None},
    ],
)
def test_pages_with_parts_of_their_own_are_not_prepared(difference):
    context = {
        **{"is_finished": False, "open_code": "", "next_part": None},
        **{"missing": 0, "review": [object()], "blank": 0, "is_one_blank": False},
    }
    assert prepared_pages.kind_of(context) == prepared_pages.ALL_ANSWERED
    assert prepared_pages.kind_of({**context, "is_finished": True}) is not None
    assert prepared_pages.kind_of({**context, **difference}) is None
