"""`jmeter/run`: a rehearsal with JMeter, judged by its service levels."""

from __future__ import annotations

import argparse
import csv
import ipaddress
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from provisioning import jmeter_cpu
from provisioning.commands import (
    ROOT,
    Refusal,
    end_with_parent,
    output_of,
    run_command,
    step,
)
from provisioning.jmeter_levels import (
    arrivals,
    figures,
    judge,
    rate_between,
    read_levels,
    table,
)
from provisioning.jmeter_load import Load, bell, day, mean_pages, read_properties
from provisioning.run_jmeter_install import cache_folder, prepare_java, prepare_jmeter

PLAN = ROOT / "jmeter" / "survey.jmx"
LEVELS = ROOT / "jmeter" / "slo.json"
RESULTS = ROOT / ".jmeter"
STACK_MANAGE = str(ROOT / "provisioning" / "stack") + " manage"
# What JMeter may take longer than its schedule: to start, to write the
# dashboard of a million samples.
GRACE = 120
# Arrivals are drawn: a few more come than were computed.
SPARE = 1.1
DEFAULT_THINK = 3.0
USUAL_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Data:
    """The files of `manage.py jmeter_data`."""

    codes: Path
    pages: Path


def main() -> int:
    options = _parser().parse_args()
    return 0 if run(options) else 1


def run(options: argparse.Namespace) -> bool:
    """Whether every level was held; prints the table and the JSON line."""
    check_target(options)
    levels = read_levels(options.slo, options.shape)
    java, home = prepare_java(), prepare_jmeter()
    output = _new_folder(options)
    with ExitStack() as tidy:
        data = _given(options) or _made(options, output, tidy)
        load = _load(options, mean_pages(read_properties(data.pages)))
        _check_enough(data.codes, load, options.remote)
        print(f"{load}; {options.rate:g} requests a second are asked for", flush=True)
        _write_properties(output / "run.properties", options, data, load)
        _write_plan(output / "plan.jmx", options)
        with step(f"Running for {load.seconds:.0f} s"):
            began, spent, elapsed = _drive(java, home, output, load, options)
    return _report(output, options, load, levels, began, spent, elapsed)


# The command line


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="jmeter/run",
        description="Sends people through a survey with JMeter, for a rate of requests"
        " a second; writes its results and the HTML dashboard to .jmeter/<time>/, and"
        " judges them by jmeter/slo.json. Exits with 1 when a level was missed. The"
        " last line is one JSON object. The people are made up in the running stack"
        " (open_rehearsal), unless --administration or --codes and --pages are given.",
        epilog="Shapes: in a day people keep coming, and the rate is counted while as"
        " many leave as come. At the bell everybody comes within seconds: classes of"
        " 30, who are busy for --duration; the rate is that of all of them.",
    )
    add_arguments(parser)
    parser.add_argument("--rate", type=positive, required=True, help="requests/s")
    parser.add_argument(
        "--output", type=called_path, help="a new folder for the results"
    )
    return parser


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the ladder takes as well."""
    add = parser.add_argument
    add("--host", default="127.0.0.1", help="instead of 127.0.0.1")
    add("--port", type=_port, default=8080, help="instead of 8080")
    add("--protocol", choices=("http", "https"), default="http")
    add("--duration", type=positive, default=60, help="seconds at the rate, not 60")
    add("--shape", choices=("day", "bell"), default="day")
    add("--think", type=positive, help="seconds on a page in a day, instead of 3")
    add("--ramp", type=positive, default=10.0, help="seconds, in a day: 10")
    add("--within", type=positive, default=20.0, help="seconds, at the bell: 20")
    add("--administration", help="a rehearsal that is open: its people answer")
    add("--survey-pages", type=_count, default=10, help="of a made-up survey: 10")
    add("--survey-items", type=_count, default=5, help="on each of its pages: 5")
    add("--codes", type=called_path, help="the CSV file of manage.py jmeter_data")
    add(
        "--pages", type=called_path, help="the properties file of manage.py jmeter_data"
    )
    add("--manage", default=STACK_MANAGE, help="instead of: provisioning/stack manage")
    add("--slo", type=called_path, default=LEVELS, help="instead of jmeter/slo.json")
    add("--heap", default="2g", help="of JMeter, at most; instead of 2g")
    add("--influxdb", metavar="URL", help="sends figures there while it runs")
    add(
        "--remote",
        type=_remotes,
        default=[],
        metavar="HOST[:PORT],…",
        help="load servers on which jmeter/server runs; needs --codes and --pages",
    )
    add("--keystore", type=called_path, help="for load servers that are elsewhere")
    add(
        "--elsewhere",
        action="store_true",
        help="the target is not this machine, and you may load it",
    )


def called_path(text: str) -> Path:
    """As seen from where the command was called, not from the checkout."""
    return Path(os.environ.get("CALLED_FROM", ".")) / text


def positive(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0
    if not 0 < number < 1_000_000:
        raise argparse.ArgumentTypeError(f"{text} is not a number above 0")
    return number


def _count(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text} is not a number above 0")
    return int(text)


def _port(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 65535:
        raise argparse.ArgumentTypeError(f"{text} is not between 1 and 65535")
    return int(text)


def _remotes(text: str) -> list[str]:
    servers = [one.strip() for one in text.split(",")]
    if not all(re.fullmatch(r"[\w.-]+(:\d+)?", one) for one in servers):
        raise argparse.ArgumentTypeError(f"{text} is no list of servers: a,b:1099")
    return servers


# What is refused


def check_target(options: argparse.Namespace) -> None:
    """Load goes to this machine only, unless somebody says that it may."""
    if bool(options.codes) != bool(options.pages):
        raise Refusal("--codes and --pages belong together")
    if options.remote and not options.codes:
        raise Refusal("--remote needs the --codes and --pages that its servers have")
    far = [one for one in _hosts(options) if not is_loopback(one)]
    if far and not options.elsewhere:
        raise Refusal(
            f"{far[0]} is not this machine: --elsewhere says that you may load it"
        )
    if any(not is_loopback(one) for one in _servers(options)) and not options.keystore:
        raise Refusal("Load servers elsewhere need --keystore (see jmeter/README.md)")


def _hosts(options: argparse.Namespace) -> list[str]:
    return [options.host, *_servers(options)]


def _servers(options: argparse.Namespace) -> list[str]:
    return [one.split(":")[0] for one in options.remote]


def is_loopback(host: str) -> bool:
    try:
        found = socket.getaddrinfo(host, None)
    except OSError:
        raise Refusal(f"No address is known for {host}") from None
    return all(ipaddress.ip_address(one[4][0]).is_loopback for one in found)


def _check_enough(codes: Path, load: Load, remote: Sequence[str]) -> None:
    with codes.open(encoding="utf-8", newline="") as file:
        people = sum(1 for row in csv.reader(file) if row) - 1
    if people < load.people:
        raise Refusal(
            f"{people:,} people are waiting, and {load.people:,} would come: lower"
            " --rate or --duration, or add people"
        )


# Data


def _given(options: argparse.Namespace) -> Data | None:
    if not options.codes:
        return None
    for path in (options.codes, options.pages):
        if not path.is_file():
            raise Refusal(f"{path} is not there")
    return Data(options.codes.absolute(), options.pages.absolute())


def _made(options: argparse.Namespace, output: Path, tidy: ExitStack) -> Data:
    """By jmeter_data of the installation, for as many people as will come."""
    data = Data(output / "codes.csv", output / "pages.properties")
    name, people = options.administration, ""
    if name is None:
        pages, items = options.survey_pages, options.survey_items
        name = f"jmeter-{pages}x{items}"
        people = str(round(_load(options, pages).people * SPARE) + 20)
        with step(f"Making up {int(people):,} people"):
            _manage(
                options,
                *("open_rehearsal", "--name", name, "--respondents", people),
                *("--pages", str(pages), "--items", str(items), "--unstarted"),
            )
    with step("Writing their codes and answers"):
        # Whoever has the codes can answer for these people.
        tidy.callback(data.codes.unlink, missing_ok=True)
        _manage(
            options,
            *("jmeter_data", "--administration", name),
            *("--codes", str(data.codes), "--pages", str(data.pages)),
            *(("--limit", people) if people else ()),
        )
    return data


def _manage(options: argparse.Namespace, *arguments: str) -> None:
    output_of(
        [*shlex.split(options.manage), *arguments], failing=f"{arguments[0]} failed"
    )


def _load(options: argparse.Namespace, pages: float) -> Load:
    if options.shape == "bell":
        return bell(
            rate=options.rate,
            duration=options.duration,
            pages=pages,
            within=options.within,
        )
    return day(
        rate=options.rate,
        duration=options.duration,
        pages=pages,
        think=options.think or DEFAULT_THINK,
        ramp=options.ramp,
    )


def _new_folder(options: argparse.Namespace) -> Path:
    name = time.strftime("%Y%m%d-%H%M%S")
    output: Path = (options.output or RESULTS / name).absolute()
    try:
        output.mkdir(mode=0o700, parents=True)
    except FileExistsError:
        raise Refusal(f"{output} is there already") from None
    return output


def _write_properties(
    path: Path, options: argparse.Namespace, data: Data, load: Load
) -> None:
    port = f":{options.port}"
    usual = options.port == USUAL_PORTS[options.protocol]
    own = {
        "protocol": options.protocol,
        "host": options.host,
        "port": str(options.port),
        "origin": f"{options.protocol}://{options.host}{'' if usual else port}",
        **load.properties(servers=max(1, len(options.remote))),
    }
    if options.influxdb:
        own["influxdb"] = options.influxdb
    if not options.remote:
        # A load server was told of its own codes when it was started.
        own["codes"] = str(data.codes.with_suffix(""))
    lines = [f"{name}={value}\n" for name, value in own.items()]
    path.write_text("".join(lines) + data.pages.read_text(encoding="ascii"))


def _write_plan(path: Path, options: argparse.Namespace) -> None:
    text = PLAN.read_text(encoding="utf-8")
    if options.influxdb:
        text = text.replace(' enabled="false"', "")
    path.write_text(text, encoding="utf-8")


# JMeter

SETTINGS = {
    # No port of its own to be stopped by, and no wait for idle threads.
    "jmeterengine.nongui.port": "0",
    "summariser.interval": "10",
    # The dashboard's percentiles: of all samples, not of the last 20,000.
    "aggregate_rpt_pct1": "50",
    "aggregate_rpt_pct2": "95",
    "aggregate_rpt_pct3": "99",
    "jmeter.reportgenerator.statistic_window": "-1",
    "jmeter.reportgenerator.overall_granularity": "1000",
    "jmeter.reportgenerator.report_title": "Groundswell",
    # Columns that nobody reads cost the processor that is measured.
    "jmeter.save.saveservice.url": "false",
    "jmeter.save.saveservice.data_type": "false",
    "jmeter.save.saveservice.idle_time": "false",
    # Nothing is sent twice in secret. But whoever read a page for longer than
    # the server keeps a connection takes a new one, as a browser does.
    "httpclient4.retrycount": "0",
    "httpclient4.validate_after_inactivity": "900",
}


def java_command(java: str, home: Path, *, heap: str, scratch: Path) -> list[str]:
    """JMeter without a window; its folder is only read."""
    return [
        java,
        "-Xms256m",
        f"-Xmx{heap}",
        # One thread a person; none needs more than a little stack.
        "-Xss256k",
        "-XX:+UseSerialGC",
        "-Djava.awt.headless=true",
        f"-Djava.util.prefs.userRoot={scratch}",
        f"-Djava.io.tmpdir={scratch}",
        "-jar",
        str(home / "bin" / "ApacheJMeter.jar"),
        *(f"-J{name}={value}" for name, value in SETTINGS.items()),
    ]


def rmi_options(keystore: Path | None, *, address: str) -> list[str]:
    """Only who has the keystore can speak to this JMeter, at this address.

    Without TLS it would listen on every address, and run whatever it is sent.
    """
    path = (keystore or own_keystore()).absolute()
    if not path.is_file():
        raise Refusal(f"{path} is not there")
    options = [f"-Djava.rmi.server.hostname={address}"]
    for store in ("keystore", "truststore"):
        options.append(f"-Jserver.rmi.ssl.{store}.file={path}")
        options.append(f"-Jserver.rmi.ssl.{store}.type=PKCS12")
    return options


def own_keystore() -> Path:
    """For load servers on this machine; readable by its owner only."""
    path = cache_folder() / "load-servers.p12"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f"{path.name}.{os.getpid()}")
        command = ["keytool", "-genkeypair", "-alias", "rmi", "-keyalg", "RSA"]
        command += ["-keysize", "2048", "-validity", "3650", "-storetype", "PKCS12"]
        # The file is the secret; this is the password that JMeter expects.
        command += ["-dname", "CN=load server", "-storepass", "changeit"]
        output_of([*command, "-keystore", draft], failing="keytool can't make a key")
        draft.chmod(0o600)
        draft.rename(path)
    return path


def _drive(
    java: str, home: Path, output: Path, load: Load, options: argparse.Namespace
) -> tuple[float, dict[str, float], float]:
    """The start (s, epoch), and CPU by program and the time that it counts."""
    scratch = output / "scratch"
    scratch.mkdir()
    command = java_command(java, home, heap=options.heap, scratch=scratch)
    command += ["-n", "-t", "plan.jmx", "-l", "results.csv", "-j", "jmeter.log"]
    command += ["-e", "-o", "dashboard", "-q", "run.properties"]
    if options.remote:
        command += rmi_options(options.keystore, address=_own_address(options))
        command += ["-G", "run.properties", "-R", ",".join(options.remote)]
    log = output / "output.txt"
    with log.open("w") as file:
        # Inherited by nobody: it ends with this command, however that ends.
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            cwd=output,
            start_new_session=True,
            preexec_fn=end_with_parent(signal.SIGKILL),
        )
        try:
            return _watch(process, log, load)
        finally:
            _stop(process)
            shutil.rmtree(scratch, ignore_errors=True)


def _own_address(options: argparse.Namespace) -> str:
    """The address by which the load servers call back."""
    server = _servers(options)[0]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        # Nothing is sent: it only asks which way leads there.
        probe.connect((server, 9))
        address: str = probe.getsockname()[0]
        return address


def _watch(
    process: subprocess.Popen, log: Path, load: Load
) -> tuple[float, dict[str, float], float]:
    deadline = time.monotonic() + load.seconds + GRACE
    began = _wait_for(process, log, r"Starting .* \((\d{13})\)", deadline)
    start = int(began) / 1000
    _sleep_until(start + load.begins, process)
    before, since = jmeter_cpu.look(), time.monotonic()
    _sleep_until(start + load.ends, process)
    spent = jmeter_cpu.used(before, jmeter_cpu.look())
    elapsed = time.monotonic() - since
    # Its threads are kept for a minute after the last person left, and it is
    # not waited for.
    _wait_for(process, log, r"(end of run)", deadline)
    return start, spent, elapsed


def _wait_for(
    process: subprocess.Popen, log: Path, pattern: str, deadline: float
) -> str:
    while True:
        ended = process.poll() is not None
        text = log.read_text(errors="replace")
        if found := re.search(pattern, text):
            return found[1]
        if ended:
            raise Refusal(f"JMeter ended by itself: {_why(text)}")
        if time.monotonic() > deadline:
            raise Refusal("JMeter did not end in time, and was stopped")
        time.sleep(0.2)


def _why(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    telling = [line for line in lines if re.search(r"rror|xception|annot", line)]
    return (telling or lines or ["it gave no reason"])[0][:300]


def _sleep_until(moment: float, process: subprocess.Popen) -> None:
    while process.poll() is None and (left := moment - time.time()) > 0:
        time.sleep(min(left, 0.5))


def _stop(process: subprocess.Popen) -> None:
    if process.poll() is None:
        process.terminate()
    try:
        process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


# The verdict


def _report(
    output: Path,
    options: argparse.Namespace,
    load: Load,
    levels: dict[str, Any],
    began: float,
    spent: dict[str, float],
    elapsed: float,
) -> bool:
    written = output / "dashboard" / "statistics.json"
    if not written.exists():
        raise Refusal(f"JMeter wrote no dashboard; its log is {output / 'jmeter.log'}")
    statistics = json.loads(written.read_text())
    with (output / "results.csv").open(newline="") as results:
        came = arrivals(results)
    if options.remote and came:
        # They begin some time after they were told to.
        began = came[0] / 1000
    with (output / "results.csv").open(newline="") as results:
        answered = rate_between(
            results,
            begins=(began + load.begins) * 1000,
            ends=(began + load.ends) * 1000,
        )
    achieved = answered / load.duration
    drawn = load.drawn(moment / 1000 - began for moment in came)
    verdict = judge(
        statistics,
        rate=achieved / drawn if drawn else 0,
        # Each of the three parts of the schedule draws a whole number.
        people=min(1, (len(came) + 3) / load.people),
        levels=levels,
    )
    missed = [str(one) for one in verdict if not one.held]
    print(f"\n{table(statistics, verdict)}\n")
    print(
        f"{load.rate:g} requests a second were asked for; {len(came):,} of"
        f" {load.people:,} people came, who bring {drawn:.1f}; answered well:"
        f" {achieved:.1f}"
    )
    cores = {name: seconds / elapsed for name, seconds in spent.items()}
    shares = ", ".join(f"{name} {share:.2f}" for name, share in cores.items())
    print(f"Of {os.cpu_count()} cores: {shares or 'next to nothing'}.")
    print(f"Dashboard: {output / 'dashboard' / 'index.html'}")
    for one in missed:
        print(f"Missed: {one}")
    result = {
        "shape": load.shape,
        "rate_asked": load.rate,
        "rate_drawn": round(drawn, 1),
        "rate_achieved": round(achieved, 1),
        "seconds": load.duration,
        "people": load.people,
        "users": load.users,
        "samplers": figures(statistics),
        "cores_used": {name: round(share, 2) for name, share in cores.items()},
        "missed": missed,
        "held": not missed,
        "output": str(output),
    }
    (output / "result.json").write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result), flush=True)
    return not missed


if __name__ == "__main__":
    sys.exit(run_command("jmeter/run", main))
