"""Send what respondents requested, by nginx's access log, again to this machine.

The same requests in the same order and rhythm, by made-up people with made-up answers.
Ends by itself, writes its result to .jmeter/replay-<time>/, and judges it by
jmeter/slo.json, with exit status 1 when a level was missed. The last line is one JSON
object.
"""

from __future__ import annotations

import argparse
import gc
import json
import shlex
import time
from collections import Counter, defaultdict
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

from provisioning.commands import Refusal, output_of, positive_integer, step
from provisioning.jmeter.options import (
    LEVELS,
    STACK_MANAGE,
    caller_path,
    positive_number,
)
from provisioning.jmeter.report import conclude, missed_levels, read_levels
from provisioning.jmeter.run import RESULTS
from provisioning.jmeter.slowest import Slowest
from provisioning.load.access_log import AccessLog, read_access_log
from provisioning.load.crowd import Crowd
from provisioning.load.driver import LOGINS_TOGETHER
from provisioning.load.engine import Engine
from provisioning.load.replay import Replay, Sample, assign_people, preparation
from provisioning.load.respondent import RehearsalSurvey, Respondent
from provisioning.load.tally import percentile_of
from provisioning.load.target import Target, target_of
from provisioning.processes import cpu_seconds_by_program, cpu_used_by_program


def main() -> int:
    options = parse_options()
    # For the load engine, other machines than this one are no target.
    target = target_of(options.address)
    output = (
        options.output or RESULTS / time.strftime("replay-%Y%m%d-%H%M%S")
    ).absolute()
    log = read_access_log(options.logs, begin=options.begin, end=options.end)
    describe(log)
    output.mkdir(mode=0o700, parents=True)
    return 0 if replay(log, target, options, output)["held"] else 1


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="jmeter/replay", description=__doc__)
    add = parser.add_argument
    add("logs", nargs="+", type=caller_path, metavar="LOG", help="also compressed")
    add("--speed", type=positive_number, default=1.0, help="times as fast; 1")
    add("--begin", type=_moment, help="of the window, as 2026-11-22T18:00:00-06:00")
    add("--end", type=_moment, help="of the window")
    add("--address", default="http://127.0.0.1:8080", help="the target; %(default)s")
    add("--survey-items", type=positive_integer, default=5, help="on each page; 5")
    add("--manage", default=STACK_MANAGE, help="instead of provisioning/stack manage")
    add("--slo", type=caller_path, default=LEVELS, help="instead of jmeter/slo.json")
    add("--output", type=caller_path, help="a new folder for the results")
    return parser.parse_args()


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = datetime.min
    if moment.tzinfo is None:
        raise argparse.ArgumentTypeError(f"{text} is no time with its zone")
    return moment


def describe(log: AccessLog) -> None:
    """Print what is skipped; refuse a log without a request of the survey."""
    for problem in log.problems:
        print(problem)
    reasons = [f"{count:,} {reason}" for reason, count in log.skipped.items()]
    print(f"{log.lines:,} lines; skipped: {', '.join(reasons) or 'none'}")
    if not log.requests:
        raise Refusal("The log has no request of a survey in this window")


def replay(
    log: AccessLog, target: Target, options: argparse.Namespace, output: Path
) -> dict[str, Any]:
    levels = read_levels(options.slo, "replay")
    people, senders = assign_people(log.requests)
    name, respondents = make_up(log, len(people), target, options, output)
    nobody = Respondent("", respondents[0].survey, target)
    with closing(Engine(target)) as engine:
        with step("Bringing them to where the log begins"):
            visits = map(preparation, people, respondents)
            tally = Crowd(engine, visits).run_closed(together=LOGINS_TOGETHER)
        if tally.failed():
            raise Refusal(f"Logging in fails: {tally.failures_by_name()}")
        replayed = Replay(
            engine,
            log.requests,
            senders,
            {None: nobody, **dict(zip(people, respondents, strict=True))},
            speed=options.speed,
        )
        # A pause for garbage collection would count as the server's.
        gc.freeze()
        gc.disable()
        before, began = cpu_seconds_by_program(), time.monotonic()
        with step(f"Sending {len(log.requests):,} requests again"):
            replayed.run()
        elapsed = time.monotonic() - began
        used = cpu_used_by_program(before, cpu_seconds_by_program())
    statistics = statistics_of(replayed.samples)
    failures = Counter(each.failure for each in replayed.samples if each.failure)
    good = len(replayed.samples) - failures.total()
    # Views that the log lacks are not expected.
    found = {
        view: bounds
        for view, bounds in levels["samplers"].items()
        if view in statistics
    }
    levels = {**levels, "samplers": found}
    slowest = Slowest()
    for each in replayed.samples:
        slowest.add(each.seconds, view=each.view, survey=name, page=each.page)
    rate = len(log.requests) / max(1.0, replayed.due[-1] - replayed.due[0])
    share = good / len(log.requests)
    return conclude(
        output,
        statistics,
        missed_levels(statistics, rate=share, people=1, levels=levels),
        levels=levels,
        slowest=slowest,
        cores={program: cpu / elapsed for program, cpu in used.items()},
        sentences=[
            f"{len(log.requests):,} requests of {len(people):,} people,"
            f" {options.speed:g} times as fast: {rate:.1f} a second; answered well:"
            f" {good:,}; not sent after an error: {replayed.not_sent:,}"
            f" {dict(failures) or ''}"
        ],
        result={
            "shape": "replay",
            "rate_asked": round(rate, 1),
            "rate_achieved": round(rate * share, 1),
            "seconds": round(elapsed, 1),
            "people": len(people),
            "speed": options.speed,
            "lines": log.lines,
            "replayed": len(replayed.samples),
            "not_sent": replayed.not_sent,
            "skipped": dict(log.skipped),
            "failures": dict(failures),
        },
    )


def make_up(
    log: AccessLog,
    people: int,
    target: Target,
    options: argparse.Namespace,
    output: Path,
) -> tuple[str, list[Respondent]]:
    """Return the administration, and as many people who have not started."""
    # As many pages as the log has, so that they keep their numbers.
    pages = max(1, *(request.page for request in log.requests))
    name = f"replay-{pages}x{options.survey_items}"
    codes = output / "codes"
    command = [*shlex.split(options.manage), "open_rehearsal", "--json", "--unstarted"]
    command += [f"--name={name}", f"--respondents={max(1, people)}", f"--codes={codes}"]
    command += [f"--pages={pages}", f"--items={options.survey_items}"]
    try:
        with step(f"Making up {people:,} people"):
            described = output_of(command, failing="open_rehearsal failed")
        survey = RehearsalSurvey.of(json.loads(described.splitlines()[-1]))
        typed = codes.read_text().split()
    finally:
        # The codes let anyone answer for these people.
        codes.unlink(missing_ok=True)
    return name, [Respondent(code, survey, target) for code in typed]


def statistics_of(samples: list[Sample]) -> dict[str, dict[str, float]]:
    """Return the columns of JMeter's dashboard for each view, and for all."""
    seconds: defaultdict[str, Counter[float]] = defaultdict(Counter)
    errors: Counter[str] = Counter()
    for sample in samples:
        for name in (sample.view, "Total"):
            seconds[name][round(sample.seconds, 5)] += 1
            errors[name] += bool(sample.failure)
    percentiles = {"pct1ResTime": 50, "pct2ResTime": 95, "pct3ResTime": 99}
    percentiles["maxResTime"] = 100
    return {
        name: {
            "sampleCount": found.total(),
            "errorCount": errors[name],
            "errorPct": 100 * errors[name] / found.total(),
            **{
                column: round(1000 * percentile_of(found, percent), 2)
                for column, percent in percentiles.items()
            },
        }
        for name, found in seconds.items()
    }
