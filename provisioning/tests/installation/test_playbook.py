from __future__ import annotations

import json

from provisioning.installation.playbook import (
    ansible_environment,
    playbook_command,
    why_failed,
)

FATAL = 'fatal: [here]: FAILED! => {"changed": true, "stderr": "x\\nERROR: no disk"}'


def test_the_failed_task_is_named_with_its_reason():
    lines = ["PLAY [Cache]\n", "TASK [cache : Start Redis] ***\n", FATAL]
    assert why_failed(lines) == "cache : Start Redis: ERROR: no disk"


def test_a_handler_may_fail_too():
    lines = ["RUNNING HANDLER [web : Reload nginx]", 'failed: [x] => {"msg": "no"}']
    assert why_failed(lines) == "web : Reload nginx: no"


def test_a_failure_without_json_is_shown_unchanged():
    assert why_failed(["TASK [x]", "fatal: [here]: oops"]) == "x: fatal: [here]: oops"
    assert why_failed(["TASK [x]", "fatal: [a] => {broken"]) == "x: {broken"


def test_an_error_outside_of_tasks_is_found():
    assert why_failed(["[ERROR]: no inventory\n", "more"]) == "[ERROR]: no inventory"
    assert why_failed([]) == "ansible-playbook does not start"


def test_variables_are_given_as_json():
    *_, name, value = playbook_command("--check", variables={"port": 1, "home": "/x"})
    assert name == "--extra-vars"
    assert json.loads(value) == {"port": 1, "home": "/x"}


def test_the_callers_own_settings_of_ansible_are_left_out(tmp_path, monkeypatch):
    monkeypatch.setenv("ANSIBLE_STDOUT_CALLBACK", "json")
    monkeypatch.setenv("DJANGO_SETTINGS_MODULE", "settings.test")
    variables = ansible_environment(tmp_path)
    assert "ANSIBLE_STDOUT_CALLBACK" not in variables
    assert "DJANGO_SETTINGS_MODULE" not in variables
    assert variables["ANSIBLE_HOME"] == str(tmp_path / "cache" / "ansible")
