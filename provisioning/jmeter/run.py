"""`jmeter/run`: a rehearsal with JMeter, judged by its service levels."""

from __future__ import annotations

import argparse
import sys
import time
from contextlib import ExitStack
from pathlib import Path

from provisioning.commands import ROOT, Refusal, run_command, step
from provisioning.jmeter.arguments import add_arguments, called_path, positive
from provisioning.jmeter.driving import drive
from provisioning.jmeter.install import prepare_java, prepare_jmeter
from provisioning.jmeter.levels import read_levels
from provisioning.jmeter.people import check_enough, given, made
from provisioning.jmeter.plan import write_plan, write_properties
from provisioning.jmeter.report import report
from provisioning.jmeter.shapes import load_of, mean_pages, read_properties
from provisioning.jmeter.target import check_target

RESULTS = ROOT / ".jmeter"


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
        data = given(options) or made(options, output, tidy)
        load = load_of(options, mean_pages(read_properties(data.pages)))
        check_enough(data.codes, load, options.remote)
        print(f"{load}; {options.rate:g} requests a second are asked for", flush=True)
        write_properties(output / "run.properties", options, data, load)
        write_plan(output / "plan.jmx", options)
        with step(f"Running for {load.seconds:.0f} s"):
            began, spent, elapsed = drive(java, home, output, load, options)
    return report(output, options, load, levels, began, spent, elapsed)


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


def _new_folder(options: argparse.Namespace) -> Path:
    name = time.strftime("%Y%m%d-%H%M%S")
    output: Path = (options.output or RESULTS / name).absolute()
    try:
        output.mkdir(mode=0o700, parents=True)
    except FileExistsError:
        raise Refusal(f"{output} is there already") from None
    return output


if __name__ == "__main__":
    sys.exit(run_command("jmeter/run", main))
