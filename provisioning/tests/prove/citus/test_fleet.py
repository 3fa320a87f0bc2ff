"""Test the requirements of `provisioning/run cluster_fleet` and `cluster_restore`."""

from __future__ import annotations

import pytest
import yaml

from provisioning.installation.playbook import ANSIBLE
from provisioning.prove.citus import fleet_drill, restore_drill
from provisioning.prove.citus.fleet import WORKERS

TOOK_OVER = {
    **dict.fromkeys(fleet_drill.FORBIDDEN, 0),
    "seconds_without_worker": 9.1,
    "seconds_without_coordinator": 12.0,
    "nodes_with_answers": 2,
    "prepared": 0,
    "lost_in_control": 1,
    "differences": [],
}
RESTORED = {"transactions": 1, "equal": True, "transactions_in_control": 2}


def test_a_fleet_that_took_over_and_lost_nothing_misses_nothing():
    assert fleet_drill.shortcomings_of(TOOK_OVER) == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((name, 1) for name in fleet_drill.FORBIDDEN),
        ("seconds_without_worker", None),
        ("seconds_without_coordinator", None),
        ("nodes_with_answers", 1),
        ("prepared", 1),
        ("lost_in_control", 0),
        ("differences", ["survey_school has 2 rows instead of 3"]),
    ],
)
def test_each_figure_of_the_fleet_is_a_requirement(name, value):
    assert len(fleet_drill.shortcomings_of({**TOOK_OVER, name: value})) == 1


def test_nodes_of_one_transaction_miss_nothing():
    assert restore_drill.shortcomings_of(RESTORED) == []


@pytest.mark.parametrize(
    ("name", "value"),
    [("transactions", 2), ("equal", False), ("transactions_in_control", 1)],
)
def test_each_figure_of_a_restore_is_a_requirement(name, value):
    assert len(restore_drill.shortcomings_of({**RESTORED, name: value})) == 1


def test_the_drills_hosts_are_those_of_the_inventory():
    inventory = ANSIBLE / "inventories" / "citus.example" / "hosts.yml"
    written = yaml.safe_load(inventory.read_text())
    hosts = written["fleet"]["children"]["citus_workers"]["hosts"]
    for name, address in WORKERS.items():
        assert hosts[name] == {"ansible_host": address, "citus_node": int(name[4])}
