"""Send people through a survey with JMeter, for a rate of requests a second.

Writes its results and the HTML dashboard to .jmeter/<time>/, and judges them by
jmeter/slo.json. Exits with 1 when a level was missed. The last line is one JSON object.
The people are made up in the running stack, unless --administration or --codes and
--pages are given.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import shutil
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from provisioning.commands import ROOT, Refusal, output_of, step
from provisioning.measure.jmeter.install import prepare_java, prepare_jmeter
from provisioning.measure.jmeter.jmeter_process import run_jmeter
from provisioning.measure.jmeter.options import (
    check_target,
    positive_number,
    read_codes,
    run_parser,
)
from provisioning.measure.jmeter.report import read_levels, report
from provisioning.measure.jmeter.shapes import (
    MESSAGE,
    SHAPES,
    Load,
    load_of,
    mean_visit,
)

RESULTS = ROOT / ".jmeter"
PLAN = ROOT / "jmeter" / "survey.jmx"
USUAL_PORTS = {"http": 80, "https": 443}
# Arrivals are random: invite a few more people than computed.
SPARE = 1.1


def main() -> int:
    parser = run_parser(
        __doc__,
        "Shapes: in a day people keep arriving, and the rate is counted while as many"
        " leave as arrive. At the bell everybody arrives within seconds: classes of 30,"
        " who are busy for --duration; the rate is that of all of them. Heavy is a day"
        " of large grids on slow phones. With one-code everybody begins with the same"
        " open code, all --within ten minutes; the rate is that of the peak. A reminder"
        " brings as many people with cards, who first look for their school, while a"
        " message platform asks about everybody.",
    )
    parser.add_argument(
        "--rate", type=positive_number, required=True, help="requests/s"
    )
    options = parser.parse_args()
    output = options.output or RESULTS / time.strftime("%Y%m%d-%H%M%S")
    return 0 if run(options, output.absolute())["held"] else 1


def run(options: argparse.Namespace, output: Path) -> dict[str, Any]:
    check_target(options)
    levels = read_levels(options.slo, options.shape)
    java, jmeter = prepare_java(), prepare_jmeter()
    with ExitStack() as cleanup:
        unfinished = cleanup.enter_context(new_folder(output))
        if options.codes:
            codes, pages = options.codes.absolute(), options.pages.absolute()
        else:
            codes, pages = make_files(options, output, cleanup)
        load = load_of(options, *mean_visit(pages))
        check_people(codes, pages, load)
        print(f"{load}; {options.rate:g} requests a second are asked for", flush=True)
        properties = plan_properties(options, codes, load) + pages.read_text("ascii")
        plan = PLAN.read_text(encoding="utf-8")
        enabled = ["figures while it runs"] if options.influxdb else []
        path = output / "run.properties"
        if SHAPES[options.shape].is_reminded:
            asking = make_platform(options, output, properties, load, cleanup)
            if asking:
                enabled.append("platform")
            else:
                del levels["samplers"][MESSAGE]
            # The API key stays in no result.
            cleanup.callback(path.write_text, properties)
        else:
            asking = ""
        path.write_text(properties + asking)
        for name in enabled:
            plan = plan.replace(f'"{name}" enabled="false"', f'"{name}"')
        (output / "plan.jmx").write_text(plan, encoding="utf-8")
        unfinished.pop_all()
        with step(f"Running for {load.seconds:.0f} s"):
            jmeter_run = run_jmeter(java, jmeter, output, load, options)
    return report(output, load, levels, jmeter_run, remote=bool(options.remote))


def make_files(
    options: argparse.Namespace, output: Path, cleanup: ExitStack
) -> tuple[Path, Path]:
    """Make up people in the installation, and write their codes and answers."""

    def manage(*arguments: object) -> None:
        command = [*shlex.split(options.manage), *map(str, arguments)]
        output_of(command, failing=f"{arguments[0]} failed")

    codes, pages = output / "codes.csv", output / "pages.properties"
    name: str | None = options.administration
    limit: tuple[object, ...] = ()
    if name is None:
        shape = SHAPES[options.shape]
        count = options.survey_pages or shape.pages
        items = options.survey_items or shape.items
        name = f"jmeter-{count}x{items}"
        size: list[object] = ["--pages", count, "--items", items]
        if shape.is_multilingual:
            name += "-multilingual"
            size.append("--multilingual")
        people = round(load_of(options, count).people * SPARE) + 20
        limit = ("--limit", people)
        if shape.is_open:
            name += "-open"
            with step("Making up an open code"):
                manage("open_code_rehearsal", "--name", name, *size)
        else:
            rehearsal = ("--name", name, "--respondents", people, "--unstarted")
            with step(f"Making up {people:,} people"):
                manage("open_rehearsal", *rehearsal, *size)
    with step("Writing their codes and answers"):
        # The codes let anyone answer for these people.
        cleanup.callback(codes.unlink, missing_ok=True)
        files = ("--codes", codes, "--pages", pages)
        manage("jmeter_data", "--administration", name, *files, *limit)
    return codes, pages


def make_platform(
    options: argparse.Namespace,
    output: Path,
    properties: str,
    load: Load,
    cleanup: ExitStack,
) -> str:
    """Return the properties of a message platform that asks about these people.

    Empty where the application has no endpoint for message platforms.
    """
    named = re.search("(?m)^survey.administration=(.+)$", properties)
    addresses = output / "addresses"
    cleanup.callback(addresses.unlink, missing_ok=True)
    command = [*shlex.split(options.manage), "open_message_rehearsal"]
    command += [f"--name={named[1] if named else ''}", f"--addresses={addresses}"]
    command += [f"--people={load.people}"]
    try:
        printed = output_of(command, failing="open_message_rehearsal failed")
    except Refusal as refusal:
        # The last line of what Django says about a command that it does not know.
        if "manage.py help" not in str(refusal):
            raise
        print("No platform asks: this release has no endpoint for message platforms")
        return ""
    made = json.loads(printed.splitlines()[-1])
    rate = made["people"] / load.ramp
    return f"addresses={addresses}\napi_key={made['api_key']}\nmessages={rate:.2f}\n"


def new_folder(path: Path) -> ExitStack:
    """Make a folder, and remove it, with those made above it, on leaving the stack."""
    folders = (path, *path.parents)
    outermost = next((each for each in reversed(folders) if not each.exists()), None)
    if outermost is None:
        raise Refusal(f"{path} is there already")
    path.mkdir(mode=0o700, parents=True)
    stack = ExitStack()
    stack.callback(shutil.rmtree, outermost, ignore_errors=True)
    return stack


def check_people(codes: Path, pages: Path, load: Load) -> None:
    takes = re.findall(r"(?m)^take\.(\d+)\.pages=", pages.read_text("ascii"))
    people = len(read_codes(codes, takes=set(map(int, takes))))
    if people < load.people:
        raise Refusal(
            f"{people:,} people have codes, and the load needs {load.people:,}: lower"
            " --rate or --duration, or add people"
        )


def plan_properties(options: argparse.Namespace, codes: Path, load: Load) -> str:
    usual = options.port == USUAL_PORTS[options.protocol]
    port = "" if usual else f":{options.port}"
    properties = {
        "protocol": options.protocol,
        "host": options.host,
        "port": str(options.port),
        "origin": f"{options.protocol}://{options.host}{port}",
        **load.properties(servers=max(1, len(options.remote))),
    }
    if SHAPES[options.shape].is_open:
        properties |= {"start": "open", "open": "true"}
    if SHAPES[options.shape].is_reminded:
        properties["finder"] = "true"
    if bandwidth := SHAPES[options.shape].bandwidth:
        properties["httpclient.socket.http.cps"] = str(bandwidth)
        properties["httpclient.socket.https.cps"] = str(bandwidth)
    if options.influxdb:
        properties["influxdb"] = options.influxdb
    if not options.remote:
        # Load servers got their own codes when they were started.
        properties["codes"] = str(codes.with_suffix(""))
    return "".join(f"{name}={value}\n" for name, value in properties.items())
