from __future__ import annotations

import os

import pytest

from provisioning.commands import Refusal
from provisioning.installation.supervisor import Supervisor, workers_of
from provisioning.processes import children_of


def test_workers_are_the_children_of_their_pools_masters(parent):
    [child] = children_of(parent)
    programs = [
        {"group": "taking", "pid": parent},
        {"group": "taking", "pid": 0},
        {"group": "console", "pid": os.getpid()},
    ]
    assert set(workers_of(programs, "taking")) == {child}


def test_without_its_socket_a_supervisor_does_not_run(tmp_path):
    supervisor = Supervisor(tmp_path)
    assert not supervisor.is_running()
    with pytest.raises(Refusal, match="Nothing is running"):
        supervisor.refuse_unless_running()
