"""The free space of the disk, and the certificate that nginx serves."""

from __future__ import annotations

import os
import socket
import threading
import time
from contextlib import contextmanager, suppress

import pytest

from settings.monitoring import hosts
from settings.monitoring.answers import NOT_SET_UP
from settings.monitoring.dependency_checks import run_check
from settings.monitoring.hosts import (
    read_certificate,
    read_connection_table,
    read_disk,
)
from survey.tests.rosters.feeds.servers import certificate

DAY = 24 * 60 * 60


def samples(answer):
    return {name: value for name, value, _labels in answer.samples}


def test_the_disk_of_files_is_measured(settings, tmp_path):
    settings.FILES_FOLDER = str(tmp_path)
    disk = os.statvfs(tmp_path)
    read = samples(read_disk())
    assert read["disk_bytes"] == disk.f_blocks * disk.f_frsize
    assert 0 < read["disk_free_bytes"] <= read["disk_bytes"]


def test_a_folder_that_is_missing_has_no_figures(settings, tmp_path):
    settings.FILES_FOLDER = str(tmp_path / "missing")
    assert run_check(read_disk).samples == []


def test_the_kernels_table_of_connections_is_measured(tmp_path, monkeypatch):
    monkeypatch.setattr(hosts, "CONNECTION_TABLE", tmp_path)
    # Without the module.
    assert read_connection_table() is NOT_SET_UP
    (tmp_path / "nf_conntrack_count").write_text("1743\n")
    (tmp_path / "nf_conntrack_max").write_text("262144\n")
    read = samples(read_connection_table())
    assert read == {"conntrack_entries": 1743, "conntrack_limit": 262_144}


@contextmanager
def tls_server(context):
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with suppress(OSError):
                accepted, _address = listener.accept()
                context.wrap_socket(accepted, server_side=True).close()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listener.getsockname()[1]
        thread.join(5)


@pytest.mark.parametrize(("host", "days"), [("*", 9), ("127.0.0.1", -3)])
def test_the_end_of_the_served_certificate_is_measured(settings, tmp_path, host, days):
    context, _authority = certificate(tmp_path, "survey.example", days=days)
    with tls_server(context) as port:
        settings.TLS_LISTEN = f"{host}:{port}"
        read = samples(run_check(read_certificate))
    ends = read["certificate_timestamp_seconds"]
    assert ends == pytest.approx(time.time() + days * DAY, abs=60)


def test_without_tls_there_is_no_certificate(settings):
    assert read_certificate() is NOT_SET_UP
    # A server that is away has no sample either.
    settings.TLS_LISTEN = "127.0.0.1:9"
    assert run_check(read_certificate).samples == []
