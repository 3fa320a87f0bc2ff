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
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from provisioning.commands import (
    Refusal,
    command_parser,
    output_of,
    positive_integer,
    step,
)
from provisioning.measure.jmeter.options import (
    LEVELS,
    STACK_MANAGE,
    caller_path,
    positive_number,
)
from provisioning.measure.jmeter.report import (
    Levels,
    Samples,
    conclude,
    read_levels,
)
from provisioning.measure.jmeter.run import RESULTS, new_folder
from provisioning.measure.load.access_log import (
    AccessLog,
    LoggedRequest,
    Step,
    read_access_log,
)
from provisioning.measure.load.crowd import DRAIN, Crowd
from provisioning.measure.load.driver import LOGINS_TOGETHER
from provisioning.measure.load.engine import TIMEOUT, Engine, Scenario, clock, play
from provisioning.measure.load.respondent import (
    RehearsalSurvey,
    Request,
    Respondent,
    save_requests,
)
from provisioning.measure.load.target import Target, target_of
from provisioning.processes import cpu_used_by_program, stats_by_program

# Where a person is: so many pages were saved, or one of these.
OUTSIDE, ASKED, ENTERED, DISPLAYED = -3, -2, -1, 0
REVIEWED, FINISHED, GONE = 101, 102, 103
# A request, and when it is due on the engine's clock.
Due = tuple[float, LoggedRequest]


def main() -> int:
    options = parse_options()
    # For the load engine, other machines than this one are no target.
    target = target_of(options.address)
    output = (
        options.output or RESULTS / time.strftime("replay-%Y%m%d-%H%M%S")
    ).absolute()
    log = read_access_log(options.logs, begin=options.begin, end=options.end)
    describe(log)
    with new_folder(output) as unfinished:
        held = replay(log, target, options, output)["held"]
        unfinished.pop_all()
    return 0 if held else 1


def parse_options() -> argparse.Namespace:
    parser = command_parser(__doc__)
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
        tally.refuse_failures("Logging in fails")
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
        before, began = stats_by_program(), time.monotonic()
        with step(f"Sending {len(log.requests):,} requests again"):
            replayed.run()
        elapsed = time.monotonic() - began
        used = cpu_used_by_program(before, stats_by_program())
    cores = {program: cpu / elapsed for program, cpu in used.items()}
    return judge(log, replayed, levels, options, output, name, elapsed, cores)


def judge(
    log: AccessLog,
    replayed: Replay,
    levels: Levels,
    options: argparse.Namespace,
    output: Path,
    name: str,
    elapsed: float,
    cores: Mapping[str, float],
) -> dict[str, Any]:
    """Compare the replies with the levels; print and write the result."""
    people = len(replayed.visits)
    failures = Counter(each.failure for each in replayed.samples if each.failure)
    good = len(replayed.samples) - failures.total()
    samples = Samples()
    for each in replayed.samples:
        samples.add(
            each.seconds,
            view=each.view,
            survey=name,
            page=each.page,
            failed=bool(each.failure),
        )
    # Views that the log lacks are not expected.
    seen = samples.statistics()
    levels["samplers"] = {
        view: bounds for view, bounds in levels["samplers"].items() if view in seen
    }
    rate = len(log.requests) / max(1.0, replayed.due[-1] - replayed.due[0])
    share = good / len(log.requests)
    return conclude(
        output,
        samples,
        rate=share,
        people=1,
        levels=levels,
        cores=cores,
        sentences=[
            f"{len(log.requests):,} requests of {people:,} people,"
            f" {options.speed:g} times as fast: {rate:.1f} a second; answered well:"
            f" {good:,}; not sent after an error: {replayed.not_sent:,}"
            f" {dict(failures) or ''}"
        ],
        result={
            "shape": "replay",
            "rate_asked": round(rate, 1),
            "rate_achieved": round(rate * share, 1),
            "seconds": round(elapsed, 1),
            "people": people,
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


@dataclass(slots=True, eq=False)
class Person:
    # Where this person is when the log begins.
    before: int


def assign_people(
    requests: Iterable[LoggedRequest],
) -> tuple[list[Person], list[Person | None]]:
    """Return the simulated people, and the sender of each request.

    The log names no client, so each request is given to a person who can have sent
    it: a save of page 4 to the one who has waited longest after page 3. Where there
    is none, somebody was there before the log begins. Content is the same for
    everybody: nobody in particular requests it.
    """
    people: list[Person] = []
    senders: list[Person | None] = []
    waiting: defaultdict[int, deque[Person]] = defaultdict(deque)
    for request in requests:
        if request.step is Step.CONTENT:
            senders.append(None)
            continue
        wanted, before, after = _stages(request, waiting)
        stage = next((stage for stage in wanted if waiting[stage]), None)
        if stage is None:
            person = Person(before)
            people.append(person)
        else:
            person = waiting[stage].popleft()
            if request.step is Step.REVIEW and stage == FINISHED:
                after = GONE
            elif request.step is Step.DISPLAY:
                after = max(after, stage)
        waiting[after].append(person)
        senders.append(person)
    return people, senders


def _stages(
    request: LoggedRequest, waiting: dict[int, deque[Person]]
) -> tuple[Sequence[int], int, int]:
    """Return where its sender may be, where a new one is, and where both are then."""
    page = request.page
    pages = sorted(
        (stage for stage in waiting if DISPLAYED <= stage < REVIEWED), reverse=True
    )
    match request.step:
        case Step.LOGIN:
            return (ASKED,), ASKED, ENTERED
        case Step.DISPLAY:
            # After a login, or a reload.
            return (ENTERED, *pages), ENTERED, DISPLAYED
        case Step.SAVE:
            # The same page again, or after pages that had no relevant question.
            wanted = (page - 1, page, page - 2, page - 3)
            return [stage for stage in wanted if stage in pages], page - 1, page
        case Step.REVIEW:
            return (FINISHED, *pages, REVIEWED), DISPLAYED, REVIEWED
        case Step.FINISH:
            return (REVIEWED,), REVIEWED, FINISHED
    return (), OUTSIDE, ASKED


def preparation(person: Person, respondent: Respondent) -> Iterator[Request]:
    """Yield the requests that bring a person to where the log begins."""
    if person.before >= ASKED:
        yield respondent.login_page()
    if person.before >= ENTERED:
        yield respondent.login()
    if person.before >= DISPLAYED:
        yield respondent.display()
    if person.before == REVIEWED:
        yield respondent.review()


@dataclass(frozen=True, slots=True)
class Sample:
    view: str
    page: int
    # From the moment it was due.
    seconds: float
    failure: str


class Replay:
    """Send logged requests when they are due, whatever the replies do.

    A person has one request at a time, and stops at the first error.
    """

    def __init__(
        self,
        engine: Engine,
        requests: Sequence[LoggedRequest],
        senders: Sequence[Person | None],
        respondents: Mapping[Person | None, Respondent],
        *,
        speed: float,
    ) -> None:
        self.engine = engine
        first, begin = requests[0].moment, clock()
        self.due = [begin + (each.moment - first) / speed for each in requests]
        self.samples: list[Sample] = []
        # Requests of people who had stopped.
        self.not_sent = 0
        self.respondents = respondents
        self.visits: defaultdict[Person | None, list[Due]] = defaultdict(list)
        for due, request, sender in zip(self.due, requests, senders, strict=True):
            self.visits[sender].append((due, request))

    def run(self) -> None:
        """Return after the last reply, or the last time-out."""

        def is_over() -> bool:
            return len(self.samples) + self.not_sent == len(self.due)

        play(self.engine, self._fetch_content(self.visits.pop(None, [])))
        for person, visit in self.visits.items():
            play(self.engine, self._send(self.respondents[person], visit))
        self.engine.run(until=self.due[-1] + TIMEOUT + DRAIN, idle=is_over)

    def _fetch_content(self, visit: Iterable[Due]) -> Scenario:
        for due, logged in visit:
            yield max(0.0, due - clock())
            nobody = self.respondents[None]
            play(self.engine, self._send(nobody, [(due, logged)]))

    def _send(self, respondent: Respondent, visit: Iterable[Due]) -> Scenario:
        failure, has_finished = "", False
        for due, logged in visit:
            if (wait := due - clock()) > 0:
                yield wait
            if failure:
                self.not_sent += 1
                continue
            if has_finished:
                request = respondent.thanks()
            else:
                request = _request_of(respondent, logged)
            exchange = yield request.data
            failure = request.check(exchange)
            seconds = exchange.answered - due
            self.samples.append(Sample(request.kind, logged.page, seconds, failure))
            has_finished |= logged.step is Step.FINISH


def _request_of(respondent: Respondent, logged: LoggedRequest) -> Request:
    if logged.step is Step.CONTENT:
        return respondent.content(logged.page)
    if logged.step is Step.SAVE:
        [request] = save_requests(respondent, [logged.page])
        return request
    # The others are named after what a respondent requests.
    request = getattr(respondent, logged.step.name.lower())()
    return request
