"""The drill's fleet is the example's, with what an owner would change."""

from __future__ import annotations

import json
import subprocess

import pytest

from provisioning.commands import Refusal
from provisioning.installation.environment import PYTHON
from provisioning.prove.fleet.drill import KINDS
from provisioning.prove.fleet.inventory import (
    SHARED_FILES,
    balancer_configuration,
    differences,
    groups_of,
    write_inventory,
)
from provisioning.prove.fleet.start import KINDS as OFFERED


@pytest.fixture
def fleet(tmp_path):
    variables = differences(tmp_path, "git://10.0.0.1/groundswell")
    inventory = write_inventory(tmp_path, groups_of(), variables)
    ansible = PYTHON.with_name("ansible-inventory")
    done = subprocess.run(
        [ansible, f"--inventory={inventory}", "--list"],
        capture_output=True,
        check=True,
        env={"LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
    )
    return json.loads(done.stdout)


def test_ansible_reads_the_hosts_of_the_example(fleet):
    hosts = fleet["_meta"]["hostvars"]
    names = {"db1", "db2", "db3", "cache1", "queue1", "web1", "web2"}
    assert hosts.keys() == names | {"worker1", "worker2"}
    assert hosts["db2"]["ansible_host"] == "10.0.0.12"
    assert set(fleet["failover"]["hosts"]) == {"db1", "db2", "db3"}


def test_the_firewall_and_tls_of_the_example_stay_on(fleet):
    host = fleet["_meta"]["hostvars"]["cache1"]
    assert host["tls"] and host["encrypts"]
    assert {"group": "queue", "ports": [5671], "callers": ["web", "worker"]} in (
        host["guarded_ports"]
    )


def test_files_lie_where_the_hosts_reach_them(fleet):
    host = fleet["_meta"]["hostvars"]["web1"]
    assert (host["files_bucket"], host["files_shared"]) == ("", True)
    assert host["files_folder"] == SHARED_FILES


def test_an_unknown_variable_is_refused(tmp_path):
    with pytest.raises(Refusal, match="shared_bufers"):
        write_inventory(tmp_path, groups_of(), {"shared_bufers": "1GB"})


def test_the_balancer_asks_each_web_host_whether_it_is_ready():
    text = balancer_configuration(groups_of()["web"])
    assert "server web1 10.0.0.41:443 check port 8081\n" in text
    assert "server web2 10.0.0.42:443 check port 8081\n" in text


def test_each_kind_of_host_can_be_chosen():
    assert tuple(KINDS) == OFFERED
    # Nobody of the fleet is left out.
    assert groups_of().keys() - {"failover"} <= KINDS.keys()
