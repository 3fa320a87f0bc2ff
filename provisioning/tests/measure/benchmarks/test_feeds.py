"""What `provisioning/run feeds` says about doubled, withdrawn and missing people."""

from __future__ import annotations

import io

import pytest

from provisioning.commands import missed
from provisioning.measure.benchmarks.feed_rows import Person, compare_people, people_of
from provisioning.measure.benchmarks.feed_servers import (
    BREAKAGES,
    USUAL,
    DistrictServers,
)
from provisioning.measure.benchmarks.feeds import (
    limits_of,
    named,
    parse_options,
    print_night,
    rows_per_s,
)
from survey.people.rosters.oneroster.store import OneRosterInvalid, OneRosterStore
from survey.simulation.oneroster import SyntheticDistrict

DISTRICTS = 40


@pytest.fixture
def servers(tmp_path):
    servers = DistrictServers(tmp_path, DISTRICTS)
    for night in range(2):
        for number in servers.numbers:
            path = servers.path(number, night)
            path.parent.mkdir(exist_ok=True)
            SyntheticDistrict(number, 40, night=night, changed=0.5).write(path)
    servers.offer(0)
    return servers


@pytest.fixture
def truth(servers):
    return people_of(servers.path(1, 0))


def differences(truth, stored):
    return dict(+compare_people(truth, stored))


def test_people_who_are_stored_as_their_file_says_differ_in_nothing(truth):
    assert len(truth) > 20
    assert differences(truth, list(truth.items())) == {}


def test_a_person_with_a_second_id_is_doubled(truth):
    [(role, _), person], *_ = truth.items()
    stored = [*truth.items(), ((role, "another ID"), person)]
    assert differences(truth, stored) == {"duplicates": 1}


def test_a_person_who_has_left_and_is_still_invited_is_counted(servers, truth):
    after = people_of(servers.path(1, 1))
    left = truth.keys() - after.keys()
    assert left
    counts = differences(after, [*after.items(), *((key, truth[key]) for key in left)])
    assert counts == {"duplicates": len(left)}


def test_a_person_who_was_withdrawn_by_mistake_is_counted(truth):
    [first, person], *rest = truth.items()
    stored = [(first, person._replace(is_withdrawn=True)), *rest]
    assert differences(truth, stored) == {"wrong_withdrawals": 1}


def test_a_person_who_left_and_was_withdrawn_is_right(truth):
    left = (("student", "left"), Person("Maya Lopez", "", is_withdrawn=True))
    assert differences(truth, [*truth.items(), left]) == {}


def test_people_who_were_not_added_are_missing(truth):
    assert differences(truth, list(truth.items())[2:]) == {"missing": 2}


def test_a_change_that_was_not_applied_is_counted(truth):
    [first, person], *rest = truth.items()
    stored = [(first, person._replace(email="old@example.org")), *rest]
    assert differences(truth, stored) == {"outdated": 1}


def test_each_server_has_a_speed_of_its_own_within_the_limits(servers):
    faults = [district.faults for district in servers.districts.values()]
    latencies = sorted(each.latency for each in faults)
    bandwidths = sorted(each.bytes_per_second for each in faults)
    assert len(set(latencies)) > DISTRICTS / 2
    assert latencies[-1] <= USUAL.most_latency_s
    assert bandwidths[0] >= USUAL.fewest_bytes_per_s
    assert latencies[DISTRICTS // 2] == pytest.approx(USUAL.latency_s, rel=0.5)
    middle = bandwidths[DISTRICTS // 2]
    assert middle == pytest.approx(USUAL.bytes_per_s, rel=0.5)


def test_servers_that_hung_are_as_fast_as_before(servers):
    before = [district.faults for district in servers.districts.values()]
    servers.break_some()
    servers.set_speeds()
    assert [district.faults for district in servers.districts.values()] == before


def test_a_large_district_comes_after_the_others_with_two_nights(servers):
    number = servers.add_large(300)
    assert number == DISTRICTS + 1
    assert number not in servers.numbers
    servers.offer(1, [number])
    assert servers.path(number, 0).read_bytes() != servers.path(number, 1).read_bytes()
    assert servers.districts[f"{number}"].archive
    assert servers.offered[number] == servers.path(number, 1)


def test_one_in_twenty_servers_hangs_and_as_many_send_broken_files(servers):
    bad = servers.break_some()
    assert (len(bad.hanging), len(bad.broken), len(bad.all)) == (2, 2, 4)
    for number in servers.numbers:
        district = servers.districts[f"{number}"]
        is_whole = district.archive == servers.path(number, 0).read_bytes()
        assert is_whole == (number not in bad.broken)
        assert (district.faults.latency > 3600) == (number in bad.hanging)


@pytest.mark.parametrize("breakage", BREAKAGES)
def test_broken_files_are_refused(servers, tmp_path, breakage):
    archive = servers.path(1, 0).read_bytes()
    OneRosterStore(tmp_path / "whole.sqlite").load_zip(io.BytesIO(archive))
    store = OneRosterStore(tmp_path / "broken.sqlite")
    with pytest.raises(OneRosterInvalid):
        store.load_zip(io.BytesIO(breakage(archive)))


def test_a_bad_server_counts_as_named_only_with_a_message(servers):
    bad = servers.break_some()
    first, second, *_ = bad.all
    assert named(bad, {f"{first}": "It is broken.", f"{second}": "", "0": "No."}) == 1


GOOD = {
    "window_s": 60.0,
    "feeds": 10,
    "applied": 10,
    "named_bad": 2,
    "bad": 2,
    "bad_night_applied": 8,
    "bad_night_healthy": 8,
    "bad_night_exact": 10,
    "killed": 2,
    "duplicates": 0,
    "wrong_withdrawals": 0,
    "missing": 0,
    "outdated": 0,
    "saves_kept": 0.99,
    "rows_compared_per_s": 30_000.0,
    "memory_mb": 200.0,
}


def test_all_requirements_together_pass():
    assert missed(GOOD, **limits_of(GOOD)) == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("window_s", 1201.0),
        ("applied", 9),
        ("named_bad", 1),
        ("bad_night_applied", 7),
        ("bad_night_exact", 9),
        ("killed", 1),
        ("duplicates", 1),
        ("wrong_withdrawals", 1),
        ("missing", 1),
        ("outdated", 1),
        ("saves_kept", 0.97),
        ("rows_compared_per_s", 24_999.0),
        ("memory_mb", 250.1),
    ],
)
def test_a_missed_requirement_is_named(name, value):
    figures = {**GOOD, name: value}
    [sentence] = missed(figures, **limits_of(figures))
    assert sentence.startswith(f"{name} is {value}, ")


def test_quick_is_thirty_districts_unless_another_number_is_given():
    assert parse_options(["--quick"]).districts == 30
    assert parse_options(["--quick", "--districts=3"]).districts == 3
    assert parse_options([]).people == 2_000_000


STAGED = ("compare", "apply")
NIGHT = {
    "window_s": 12.0,
    "is_over": True,
    "states": {"applied": 2, "failed": 2, "held": 1},
    "stages": {
        "compare": {"seconds": 3.0, "rows": 90_000, "bytes": 10**6, "repeated": 1},
        "apply": {"seconds": 1.0, "rows": 1_000, "bytes": 0, "repeated": 0},
    },
    "failed": {"3": "It is broken.", "5": "It is broken."},
    "held": ["Too many would leave.", "Too many would leave."],
}


def test_rows_are_counted_by_the_second_of_comparing():
    assert rows_per_s(NIGHT) == 30_000
    # A night in which nothing was compared.
    assert rows_per_s({"stages": {}}) == 0


def test_a_night_is_printed_with_shares_and_each_message_once(capsys):
    print_night("Nightly scan", NIGHT)
    printed = capsys.readouterr().out
    assert "Nightly scan: 12.0 s; 2 applied, 2 failed, 1 held" in printed
    [compare, apply] = [
        line.split() for line in printed.splitlines() if line.startswith(STAGED)
    ]
    assert compare == ["compare", "3.0", "75", "%", "90,000", "30,000", "1.0", "1"]
    assert apply == ["apply", "1.0", "25", "%", "1,000", "1,000", "0.0", "0"]
    assert "  failed: 3, 5: It is broken.\n" in printed
    assert printed.count("held: Too many would leave.") == 1
    assert "not all scans ended" not in printed


def test_a_night_that_did_not_end_is_said(capsys):
    print_night("Nightly scan", {**NIGHT, "is_over": False})
    assert "not all scans ended in time" in capsys.readouterr().out
