from __future__ import annotations

import json
import sys

import pytest

from provisioning.commands import Refusal
from provisioning.measure.jmeter import replay
from provisioning.tests.measure.load.conftest import server, survey_server  # noqa: F401
from provisioning.tests.measure.load.helpers import DESCRIBED, reply
from provisioning.tests.measure.load.test_access_log import line


@pytest.fixture
def log(tmp_path):
    log = tmp_path / "nginx-access.log"
    visit = ["GET /", "POST /", "GET /take/", "POST /take/pages/1/"]
    visit += [f"POST /take/pages/{page}/" for page in range(2, 11)]
    lines = [line(n, *request.split()) for n, request in enumerate(visit)]
    log.write_text("".join([*lines, "?\n", line(99, "GET", "/console/")]))
    return log


@pytest.fixture
def call(tmp_path, monkeypatch):
    """Call the command with a manage.py that makes up people."""
    manage = tmp_path / "manage"
    described = tmp_path / "described"
    described.write_text(json.dumps(DESCRIBED))
    manage.write_text(
        f"""#!/bin/sh
echo "$@" > {tmp_path}/calls
for option; do
    case $option in --codes=*) echo AAAA-BBBB-CCCC > "${{option#--codes=}}" ;; esac
done
cat {described}
"""
    )
    manage.chmod(0o755)

    def call(*arguments):
        options = ["--manage", str(manage), "--output", str(tmp_path / "results")]
        arguments = ["jmeter/replay", *options, *map(str, arguments)]
        monkeypatch.setattr(sys, "argv", arguments)
        return replay.main()

    return call


@pytest.mark.slow
def test_a_log_is_replayed_and_judged(call, log, survey_server, tmp_path, capsys):  # noqa: F811
    assert call(log, "--address", survey_server.address, "--speed", "2") == 0
    out = capsys.readouterr().out
    result = json.loads(out.splitlines()[-1])
    assert result["held"] is True
    assert (result["replayed"], result["people"], result["not_sent"]) == (13, 1, 0)
    assert result["skipped"] == {"broken": 1, "not of the survey": 1}
    assert result["samplers"]["survey_change_page"]["requests"] == 10
    # Views that the log lacks are not missed.
    assert "survey_complete" not in result["samplers"]
    assert "nginx-access.log:14: " in out
    assert json.loads((tmp_path / "results" / "result.json").read_text()) == result
    # The codes were a secret.
    assert [each.name for each in (tmp_path / "results").iterdir()] == ["result.json"]
    called = (tmp_path / "calls").read_text()
    assert "--unstarted --name=replay-10x5 --respondents=1 " in called


@pytest.mark.slow
def test_a_server_that_fails_is_no_success(call, log, survey_server, capsys):  # noqa: F811
    answer = survey_server.answer

    def fail(request, send):
        if b"/take/pages/10/" in request:
            send(reply(b"", "500 Error"))
        else:
            answer(request, send)

    survey_server.answer = fail
    assert call(log, "--address", survey_server.address) == 1
    result = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert result["failures"] == {"status 500": 1}
    assert result["missed"] == [
        "all rate_percent: 92.3, not 95",
        "survey_change_page error_percent: 10, not 0",
    ]


def test_only_this_machine_is_loaded(call, log, tmp_path):
    with pytest.raises(Refusal, match="only loopback can be loaded"):
        call(log, "--address", "http://192.0.2.1")
    assert not (tmp_path / "results").exists()


def test_a_log_of_something_else_is_refused(call, log, capsys):
    log.write_text("?\n" + line(1, "GET", "/console/"))
    with pytest.raises(Refusal, match="no request of a survey"):
        call(log)
    out = capsys.readouterr().out
    assert "2 lines; skipped: 1 broken, 1 not of the survey" in out


@pytest.mark.parametrize("moment", ["noon", "2026-11-22T12:00:00"])
def test_a_window_needs_time_zones(call, log, moment, capsys):
    with pytest.raises(SystemExit):
        call(log, "--begin", moment)
    assert "is no time with its zone" in capsys.readouterr().err
