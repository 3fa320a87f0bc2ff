from __future__ import annotations

from pathlib import Path

import pytest

from provisioning.commands import Refusal
from provisioning.measure.jmeter.jmeter_process import (
    address_towards,
    java_command,
    rmi_options,
    why_ended,
)


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        ("Creating\nError in plan\nAn error occurred", "Error in plan"),
        ("Cannot bind\n", "Cannot bind"),
        ("\n  only this\n", "only this"),
        ("10:00 INFO started\n10:01 ERROR port in use\n", "10:01 ERROR port in use"),
        ("", "it gave no reason"),
    ],
)
def test_the_first_error_tells_why_jmeter_ended(output, reason):
    assert why_ended(output) == reason


def test_the_last_error_tells_why_a_load_server_ended():
    log = (
        "10:01 ERROR JMeter: Giving up:\nCaused by: BindException: in use\n10:02 INFO\n"
    )
    assert why_ended(log, which=-1) == "Caused by: BindException: in use"


def test_a_long_reason_is_cut():
    assert len(why_ended("Error " + "x" * 1000)) == 300


def test_jmeter_writes_only_to_its_scratch_folder(tmp_path):
    command = java_command("java", Path("/opt/jmeter"), heap="1g", scratch=tmp_path)
    assert command[:3] == ["java", "-Xms256m", "-Xmx1g"]
    assert f"-Djava.io.tmpdir={tmp_path}" in command
    assert "/opt/jmeter/bin/ApacheJMeter.jar" in command
    settings = Path(command[command.index("-q") + 1]).read_text().splitlines()
    # No request is repeated silently.
    assert "httpclient4.retrycount=0" in settings


def test_load_servers_need_the_keystore(tmp_path):
    with pytest.raises(Refusal, match="is not there"):
        rmi_options(tmp_path / "missing.p12", address="127.0.0.1")
    keystore = tmp_path / "key.p12"
    keystore.touch()
    options = rmi_options(keystore, address="127.0.0.1")
    assert "-Djava.rmi.server.hostname=127.0.0.1" in options
    assert f"-Jserver.rmi.ssl.truststore.file={keystore}" in options


def test_a_local_load_server_calls_back_on_loopback():
    assert address_towards("127.0.0.1") == "127.0.0.1"
