"""What `provisioning/feeds` says about people who are doubled, withdrawn or missing."""

from __future__ import annotations

import io

import pytest

from provisioning.benchmarks.feed_servers import (
    BREAKAGES,
    BYTES_PER_S,
    FEWEST_BYTES_PER_S,
    LATENCY_S,
    MOST_LATENCY_S,
    DistrictServers,
)
from provisioning.benchmarks.feed_truth import Person, compare_people, people_of
from provisioning.benchmarks.feeds import is_passed, named, parse_options
from survey.rosters.oneroster.store import OneRosterInvalid, OneRosterStore
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
    found = differences(after, [*after.items(), *((key, truth[key]) for key in left)])
    assert found == {"duplicates": len(left)}


def test_a_person_who_was_withdrawn_by_mistake_is_counted(truth):
    [first, person], *others = truth.items()
    stored = [(first, person._replace(is_withdrawn=True)), *others]
    assert differences(truth, stored) == {"wrong_withdrawals": 1}


def test_a_person_who_left_and_was_withdrawn_is_right(truth):
    left = (("student", "left"), Person("Maya Lopez", "", is_withdrawn=True))
    assert differences(truth, [*truth.items(), left]) == {}


def test_people_who_were_not_added_are_missing(truth):
    assert differences(truth, list(truth.items())[2:]) == {"missing": 2}


def test_a_change_that_was_not_applied_is_counted(truth):
    [first, person], *others = truth.items()
    stored = [(first, person._replace(email="old@example.org")), *others]
    assert differences(truth, stored) == {"outdated": 1}


def test_each_server_has_a_speed_of_its_own_within_the_limits(servers):
    faults = [district.faults for district in servers.districts.values()]
    latencies = sorted(each.latency for each in faults)
    speeds = sorted(each.bytes_per_second for each in faults)
    assert len(set(latencies)) > DISTRICTS / 2
    assert latencies[-1] <= MOST_LATENCY_S
    assert speeds[0] >= FEWEST_BYTES_PER_S
    assert latencies[DISTRICTS // 2] == pytest.approx(LATENCY_S, rel=0.5)
    assert speeds[DISTRICTS // 2] == pytest.approx(BYTES_PER_S, rel=0.5)


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
    "warm_jobs_per_s": 10.0,
    "process_jobs_per_s": 1.0,
    "separate_pools_s": 10.0,
    "one_pool_s": 20.0,
}


def test_all_requirements_together_pass():
    assert is_passed(GOOD)


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
        ("process_jobs_per_s", 6.0),
        ("separate_pools_s", 13.0),
    ],
)
def test_a_missed_requirement_does_not_pass(name, value):
    assert not is_passed({**GOOD, name: value})


def test_quick_is_thirty_districts_unless_another_number_is_given():
    assert parse_options(["--quick"]).districts == 30
    assert parse_options(["--quick", "--districts=3"]).districts == 3
    assert parse_options([]).people == 2_000_000
