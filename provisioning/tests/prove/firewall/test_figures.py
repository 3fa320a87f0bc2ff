"""Test how rounds of the firewall's measurement become figures and a verdict."""

from __future__ import annotations

import os
import socket

from provisioning.commands import missed
from provisioning.prove.firewall.__main__ import (
    ALL_TRACKED,
    AS_WRITTEN,
    LEAST,
    MOST,
    NO_RULES,
    summarise,
)
from provisioning.prove.firewall.network import entry, waiting_places
from provisioning.prove.firewall.start import arguments

GOOD = {"saves_ratio": 0.97, "full_kept": 1.0, "full_servers": 1.0}
GOOD |= {"full_servers_control": 0.0, "full_new": 0.0}


def test_sets_of_rules_are_compared_within_their_round():
    # The machine was half as fast in the second round.
    speeds = {
        NO_RULES: [1000.0, 500.0, 900.0],
        ALL_TRACKED: [900.0, 450.0, 810.0],
        AS_WRITTEN: [950.0, 475.0, 855.0],
    }
    names = ("saves_per_s", "saves_per_s_idle")
    names += ("connections_per_s", "connections_per_s_idle")
    readings = {rules: dict.fromkeys(names, each) for rules, each in speeds.items()}
    summary = summarise(readings)
    assert summary["saves_ratio"] == summary["connections_ratio_idle"] == 0.95
    assert summary["saves_ratio_control"] == 0.9
    assert summary[NO_RULES]["saves_per_s"] == 900


def test_a_control_that_stops_no_server_proves_nothing():
    assert missed(GOOD, least=LEAST, most=MOST) == []
    harmless = GOOD | {"full_servers_control": 1.0}
    assert len(missed(harmless, least=LEAST, most=MOST)) == 1
    assert len(missed(GOOD | {"full_kept": 0.9}, least=LEAST, most=MOST)) == 1
    assert len(missed(GOOD | {"saves_ratio": 0.8}, least=LEAST, most=MOST)) == 1


def test_connections_that_fill_the_table_differ():
    entries = {entry(number) for number in range(0, 262_144, 127)}
    assert len(entries) == len(range(0, 262_144, 127))


def test_a_socket_has_room_for_its_backlog_and_one_more():
    assert waiting_places(5) == 6
    # And no name is left behind.
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"\0groundswell-{os.getpid()}")


def test_options():
    options = arguments(["--rounds", "2", "--seconds", "1.5"])
    assert (options.rounds, options.seconds, options.idle) == (2, 1.5, 6000)
