from __future__ import annotations

import argparse
import json
import socket
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from provisioning.commands import (
    ROOT,
    Refusal,
    conclude,
    fetch,
    listen,
    missed,
    output_of,
    port_number,
    positive_integer,
    print_table,
    reason,
    scratch_folder,
    seed_of,
    step,
    wait_until,
)


@pytest.mark.parametrize(
    ("raised", "status", "says"),
    [
        ("OSError(28, 'No space', '/x')", 1, "demo: The disk is full: /x\n"),
        ("OSError(13, 'No', '/x')", 1, "demo: Not writable for this user: /x\n"),
        ("OSError(30, 'No', '/x')", 1, "demo: Not writable for this user: /x\n"),
        ("commands.Refusal('The reason')", 1, "demo: The reason\n"),
        ("commands.Stopped(15)", 143, ""),
    ],
)
def test_a_command_that_fails_prints_one_line(raised, status, says):
    program = (
        "from provisioning import commands\n"
        f"def main(): raise {raised}\n"
        "raise SystemExit(commands.run_command('demo', main))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (status, says)


@pytest.mark.parametrize(
    ("output", "line"),
    [
        ("Reading\nE: Unable to locate package x\nW: old\n", "E: Unable to locate"),
        ("Traceback\n  File\nValueError: because\n", "ValueError: because"),
        ("ProgrammingError: no column\nLINE 1: SELECT\n  ^\n\n", "ProgrammingError"),
        ("OSError: [Errno 28] No space left on device\nmore", "the disk is full"),
        ("", "it gave no reason"),
    ],
)
def test_the_line_that_explains_a_failure_is_found(output, line):
    assert reason(output).startswith(line)


def test_a_command_that_fails_is_a_refusal_with_its_reason():
    program = "import sys; sys.exit('ERROR: no such table')"
    with pytest.raises(Refusal, match="The bench failed: ERROR: no such table"):
        output_of([sys.executable, "-c", program], failing="The bench failed")


def test_a_commands_output_is_returned():
    program = "import sys; print(sys.stdin.read().upper())"
    command = [sys.executable, "-c", program]
    assert output_of(command, failing="x", input_text="hello") == "HELLO\n"
    # Without a text it gets no terminal to ask back.
    assert output_of(command, failing="x") == "\n"


def test_a_step_prints_its_name_and_duration(capsys):
    with step("Counting"):
        pass
    assert capsys.readouterr().out.startswith("Counting ... 0.")


def test_a_failed_step_ends_its_line(capsys):
    with pytest.raises(Refusal), step("Counting"):
        raise Refusal("no")
    assert capsys.readouterr().out == "Counting ... \n"


def test_waiting_ends_as_soon_as_it_happened():
    answers = iter([False, False, True])
    assert wait_until(lambda: next(answers), seconds=60, pause=0)
    assert not wait_until(lambda: False, seconds=0.01, pause=0.001)


def test_columns_are_as_wide_as_their_cells(capsys):
    print_table(("server", "MB"), [("redis", 9), ("memcached", "1,024")])
    assert capsys.readouterr().out.splitlines() == [
        "server        MB",
        "redis          9",
        "memcached  1,024",
    ]


def test_columns_of_words_are_aligned_to_the_left(capsys):
    print_table(("route", "role", "ms"), [("home", "state", 9), ("x", "a", "10.5")])
    assert capsys.readouterr().out.splitlines() == [
        "route  role     ms",
        "home   state     9",
        "x      a      10.5",
    ]


def test_a_table_may_be_empty(capsys):
    print_table(("server", "MB"), [])
    assert capsys.readouterr().out == "server  MB\n"


def test_a_measurement_ends_with_its_figures_and_what_is_not_as_required(capsys):
    good, bad = {"per_s": 10, "lost": 0}, {"per_s": 9, "lost": 1}
    limits = {"least": {"per_s": 10}, "most": {"lost": 0}}
    assert conclude(good, missed(good, **limits)) == 0
    holds, figures = capsys.readouterr().out.splitlines()
    assert holds == "Every requirement holds"
    assert json.loads(figures) == {**good, "missed": [], "passed": True}
    assert conclude(bad, missed(bad, **limits)) == 1
    *sentences, figures = capsys.readouterr().out.splitlines()
    assert sentences == [
        "Not as required: per_s is 9, below 10",
        "Not as required: lost is 1, above 0",
        "NOT as required",
    ]
    assert json.loads(figures)["passed"] is False


def test_a_run_that_proves_nothing_is_void(capsys):
    assert conclude({"lost": 0}, [], void="nothing was read") == 2
    void, figures = capsys.readouterr().out.splitlines()
    assert void == "Void: nothing was read"
    assert json.loads(figures)["passed"] is False


@pytest.mark.parametrize("keep", [False, True])
def test_a_scratch_folder_is_deleted_unless_it_is_kept(tmp_path, capsys, keep):
    with pytest.raises(Refusal), scratch_folder(tmp_path, keep=keep) as folder:
        assert folder.stat().st_mode & 0o777 == 0o755
        raise Refusal
    assert folder.exists() is keep
    assert capsys.readouterr().out == (f"Logs are kept in {folder}\n" if keep else "")


def test_a_seed_is_repeated_or_drawn(capsys):
    assert seed_of(argparse.Namespace(seed=0)) == 0
    drawn = seed_of(argparse.Namespace(seed=None))
    assert capsys.readouterr().out == f"Seed 0\nSeed {drawn}\n"


def test_ports_and_counts_are_numbers():
    assert port_number("65535") == 65535
    assert positive_integer("1") == 1


@pytest.mark.parametrize("text", ["", "0", "65536", "-1", "x", "80 "])
def test_other_ports_are_refused(text):
    with pytest.raises(argparse.ArgumentTypeError, match="between 1 and 65535"):
        port_number(text)


@pytest.mark.parametrize("text", ["", "0", "-1", "1.5", "x"])
def test_other_counts_are_refused(text):
    with pytest.raises(argparse.ArgumentTypeError, match="number above 0"):
        positive_integer(text)


def without_option(port):
    return socket.create_server(("127.0.0.1", port))


def test_a_used_port_is_named():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(Refusal, match=f"Port {port} is taken .* --port"):
            listen(port)


@pytest.mark.parametrize(
    ("listening", "waits"), [(listen, False), (without_option, True)]
)
def test_the_second_half_of_a_reply_is_sent_at_once(listening, waits):
    """Accepted connections inherit the option; the second case is without it."""
    with (
        listening(0) as listener,
        socket.create_connection(listener.getsockname()),
        listener.accept()[0] as accepted,
    ):
        option = accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        assert (option == 0) == waits


@pytest.mark.parametrize("status", [200, 503])
def test_a_page_is_fetched_whatever_its_status(status):
    class Application(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(status)
            self.end_headers()
            self.wfile.write(self.path.encode())

        def log_message(self, *arguments):
            pass

    with HTTPServer(("127.0.0.1", 0), Application) as server:
        threading.Thread(target=server.handle_request, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/readyz"
        assert fetch(address) == (status, b"/readyz")


def test_a_page_that_nothing_serves_has_no_status():
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    assert fetch(f"http://127.0.0.1:{port}/") == (0, b"")
