"""What the playbook refuses before it writes a file."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from provisioning.ansible.plugins.filter.variables import (
    cluster_problem,
    host_names,
    host_problem,
    time_zone_problem,
    variable_problems,
)
from provisioning.installation.playbook import ANSIBLE
from provisioning.installation.stack_folder import environment_of
from provisioning.tests.installation.rendered_files import (
    play,
    render_fleet,
    render_web,
)


def refusal(render, folder, **variables):
    """Return what the playbook says; it must not have written a file."""
    with pytest.raises(AssertionError) as refused:
        render(folder, **variables)
    assert not list(folder.rglob("*.env"))
    assert not list(folder.rglob("supervisord.conf"))
    return str(refused.value)


@pytest.fixture(scope="module")
def web(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("web") / "here"
    variables = {"allowed_hosts": "survey.example.org, .other.example.org"}
    render_web(folder, time_zone="Pacific/Honolulu", **variables)
    return folder


def test_a_text_of_names_is_a_list_of_names(web):
    for program in ("taking", "console", "manage"):
        written = environment_of(web, program)
        assert written["GROUNDSWELL_HOSTS"] == "survey.example.org,.other.example.org"
        assert written["GROUNDSWELL_TIME_ZONE"] == "Pacific/Honolulu"


def test_the_application_sends_files_if_nginx_is_another_user(web):
    assert "FILES_ADDRESS=''" in (web / "etc/app/console.env").read_text()
    assert "/private-files/" not in (web / "etc/nginx/nginx.conf").read_text()


def test_a_missing_zone_and_a_malformed_host_are_refused_together(tmp_path):
    text = refusal(
        render_fleet, tmp_path, allowed_hosts="https://s.example.org", time_zone=""
    )
    assert "allowed_hosts: 'https://s.example.org' has a scheme" in text
    assert "time_zone: is not set" in text


def test_a_fleet_has_no_zone_unless_it_names_one(tmp_path):
    inventory = tmp_path / "fleet"
    shutil.copytree(ANSIBLE / "inventories" / "fleet.example", inventory)
    variables = inventory / "group_vars" / "fleet.yml"
    variables.write_text(variables.read_text().replace("time_zone:", "another:"))
    folder = {"home": str(tmp_path / "home"), "secrets": str(tmp_path / "secrets")}
    with pytest.raises(AssertionError, match="time_zone: is not set"):
        play(tmp_path, f"--inventory={inventory}", "--tags=files", **folder)
    assert not (tmp_path / "home").exists()


def test_an_unknown_zone_is_refused_with_a_close_one(tmp_path):
    text = refusal(render_web, tmp_path / "here", time_zone="America/Chicargo")
    assert "'America/Chicargo' is not a zone" in text
    assert "is it America/Chicago?" in text


def test_names_are_taken_apart_at_commas():
    assert host_names("a.example.org,b.example.org") == [
        "a.example.org",
        "b.example.org",
    ]
    assert host_names(["a.example.org"]) == ["a.example.org"]
    assert host_names("a") == ["a"]


@pytest.mark.parametrize(
    "name",
    [
        *("survey.example.org", ".example.org", "localhost", "127.0.0.1", "[::1]"),
        *("Survey-2.Example.org", "xn--mnchen-3ya.example"),
    ],
)
def test_names_that_browsers_may_ask_for(name):
    assert host_problem(name) == ""


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("", "empty"),
        ("https://s.example.org", "scheme"),
        ("s.example.org:8443", "port"),
        ("s.example.org/", "not the name"),
        ("s example.org", "not the name"),
        (" s.example.org", "not the name"),
        ("*", "has a *"),
        ("*.example.org", "has a *"),
        ("s.example.org.", "not the name"),
        (".", "not the name"),
        ("..example.org", "not the name"),
        ("-s.example.org", "not the name"),
        ("s_1.example.org", "not the name"),
        ("schüler.example.org", "not the name"),
        ("::1", "IPv6"),
        ("[127.0.0.1]", "not the name"),
        ("127.0.0.300", "not an address"),
        ("s.example.org'; x", "not the name"),
        ("s.example.org\n", "not the name"),
        ("a" * 64 + ".example.org", "not the name"),
    ],
)
def test_malformed_names(name, problem):
    assert problem in host_problem(name)


@pytest.mark.parametrize("nothing", ["", [], None, {}, 5])
def test_hosts_must_be_named(nothing):
    assert "allowed_hosts:" in variable_problems(nothing, "UTC")[0]


@pytest.mark.parametrize("zone", ["America/Chicago", "Asia/Kolkata", "UTC", "Etc/UTC"])
def test_zones_of_cities(zone):
    assert time_zone_problem(zone) == ""


@pytest.mark.parametrize(
    ("zone", "hint"),
    [
        ("america/chicago", "is it America/Chicago?"),
        ("America/New York", "is it America/New_York?"),
        ("America/Honolulu", "is it Pacific/Honolulu?"),
        ("denver", "is it America/Denver?"),
        ("America/Chicargo", "is it America/Chicago?"),
        ("Mars/Olympus", "such as"),
        ("US/Central", "such as"),
        ("CST6CDT", "such as"),
        ("", "is not set"),
        (None, "is not set"),
        ("America/../../etc/passwd", "not a zone"),
        ("x'; rm", "not a zone"),
    ],
)
def test_other_zones(zone, hint):
    assert hint in time_zone_problem(zone)


OF_FLEET = ["scope: groundswell"]
OF_NODE = ["scope: groundswell", "  group: 1"]
OF_PROGRAM = ["GROUNDSWELL_DISTRIBUTED=true"]


@pytest.mark.parametrize(
    ("deployed", "has_citus", "node"),
    [
        ([], False, 0),
        ([], True, 2),
        (OF_FLEET, False, 0),
        (OF_NODE, True, 1),
        (OF_NODE, True, "1"),
        (OF_PROGRAM, True, 0),
        # While a fleet becomes a cluster, programs are told last.
        (["GROUNDSWELL_DISTRIBUTED=false"], True, 0),
    ],
)
def test_hosts_that_stay_what_they_are_pass(deployed, has_citus, node):
    assert cluster_problem(deployed, has_citus, node) == ""


@pytest.mark.parametrize(
    ("deployed", "has_citus", "node", "problem"),
    [
        (OF_FLEET, True, 0, "serves as the only database"),
        (OF_NODE, True, 2, "has the rows of node 1"),
        (OF_NODE, False, 0, "give the inventory of its worker nodes too"),
        (OF_PROGRAM, False, 0, "give the inventory of its worker nodes too"),
    ],
)
def test_hosts_that_would_become_another_part_are_refused(
    deployed, has_citus, node, problem
):
    assert problem in cluster_problem(deployed, has_citus, node)
