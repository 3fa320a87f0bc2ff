"""Test which pages `provisioning/run pages` finds; the command itself times them."""

from __future__ import annotations

import pytest
from django.http import HttpResponse
from django.test import Client
from django.urls import include, path

from accounts.access import anyone
from accounts.tests.conftest import staff  # noqa: F401
from accounts.tests.logging_in import log_in
from provisioning.measure.benchmarks import page_walk
from provisioning.measure.benchmarks.pages import PageTime, print_pages

pytestmark = pytest.mark.django_db


@anyone
def breaks(request):
    raise RuntimeError("this page is broken")


@anyone
def leads_there(request):
    return HttpResponse('<a href="broken/#here">there</a><a href="/elsewhere">out</a>')


urlpatterns = [
    path("console/", leads_there, name="console_home"),
    path("console/broken/", breaks, name="broken"),
    path("", include("settings.urls")),
]


def test_the_walk_finds_the_consoles_pages(staff):  # noqa: F811
    pages = list(page_walk.followed(log_in(Client(), staff.state)))

    routes = {route for route, *_ in pages}
    assert {
        "console_home",
        "rates_board",
        "administration_open",
        "roster_list",
        "survey_upload",
        "export_new",
        "membership_detail",
    } <= routes
    assert "account_logout" not in routes
    assert {status for _, _, status, _ in pages} <= {200, 302}


def test_the_walk_visits_a_route_three_times_at_most(staff):  # noqa: F811
    routes = [route for route, *_ in page_walk.followed(log_in(Client(), staff.state))]

    assert max(map(routes.count, routes)) == 3


@pytest.mark.urls("provisioning.tests.measure.benchmarks.test_pages")
def test_a_page_with_an_error_is_bad_at_any_speed(capsys):
    client = Client(raise_request_exception=False)
    pages = list(page_walk.timed_pages(client, "nobody", 1))

    assert [(page.route, page.status) for page in pages] == [
        ("console_home", 200),
        ("broken", 500),
    ]
    home, broken = pages
    assert broken.is_bad(bound=10_000) and not home.is_bad(bound=10_000)
    assert print_pages(pages, bound=10_000) == 1
    assert "500 at /console/broken/" in capsys.readouterr().out


def test_a_page_slower_than_the_bound_is_bad(capsys):
    page = PageTime("slow", "analyst", "/", 200, 100.1, 4, 9000)

    assert print_pages([page], bound=100) == 1
    assert capsys.readouterr().out.splitlines()[1].startswith("! slow")
    assert not page._replace(median=99.9).is_bad(bound=100)
