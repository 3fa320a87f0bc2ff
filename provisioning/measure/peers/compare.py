"""Compare page saves with those of a plain Django survey and of oTree.

On the stack that provisioning/stack up has started, in turns: the same PostgreSQL, that
flushes each commit, the same cores, the same load process. Each program saves pages of
five answers alone, then within whole visits, where each save is followed by the page
that comes next. Processor time is that of all servers of a program, with PostgreSQL and
its replica. What each has stored when it replies, and after the same request was sent
twice, is looked up. oTree is installed in .bench/, and left out, with the reason, where
that fails. Deletes the answers of its rehearsals, and its databases.
"""

from __future__ import annotations

import json
import math
import os
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from provisioning.commands import ROOT, Refusal, command_parser, conclude, print_table
from provisioning.measure.benchmarks import phases
from provisioning.measure.benchmarks.bench import cpu_of_servers
from provisioning.measure.benchmarks.compare_revisions import ratios_of_medians
from provisioning.measure.benchmarks.meter import (
    Counters,
    Meter,
    describe_machine,
    log_position,
)
from provisioning.measure.benchmarks.phases import Rehearsal, Size
from provisioning.measure.benchmarks.stack import Stack, running_stack, sql_file
from provisioning.measure.load.driver import Drivers
from provisioning.measure.load.engine import Engine
from provisioning.measure.load.respondent import (
    SAVE,
    RehearsalSurvey,
    Request,
    Respondent,
    login_requests,
    save_requests,
)
from provisioning.measure.load.target import Target, refuse_real_respondents
from provisioning.measure.peers.servers import (
    OTREE,
    Database,
    Peer,
    Shape,
    database_of,
    install_otree,
    otree,
    plain_database,
    plain_survey,
)
from provisioning.measure.peers.visitors import PeerDriver, Visitor, enter, saves_of

RECORD = ROOT / "provisioning" / "measured" / "peers.json"
# Of a result that is kept.
FEWEST_TURNS = 3
HERE = "groundswell"
ITEMS = 5
# More than a peer saves in a second: so many people are invited.
MOST_SAVES = {"django": 2500, "django_careful": 2500, "otree": 200}
# Of one person, one after another, while transactions are counted.
OBSERVED = 9
FLUSHES = 200
# The servers of this program that a peer uses as well.
SHARED = ("PostgreSQL", "replica")
SHOWN = ("saves_per_s", "cpu_us_per_save", "visit_saves_per_s", "cpu_us_per_visit_save")


@dataclass
class Program:
    """A program in the comparison, and how it is measured once."""

    name: str
    measure: Callable[[], dict[str, Any]]
    observed: dict[str, Any]


def main() -> int:
    parser = command_parser(
        __doc__,
        turns=(3, "of all programs"),
        seconds=(10.0, "of each measurement"),
        together=(16, "requests at a time"),
        pages=(45, "of the survey"),
    )
    parser.add_argument(
        "--record",
        action="store_true",
        help=f"write the result to {RECORD.relative_to(ROOT)}",
    )
    options = parser.parse_args()
    stack = running_stack()
    refuse_real_respondents(
        lambda statement: json.loads(stack.sql(statement)[0][0]),
        consequence="this loads the stack as much as it can serve",
    )
    size = Size(pages=options.pages, items=ITEMS, seconds=options.seconds)
    size = phases.with_enough_people(size, parts=2 * options.turns + 1)
    result: dict[str, Any] = {
        "date": datetime.now(UTC).date().isoformat(),
        "machine": {**describe_machine(stack), "flush_ms": flush_ms(stack.folder)},
        "size": {**asdict(size), "together": options.together},
        "missing": {},
    }
    with ExitStack() as running:
        rehearsal = running.enter_context(
            phases.rehearsal_of(stack, size, purpose="peers")
        )
        result["limits"] = phases.limits(rehearsal, options.together)
        programs = [this_program(rehearsal, options.together)]
        for name in MOST_SAVES:
            try:
                programs.append(
                    running.enter_context(peer_program(stack, name, size, options))
                )
            except Refusal as refusal:
                print(f"{name} is left out: {refusal}", flush=True)
                result["missing"][name] = str(refusal)
        turns = take_turns(programs, options.turns)
    result |= figures_of(turns, {each.name: each.observed for each in programs})
    print_result(result)
    missed = shortcomings_of(result)
    if options.record:
        missed += unfit_to_keep(result)
    if options.record and not missed:
        RECORD.write_text(json.dumps(result, indent=1) + "\n")
    return conclude(result, missed)


def take_turns(
    programs: Sequence[Program], turns: int
) -> dict[str, list[dict[str, Any]]]:
    figures: dict[str, list[dict[str, Any]]] = {each.name: [] for each in programs}
    for turn in range(1, turns + 1):
        for program in programs:
            print(f"{program.name}, turn {turn}", flush=True)
            figures[program.name].append(measured := program.measure())
            parts = ", ".join(f"{name} {measured[name]:,.0f}" for name in SHOWN)
            print(f"  {parts}, failed {measured['failed']}", flush=True)
    return figures


def flush_ms(folder: Path) -> float:
    """Return the median time of flushing a page to this folder's disk."""
    path, took = folder / "flushed", []
    descriptor = os.open(path, os.O_CREAT | os.O_WRONLY)
    try:
        for number in range(FLUSHES):
            os.pwrite(descriptor, os.urandom(8192), number * 8192)
            began = time.perf_counter()
            os.fdatasync(descriptor)
            took.append(time.perf_counter() - began)
    finally:
        os.close(descriptor)
        path.unlink()
    return round(statistics.median(took) * 1000, 3)


# This program


def this_program(rehearsal: Rehearsal, together: int) -> Program:
    stack, size = rehearsal.stack, rehearsal.size
    details, [code] = stack.open_rehearsal(
        *("--name=rehearsal-peers-observed", "--empty", "--respondents=1"),
        *(f"--pages={size.pages}", f"--items={size.items}"),
    )
    items = ", ".join(str(item["id"]) for item in details["pages"][0]["items"])
    count = (
        f"SELECT count(*) FROM survey_response_{details['administration_id']}"  # noqa: S608
        f" WHERE item_id IN ({items})"
    )
    respondent = Respondent(code, RehearsalSurvey.of(details), stack.target)
    observed = observe(
        stack,
        login_requests(respondent),
        save_requests(respondent, range(1, size.pages + 1)),
        target=stack.target,
        count_answers=lambda: int(stack.sql(count)[0][0]),
        count_statements=lambda: Counters.now(stack).statements,
    )
    return Program(HERE, partial(measure_this, rehearsal, together), observed)


def measure_this(rehearsal: Rehearsal, together: int) -> dict[str, Any]:
    saves = phases.save_pages(rehearsal, together)
    mixed = phases.mix(rehearsal, together)
    requests = mixed["mix_per_s"] / mixed["saves_per_s"]
    return {
        "saves_per_s": saves["saves_per_s"],
        "cpu_us_per_save": cpu_of_servers(saves["cpu_us_per_save"]),
        "visit_saves_per_s": mixed["saves_per_s"],
        "cpu_us_per_visit_save": round(
            cpu_of_servers(mixed["cpu_us_per_request"]) * requests, 1
        ),
        "p99_ms": saves["p99"],
        "wal_bytes_per_save": saves["wal_bytes_per_save"],
        "cpu": saves["cpu_us_per_save"],
        "failed": saves["failed"] + mixed["failed"],
    }


# Its peers


@contextmanager
def peer_program(
    stack: Stack, name: str, size: Size, options: Any
) -> Iterator[Program]:
    lasting = (size.warm + size.seconds) * MOST_SAVES[name]
    each = math.ceil(lasting / size.pages) + options.together
    shape = Shape(size.pages, size.items, 2 * options.turns * each + 1)
    with database_of(stack.run, f"peer_{name}") as database:
        if name == "otree":
            server = otree(install_otree(), database, shape)
        else:
            careful = name == "django_careful"
            described = plain_database(database, careful=careful)
            server = plain_survey(described, shape, processes=os.cpu_count() or 1)
        with server as peer:
            observed = observe_peer(stack, database, peer)
            drivers = Drivers(
                1, peer.target, peer.site, peer.codes[1:], kind=PeerDriver
            )
            try:
                measure = partial(
                    measure_peer, stack, peer, drivers, size, options.together, each
                )
                yield Program(name, measure, observed)
            finally:
                drivers.stop()


def observe_peer(stack: Stack, database: Database, peer: Peer) -> dict[str, Any]:
    visitor = Visitor(peer.codes[0], peer.site, peer.target)
    statements = sql_file("statements_of", database=database.name)
    return observe(
        stack,
        enter(visitor),
        saves_of(visitor),
        target=peer.target,
        count_answers=lambda: int(database.ask(peer.count_answers)[0][0]),
        count_statements=lambda: int(stack.sql(statements)[0][0]),
    )


def measure_peer(
    stack: Stack, peer: Peer, drivers: Drivers, size: Size, together: int, people: int
) -> dict[str, Any]:
    meter = Meter(stack)
    meter.groups = {name: meter.groups[name] for name in SHARED if name in meter.groups}
    meter.groups["program"] = [peer.pid]
    figures: dict[str, Any] = {"failed": 0}
    drivers.do("enter", people)
    for prefix, method, more in (
        ("", "save", {}),
        ("visit_", "visit", {"people": people}),
    ):
        began = log_position(stack)
        tally = phases.measured(meter, size, drivers, method, together=together, **more)
        saves = tally.answered(SAVE)
        cpu = meter.per_request(saves, tally.own_cpu)
        figures |= {
            f"{prefix}saves_per_s": round(tally.per_second(SAVE), 1),
            f"cpu_us_per_{prefix}save": cpu_of_servers(cpu),
            "failed": figures["failed"] + tally.failed(),
        }
        if method == "save":
            # The log was written in the warm-up too.
            share = size.seconds / (size.warm + size.seconds)
            bytes_per_save = (log_position(stack) - began) * share / max(1, saves)
            figures |= {"cpu": cpu, "wal_bytes_per_save": round(bytes_per_save)}
            figures["p99_ms"] = tally.percentiles(SAVE).get("p99", 0.0)
    return figures


# What is stored


def observe(
    stack: Stack,
    entering: Iterable[Request],
    saves: Iterator[Request],
    *,
    target: Target,
    count_answers: Callable[[], int],
    count_statements: Callable[[], int],
) -> dict[str, Any]:
    """Let one person save pages, and look into the database after each reply.

    What another connection sees there is committed, and flushed as PostgreSQL is set.
    """
    with closing(Engine(target)) as engine:

        def ask(request: Request) -> None:
            if failure := request.check(engine.exchange(request.data)):
                raise Refusal(f"{request.kind} fails: {failure}")

        for request in entering:
            ask(request)
        before = count_answers()
        first = next(saves)
        ask(first)
        at_reply = count_answers() - before
        engine.exchange(first.data)
        repeated = count_answers() - before
        statements, transactions = count_statements(), []
        for request in islice(saves, OBSERVED):
            number = next_transaction(stack)
            ask(request)
            transactions.append(next_transaction(stack) - number)
        statements = count_statements() - statements
    return {
        "answers_at_reply": at_reply,
        "answers_after_repeating": repeated,
        "transactions_per_save": statistics.median_low(transactions),
        "statements_per_save": round(statements / len(transactions), 1),
    }


def next_transaction(stack: Stack) -> int:
    """Return the number of the next transaction that writes."""
    [[number]] = stack.sql("SELECT pg_snapshot_xmax(pg_current_snapshot())")
    return int(number)


# Figures


def figures_of(
    turns: Mapping[str, Sequence[Mapping[str, Any]]],
    observed: Mapping[str, Mapping[str, Any]],
) -> dict[str, Any]:
    """Return medians of the turns, and how many times this program's each peer's is."""
    programs = {
        name: {
            **{
                key: statistics.median(turn[key] for turn in figures)
                for key in (*SHOWN, "p99_ms", "wal_bytes_per_save")
            },
            "failed": sum(turn["failed"] for turn in figures),
            "observed": observed[name],
            "turns": list(figures),
        }
        for name, figures in turns.items()
    }
    compared = {
        name: [{key: turn[key] for key in SHOWN} for turn in figures]
        for name, figures in turns.items()
    }
    ratios = {
        name: ratios_of_medians(compared[HERE], figures)
        for name, figures in compared.items()
        if name != HERE
    }
    return {"programs": programs, "ratios": ratios}


def shortcomings_of(result: Mapping[str, Any]) -> list[str]:
    """Say why the programs can't be compared: each has to store what it confirms."""
    shortcomings = [
        f"{name} is missing: {reason}"
        for name, reason in result["missing"].items()
        if name != "otree"
    ]
    for name, program in result["programs"].items():
        stored = program["observed"]["answers_at_reply"]
        if stored != ITEMS:
            shortcomings.append(
                f"{name} has stored {stored} of {ITEMS} when it replies"
            )
        if program["failed"]:
            shortcomings.append(f"{program['failed']} requests to {name} failed")
    return shortcomings


def unfit_to_keep(result: Mapping[str, Any]) -> list[str]:
    """Say why a result says too little to be quoted."""
    turns, machine = len(result["programs"][HERE]["turns"]), result["machine"]
    reasons = []
    if turns < FEWEST_TURNS:
        reasons.append(f"{turns} turns are fewer than {FEWEST_TURNS}")
    if (load := machine["load_average_before"]) > machine["cores"]:
        reasons.append(f"the machine was busy before: a load of {load}")
    return reasons


def print_result(result: Mapping[str, Any]) -> None:
    machine = result["machine"]
    print(
        f"{machine['cpu']}, {machine['cores']} cores, a flush {machine['flush_ms']} ms,"
        f" oTree {OTREE}"
    )
    print_table(
        ("", *(name.replace("_", " ") for name in (*SHOWN, "wal_bytes_per_save"))),
        [
            (name, *(f"{program[key]:,.0f}" for key in (*SHOWN, "wal_bytes_per_save")))
            for name, program in result["programs"].items()
        ],
    )
    print_table(
        ("this program, times", *(name.replace("_", " ") for name in SHOWN)),
        [
            (name, *(f"{ratios[key]:.3g}" for key in SHOWN))
            for name, ratios in result["ratios"].items()
        ],
    )
    observed = {name: each["observed"] for name, each in result["programs"].items()}
    columns = list(observed[HERE])
    print_table(
        ("stored", *(name.replace("_", " ") for name in columns)),
        [(name, *(each[key] for key in columns)) for name, each in observed.items()],
    )
