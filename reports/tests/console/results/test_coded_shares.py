"""All 24 people of Lincoln feel safe: the page and the file say "over 87 %"."""

from __future__ import annotations

import csv
import io
import re
from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from accounts.models import PlaceSettings
from accounts.tests.logging_in import log_in
from reports.models import ResultsRollUp
from reports.releases.rollup import roll_up_results
from reports.results.visible import visible_groups
from reports.tests.exports.conftest import enrol_and_answer

pytestmark = pytest.mark.django_db


@pytest.fixture
def closed(staff, fall):
    """Ask 24 people of Lincoln, and 60 of Roosevelt of whom 2 do not know."""
    enrol_and_answer(fall, ((staff.lincoln, "07", {"safe": "1"}) for _ in range(24)))
    answers = ["1"] * 34 + ["2"] * 24 + ["-1"] * 2
    enrol_and_answer(
        fall, ((staff.roosevelt, "07", {"safe": option}) for option in answers)
    )
    fall.closes_at = timezone.now() - timedelta(hours=1)
    fall.save()
    roll_up_results(fall, release=True)
    return fall


def shown(client, staff, administration, school):
    """Return the cells of an item in the page's table, and its rows in the file."""
    log_in(client, staff.state)
    query = {"school": school.pk}
    text = client.get(reverse("results_page", args=[administration.pk]), query).text
    section = text[text.index('id="item-safe"') :]
    section = section[: section.index("</section>")]
    file = client.get(reverse("results_csv", args=[administration.pk]), query)
    rows = csv.DictReader(io.StringIO(file.content.decode("utf-8-sig")))
    return section, [
        row for row in rows if row["item"] == "safe" and row["place"] == school.name
    ]


def test_the_page_and_the_file_say_over_and_under(client, staff, closed):
    section, rows = shown(client, staff, closed, staff.lincoln)
    # Lincoln is the first of the columns.
    rows_of_table = section[section.index("<tbody>") :].split("</tr>")
    cells = re.findall(
        r'</th><td class="number">(.*?)</td>',
        "".join(re.sub(r"</th>\s*", "</th>", row) for row in rows_of_table),
    )
    cells = [cell.replace("\u00a0", " ") for cell in cells[:4]]
    assert cells == ["over 87 %", "under 13 %", "under 13 %", "24"]
    assert "100 %" not in section and "(24)" not in section and "(0)" not in section
    assert [(csv_row["people"], csv_row["percent"]) for csv_row in rows] == [
        *((">20", ">87"), ("<4", "<13"), ("<4", "<13"))
    ]
    assert all(csv_row["note"].startswith("< and > are bounds") for csv_row in rows)


@pytest.mark.usefixtures("exact_shares")
def test_without_coding_they_would_say_what_each_person_answered(client, staff, closed):
    section, rows = shown(client, staff, closed, staff.lincoln)
    assert "100 %" in section
    assert [(csv_row["people"], csv_row["percent"]) for csv_row in rows] == [
        *(("24", "100"), ("0", "0"), ("0", "0"))
    ]


def test_sums_are_of_exact_numbers_and_coded_afterwards(client, staff, closed):
    [state] = visible_groups(closed, [("state", 0)]).values()
    # 58, 24 and 2 of 84: 2.4 % are under 5 %, so that 24 of 84 are under 30 %.
    safe = state.items["safe"]
    assert safe.values == {"1": 58}
    assert {value: share.percent for value, share in safe.coded.items()} == {
        "2": 30,
        "-1": 30,
    }
    assert safe.coded_people == 26


def test_the_threshold_is_that_of_the_release(staff, closed):
    place = ("school", staff.roosevelt.pk)

    def coded():
        return visible_groups(closed, [place])[place].items["safe"].coded

    before = coded()
    assert {value: share.percent for value, share in before.items()} == {
        "1": 51,
        "2": 49,
        "-1": 49,
    }
    PlaceSettings.objects.create(coding_threshold=20)
    roll_up_results(closed, all_schools=True, release=True)
    assert coded() == before
    assert ResultsRollUp.objects.get().coding_threshold == 5


def test_until_the_release_it_is_the_states(staff, fall):
    PlaceSettings.objects.create(coding_threshold=10)
    enrol_and_answer(fall, ((staff.lincoln, "07", {"safe": "1"}) for _ in range(24)))
    roll_up_results(fall)
    assert ResultsRollUp.objects.get().coding_threshold == 10
    PlaceSettings.objects.update(coding_threshold=2)
    roll_up_results(fall)
    assert ResultsRollUp.objects.get().coding_threshold == 2
