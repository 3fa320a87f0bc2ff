"""Search, sort and page through lists of the console, with any query string."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path
from urllib.parse import urlencode

import pytest
from django.db import connection
from django.test import RequestFactory
from django.test.utils import CaptureQueriesContext
from django_htmx.middleware import HtmxDetails

from accounts.console.listing import (
    LONGEST_SEARCH,
    PER_PAGE,
    ComputedListing,
    Listing,
)
from accounts.models import District, School

pytestmark = pytest.mark.django_db

TEMPLATE = """{% extends layout %}
{% load console %}
{% block title %}Schools{% endblock %}
{% block heading %}Schools{% endblock %}
{% block list %}
  {% include "console/_search.html" with label="Find a school" %}
  <table>
    <thead><tr>
      {% column listing "name" "School" %}
      {% column listing "code" "Code" "number" %}
      {% column listing "district" "District" %}
    </tr></thead>
    <tbody>{% for one in rows %}<tr><td>{{ one.name }}</td></tr>{% endfor %}</tbody>
  </table>
  {% include "console/_paging.html" with noun="schools" %}
{% endblock list %}
"""


@pytest.fixture
def template(settings, tmp_path: Path) -> str:
    (tmp_path / "schools.html").write_text(TEMPLATE)
    [engine] = settings.TEMPLATES
    settings.TEMPLATES = [{**engine, "DIRS": [*engine["DIRS"], tmp_path]}]
    return "schools.html"


@pytest.fixture
def lakeside() -> District:
    return District.objects.create(code="lakeside", name="Lakeside")


@pytest.fixture
def schools(lakeside) -> list[School]:
    """Create schools of which two have one name, so that only their keys order them."""
    riverside = District.objects.create(code="riverside", name="Riverside")
    named = [
        (riverside, "lincoln", "Lincoln Middle"),
        (lakeside, "lincoln", "Lincoln Middle"),
        (lakeside, "roosevelt", "Roosevelt High"),
    ]
    return [
        School.objects.create(district=district, code=code, name=name)
        for district, code, name in named
    ]


def many(district: District, count: int) -> None:
    School.objects.bulk_create(
        School(district=district, code=f"s{n:04}", name=f"School {n % 97:02}")
        for n in range(count)
    )


def asked(query: str = "", **headers: str):
    request = RequestFactory().get(f"/console/schools/{query}", **headers)
    request.htmx = HtmxDetails(request)
    request.user = type("Nobody", (), {"is_authenticated": False})()
    return request


def listing(query: str = "", *, per_page: int = PER_PAGE, **headers: str) -> Listing:
    return Listing(
        asked(query, **headers),
        School.objects.select_related("district"),
        search=("name", "code", "district__name"),
        sorts={
            "name": ("name",),
            "code": ("code",),
            "district": ("-district__name", "name"),
        },
        per_page=per_page,
    )


def schools_on_page(query: str = "", **more) -> list[str]:
    return [
        f"{school.name}, {school.district}"
        for school in listing(query, **more).page.object_list
    ]


LINCOLNS = ["Lincoln Middle, Riverside", "Lincoln Middle, Lakeside"]
ROOSEVELT = "Roosevelt High, Lakeside"


def test_the_query_string_searches_sorts_and_pages(schools, template):
    shown = listing("?q=lincoln&sort=-name&page=2", per_page=1)
    page = shown.render(template, {}).content.decode()

    assert page.startswith("<!doctype html>")
    assert page.count("<td>Lincoln Middle</td>") == 1
    assert "2–2 of 2 schools" in page
    assert 'aria-sort="descending"' in page
    assert 'value="lincoln"' in page
    links = [unescape(link) for link in re.findall(r' href="(\?[^"]*)"', page)]
    # By the same column: the other way round, and from the beginning.
    assert "?q=lincoln&sort=name" in links
    assert "?q=lincoln&sort=code" in links
    assert "?q=lincoln&sort=-name&page=1" in links


@pytest.mark.parametrize(
    ("query", "order"),
    [
        ("?sort=name", "ascending"),
        ("?sort=-name", "descending"),
        # Downwards of itself, as the newest first, and upwards when turned.
        ("?sort=district", "descending"),
        ("?sort=-district", "ascending"),
    ],
)
def test_aria_sort_describes_the_order_of_the_rows(schools, template, query, order):
    shown = listing(query)
    page = shown.render(template, {}).content.decode()

    assert re.findall(r'aria-sort="(\w+)"', page) == [order]
    districts = [school.district.name for school in shown.page]
    names = [school.name for school in shown.page]
    rows = districts if "district" in query else names
    assert rows == sorted(rows, reverse=order == "descending")


@pytest.mark.parametrize(
    ("words", "names"),
    [
        ("", [*LINCOLNS, ROOSEVELT]),
        ("LINC", LINCOLNS),
        # Each word is somewhere, not all of them in one place.
        ("lake mid", LINCOLNS[1:]),
        ("high  lakeside", [ROOSEVELT]),
        ("lincoln high", []),
        # Signs that a pattern would understand.
        ("%", []),
        ("_", []),
        ("\\", []),
        ("' OR 1=1 --", []),
    ],
)
def test_every_search_word_must_match(schools, words, names):
    assert schools_on_page("?" + urlencode({"q": words})) == names


@pytest.mark.parametrize(
    ("sort", "names"),
    [
        ("", [*LINCOLNS, ROOSEVELT]),
        ("name", [*LINCOLNS, ROOSEVELT]),
        ("-name", [ROOSEVELT, *LINCOLNS[::-1]]),
        # A column that counts downwards itself is turned, too.
        ("district", [LINCOLNS[0], LINCOLNS[1], ROOSEVELT]),
        ("-district", [ROOSEVELT, LINCOLNS[1], LINCOLNS[0]]),
    ],
)
def test_columns_sort_both_ways(schools, sort, names):
    assert schools_on_page("?" + urlencode({"sort": sort})) == names


def test_equal_rows_keep_their_page(lakeside):
    many(lakeside, 300)
    for sort in ("name", "-name"):
        pages = [
            school.pk
            for n in range(1, 7)
            for school in listing(f"?sort={sort}&page={n}").page.object_list
        ]
        assert len(pages) == len(set(pages)) == 300


@pytest.mark.parametrize(
    "query",
    [
        "?page=-1",
        "?page=0",
        "?page=x",
        "?page=",
        "?page=99999999999999999999",
        "?page=1e3",
        "?page=\u0663",
        "?sort=password",
        "?sort=district__memberships__user__password",
        "?sort=--name",
        "?sort=-",
        "?sort=name,code",
        "?sort=?",
        "?q=%00",
        "?q=a%00b&sort=%00&page=%00",
        "?q=%ff%fe",
        "?q=" + "x" * 5000,
        "?q=" + "+".join("abcdefghij" * 20),
        "?q=a&q=b&page=1&page=2&sort=name&sort=code",
        "?q=\ud83d\ude00".encode("utf-8", "surrogatepass").decode("utf-8", "replace"),
    ],
)
def test_invalid_parameters_still_show_a_list(schools, template, query):
    shown = listing(query)
    page = shown.render(template, {})

    assert page.status_code == 200
    assert 1 <= shown.page.number <= shown.page.paginator.num_pages
    assert shown.sort in ("name", "code", "district")
    assert len(shown.query) <= LONGEST_SEARCH
    assert "\x00" not in page.content.decode()


def test_search_text_is_escaped(schools, template):
    query = "?" + urlencode({"q": '"><script>alert(1)</script>', "x": "<b>"})
    page = listing(query).render(template, {}).content.decode()
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert "<b>" not in page


def test_htmx_requests_get_only_the_list(schools, template):
    whole = listing().render(template, {})
    part = listing(HTTP_HX_REQUEST="true").render(template, {})

    assert b"<html" in whole.content
    assert b"<html" not in part.content
    assert b"<tbody>" in part.content
    # A cache must not mix them up.
    for response in (whole, part):
        assert "HX-Request" in response["Vary"]


def test_an_empty_result_is_explained(schools, template):
    page = listing("?q=zebra").render(template, {}).content.decode()
    assert "No schools with “zebra”" in page


@pytest.mark.parametrize("rows", [1, 3])
def test_one_row_and_three_rows_cost_the_same(lakeside, template, rows):
    many(lakeside, rows)
    with CaptureQueriesContext(
        connection,
    ) as asked_for:
        listing().render(template, {})
    assert len(asked_for) == 2


def test_four_thousand_schools_take_two_statements(lakeside, template):
    many(lakeside, 4000)
    for query in ("", "?page=80", "?q=school+96&sort=-district", "?page=77&sort=-name"):
        with CaptureQueriesContext(connection) as asked_for:
            page = listing(query).render(template, {}).content.decode()
        assert len(asked_for) == 2
        assert 0 < page.count("<tr>") - 1 <= PER_PAGE
        # The links to pages stay few.
        assert page.count("Page ") <= 10
    assert (
        "3951–4000 of 4000 schools"
        in listing("?page=80").render(template, {}).content.decode()
    )


def test_a_search_replaces_its_parameters_and_keeps_the_others(schools, template):
    query = "?school=7&q=lincoln&page=2&sort=-name"
    page = listing(query).render(template, {}).content.decode()
    # htmx appends the fields to an address that has parameters already.
    assert 'hx-get="/console/schools/"' in page
    form = page[page.index('<form class="search"') :]
    fields = re.findall(r'name="(\w+)" value="([^"]*)"', form[: form.index("</form>")])
    assert sorted(fields) == [("q", "lincoln"), ("school", "7"), ("sort", "-name")]


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("", ["Lincoln", "Roosevelt", "Adams"]),
        ("?sort=-length", ["Roosevelt", "Lincoln", "Adams"]),
        ("?sort=nothing", ["Lincoln", "Roosevelt", "Adams"]),
        ("?q=ROOS,+high", ["Roosevelt"]),
        ("?q=%00x", []),
    ],
)
def test_rows_in_memory_are_searched_and_sorted_alike(template, query, names):
    shown = ComputedListing(
        asked(query),
        ["Lincoln", "Roosevelt", "Adams"],
        text=lambda name: f"{name} High",
        sorts={"as given": lambda name: 0, "length": len},
    )
    assert shown.rows == list(shown.page.object_list) == names
    assert shown.order == ("descending" if "-" in query else "ascending")


def test_rows_in_memory_have_pages():
    shown = ComputedListing(
        asked("?page=2&sort=-number"),
        range(60),
        text=str,
        sorts={"number": lambda number: number},
    )
    assert list(shown.page.object_list) == list(range(9, -1, -1))
    assert shown.address_sorted_by("number") == "?sort=number"
