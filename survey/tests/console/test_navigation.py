"""The menu and the path of the console's pages say where a reader is."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from accounts.tests.logging_in import log_in

pytestmark = pytest.mark.django_db


def current(html: str) -> list[str]:
    links = re.findall(r"<a [^>]*aria-current=\"(?:page|true)\">(.*?)</a>", html)
    return [re.sub(r"<.*>", "", entry) for entry in links]


@pytest.mark.parametrize(
    ("address", "entry"),
    [
        ("", ["Home"]),
        ("administrations/", ["Surveys", "Survey rounds"]),
        ("waves/", ["Surveys", "Seasons"]),
        ("platforms/new/", ["Surveys"]),
        ("exports/", ["Surveys", "Exports"]),
        ("merges/", ["Schools"]),
        ("schools/import/", ["Schools"]),
        ("settings/calendar/", ["Settings", "Calendar"]),
        ("audit/", ["Activity"]),
    ],
)
def test_the_menu_marks_the_section_and_page(client: Client, staff, address, entry):
    log_in(client, staff.state)
    html = client.get(f"/console/{address}").content.decode()
    assert current(html) == entry


@pytest.mark.parametrize(
    ("address", "step"),
    [
        ("administrations/{}/", ["Overview"]),
        ("administrations/{}/questionnaire/", ["Questions"]),
        ("administrations/{}/people/", ["People"]),
        ("administrations/{}/cards/", ["Invitations"]),
        ("rates/?administration={}", ["Live"]),
    ],
)
def test_pages_of_a_survey_round_show_its_steps(
    client: Client, staff, administration, address, step
):
    log_in(client, staff.state)
    html = client.get(f"/console/{address.format(administration.pk)}").content.decode()
    tabs = re.search(r'<nav class="tabs".*?</nav>', html, re.DOTALL)
    names = re.findall(r"<li><a [^>]*>(.*?)</a>", tabs[0])
    # Results come after the closing.
    assert names == ["Overview", "Questions", "People", "Invitations", "Live"]
    assert [name for name in current(tabs[0]) if name in names] == step
    # The tabs stay where they are: above them is the path, on every page.
    assert crumbs_of(html)[:2] == ["Survey rounds", administration.title]


def crumbs_of(html: str) -> list[str]:
    nav = re.search(r'<nav class="crumbs".*?</nav>', html, re.DOTALL)
    return re.findall(r"<li[^>]*>(?:<a [^>]*>)?(.*?)<", nav[0]) if nav else []


def path_of(client: Client, address: str) -> list[str]:
    return crumbs_of(client.get(f"/console/settings/{address}").content.decode())


def test_the_path_of_settings_begins_with_the_own_place(client: Client, staff):
    lincoln = staff.lincoln
    school = f"schools/{lincoln.pk}/"
    log_in(client, staff.state)
    assert path_of(client, "state/") == []
    assert path_of(client, "state/contact/") == ["Settings", "Contact person"]
    assert path_of(client, school) == ["Settings", "Riverside", lincoln.name]
    log_in(client, staff.dana)
    assert path_of(client, f"{school}contact/") == [
        "Settings",
        lincoln.name,
        "Contact person",
    ]
    log_in(client, staff.chen)
    assert path_of(client, f"{school}contact/") == ["Settings", "Contact person"]
