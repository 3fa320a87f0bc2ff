from __future__ import annotations

import io
import json

import pytest
from django.core.management import call_command

from survey.simulation.oneroster import SyntheticDistrict, district_sizes
from survey.tests.rosters.oneroster.archives import people

PEOPLE = 3000


def content(**options):
    file = io.BytesIO()
    SyntheticDistrict(7, PEOPLE, **options).write(file)
    return file


def test_a_synthetic_district_is_a_valid_oneroster_file(store):
    report = store.load_zip(content())
    [note] = report.notes
    assert "passwords are never kept" in note
    rows = people(store)
    roles = [role for _, role in rows]
    assert roles.count("student") == pytest.approx(0.82 * PEOPLE, rel=0.05)
    assert roles.count("teacher") == pytest.approx(0.07 * PEOPLE, rel=0.2)
    assert roles.count("parent") > 0.06 * PEOPLE
    students = [row for (_, role), row in rows.items() if role == "student"]
    assert all(
        row["Class"] and row["Grade"] and row["Birth date"] and row["School code"]
        for row in students
    )
    assert 2 <= len({row["School code"] for row in students}) <= 5
    assert {row["District code"] for row in rows.values()} == {"D00007"}


def test_the_same_options_give_the_same_bytes():
    assert content().getvalue() == content().getvalue()
    assert content().getvalue() != content(seed=2).getvalue()


def test_one_percent_changes_in_a_night(store):
    store.load_zip(content())
    before = people(store)
    store.load_zip(content(night=1))
    after = people(store)
    share = PEOPLE / 100
    assert 0 < len(before.keys() - after.keys()) < share
    assert 0 < len(after.keys() - before.keys()) < share
    changed = [key for key in before.keys() & after.keys() if before[key] != after[key]]
    assert 0 < len(changed) < share
    store.load_zip(content(night=2))
    # The second night builds upon the first one.
    assert len(after.keys() - people(store).keys()) < share


def test_districts_differ_in_size_and_add_up():
    sizes = district_sizes(900, 2_000_000)
    assert sum(sizes) == pytest.approx(2_000_000, rel=0.001)
    assert 30_000 < max(sizes) < 40_000 and 1000 < sorted(sizes)[450] < 2000


def test_the_command_writes_one_zip_per_district(tmp_path, capsys):
    call_command("make_oneroster", tmp_path / "a", districts=3, people=600, processes=2)
    call_command("make_oneroster", tmp_path / "b", "--changed=1%", "--people=200")
    first, second = map(json.loads, capsys.readouterr().out.splitlines())
    assert (first["districts"], second["districts"]) == (3, 1)
    names = [path.name for path in sorted((tmp_path / "a").iterdir())]
    assert names == [f"district-0000{number}.zip" for number in (1, 2, 3)]
