"""`jmeter/run`: rehearse with JMeter, and judge the result by service levels."""

from __future__ import annotations

import argparse
import csv
import shlex
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from provisioning.commands import ROOT, Refusal, output_of, run_command, step
from provisioning.jmeter.install import prepare_java, prepare_jmeter
from provisioning.jmeter.jmeter_process import run_jmeter
from provisioning.jmeter.options import (
    add_arguments,
    caller_path,
    check_target,
    positive_number,
)
from provisioning.jmeter.report import report
from provisioning.jmeter.service_levels import read_levels
from provisioning.jmeter.shapes import Load, load_of, mean_pages, read_properties

RESULTS = ROOT / ".jmeter"
PLAN = ROOT / "jmeter" / "survey.jmx"
USUAL_PORTS = {"http": 80, "https": 443}
# Arrivals are random: invite a few more people than computed.
SPARE = 1.1


def main() -> int:
    return 0 if run(parse_options()) else 1


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="jmeter/run",
        description="Sends people through a survey with JMeter, for a rate of requests"
        " a second; writes its results and the HTML dashboard to .jmeter/<time>/, and"
        " judges them by jmeter/slo.json. Exits with 1 when a level was missed. The"
        " last line is one JSON object. The people are made up in the running stack"
        " (open_rehearsal), unless --administration or --codes and --pages are given.",
        epilog="Shapes: in a day people keep arriving, and the rate is counted while as"
        " many leave as arrive. At the bell everybody arrives within seconds: classes"
        " of 30, who are busy for --duration; the rate is that of all of them.",
    )
    add_arguments(parser)
    parser.add_argument(
        "--rate", type=positive_number, required=True, help="requests/s"
    )
    parser.add_argument(
        "--output", type=caller_path, help="a new folder for the results"
    )
    return parser.parse_args()


def run(options: argparse.Namespace) -> bool:
    """Return whether every level was held; print the table and the JSON line."""
    check_target(options)
    levels = read_levels(options.slo, options.shape)
    java, jmeter = prepare_java(), prepare_jmeter()
    name = time.strftime("%Y%m%d-%H%M%S")
    output: Path = (options.output or RESULTS / name).absolute()
    try:
        output.mkdir(mode=0o700, parents=True)
    except FileExistsError:
        raise Refusal(f"{output} is there already") from None
    with ExitStack() as cleanup:
        data = given_data(options) or make_data(options, output, cleanup)
        load = load_of(options, mean_pages(read_properties(data.pages)))
        check_people(data.codes, load)
        print(f"{load}; {options.rate:g} requests a second are asked for", flush=True)
        write_properties(output / "run.properties", options, data, load)
        plan = PLAN.read_text(encoding="utf-8")
        if options.influxdb:
            plan = plan.replace(' enabled="false"', "")
        (output / "plan.jmx").write_text(plan, encoding="utf-8")
        with step(f"Running for {load.seconds:.0f} s"):
            jmeter_run = run_jmeter(java, jmeter, output, load, options)
    return report(output, load, levels, jmeter_run, remote=bool(options.remote))


# People


@dataclass(frozen=True, slots=True)
class JmeterData:
    """The files of `manage.py jmeter_data`."""

    codes: Path
    pages: Path


def given_data(options: argparse.Namespace) -> JmeterData | None:
    if not options.codes:
        return None
    for path in (options.codes, options.pages):
        if not path.is_file():
            raise Refusal(f"{path} is not there")
    return JmeterData(options.codes.absolute(), options.pages.absolute())


def make_data(
    options: argparse.Namespace, output: Path, cleanup: ExitStack
) -> JmeterData:
    """Make up people in the installation, and write their codes and answers."""

    def manage(*arguments: str) -> None:
        command = [*shlex.split(options.manage), *arguments]
        output_of(command, failing=f"{arguments[0]} failed")

    data = JmeterData(output / "codes.csv", output / "pages.properties")
    name: str | None = options.administration
    limit: tuple[str, ...] = ()
    if name is None:
        pages, items = options.survey_pages, options.survey_items
        name = f"jmeter-{pages}x{items}"
        people = round(load_of(options, pages).people * SPARE) + 20
        limit = ("--limit", str(people))
        with step(f"Making up {people:,} people"):
            size = ("--pages", str(pages), "--items", str(items), "--unstarted")
            respondents = ("--respondents", str(people))
            manage("open_rehearsal", "--name", name, *respondents, *size)
    with step("Writing their codes and answers"):
        # The codes let anyone answer for these people.
        cleanup.callback(data.codes.unlink, missing_ok=True)
        files = ("--codes", str(data.codes), "--pages", str(data.pages))
        manage("jmeter_data", "--administration", name, *files, *limit)
    return data


def check_people(codes: Path, load: Load) -> None:
    with codes.open(encoding="utf-8", newline="") as file:
        people = sum(1 for row in csv.reader(file) if row) - 1
    if people < load.people:
        raise Refusal(
            f"{people:,} people have codes, and the load needs {load.people:,}: lower"
            " --rate or --duration, or add people"
        )


def write_properties(
    path: Path, options: argparse.Namespace, data: JmeterData, load: Load
) -> None:
    """Write the plan's properties: target, load, codes, then the pages' answers."""
    usual = options.port == USUAL_PORTS[options.protocol]
    port = "" if usual else f":{options.port}"
    properties = {
        "protocol": options.protocol,
        "host": options.host,
        "port": str(options.port),
        "origin": f"{options.protocol}://{options.host}{port}",
        **load.properties(servers=max(1, len(options.remote))),
    }
    if options.influxdb:
        properties["influxdb"] = options.influxdb
    if not options.remote:
        # Load servers got their own codes when they were started.
        properties["codes"] = str(data.codes.with_suffix(""))
    lines = [f"{name}={value}\n" for name, value in properties.items()]
    path.write_text("".join(lines) + data.pages.read_text(encoding="ascii"))


if __name__ == "__main__":
    sys.exit(run_command("jmeter/run", main))
