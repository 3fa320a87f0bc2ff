"""Count instructions and system calls of a respondents' worker, by kind of request.

valgrind and strace count the same on a busy machine as on a quiet one, so that a change
of a few percent can be seen where a clock shows nothing. People of a rehearsal take
their survey, one request at a time, from one worker of its own beside the stack that
runs here (provisioning/stack up). Instructions are those of the worker itself, without
the kernel; system calls are a measure of its part.

The figures of the product as it is are kept in provisioning/measured/instructions.json:
a test refuses a revision that needs 3 % more for a kind of request. Other versions of
Python, Django and psycopg2, or another processor's code, count differently and are not
compared.
"""

from __future__ import annotations

import json
import os
import platform
import re
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from struct import pack
from typing import Any, NamedTuple

from provisioning.commands import (
    ROOT,
    Refusal,
    caller_path,
    command_parser,
    conclude,
    listen,
    output_of,
    print_table,
    step,
    wait_until,
)
from provisioning.installation.environment import (
    PYTHON,
    install_packages,
    path_of_program,
)
from provisioning.installation.stack_folder import environment_of
from provisioning.measure.benchmarks.stack import Stack, running_stack
from provisioning.measure.load.crowd import send
from provisioning.measure.load.respondent import (
    CONTENT,
    RehearsalSurvey,
    Request,
    Respondent,
    save_requests,
)
from provisioning.measure.load.target import Target, target_of
from provisioning.processes import start_process, stop_process

PAGES, ITEMS = 20, 5
# People who come first, so that what a process keeps is there.
WARM = 3
# What a release may cost more than the figures that are kept.
MOST_GROWTH = 0.03
KEPT = ROOT / "provisioning" / "measured" / "instructions.json"
# Figures are comparable only where these are the same. Requests spend most of their
# instructions in these packages.
PACKAGES = ("django", "psycopg2")
SAME = ("python", *PACKAGES, "architecture")
# Saves of a visit of the model case, which has as many pages.
SAVES_PER_VISIT = 45
# Under valgrind a process starts thirty times slower.
PATIENCE = 300.0
SUMMARY = re.compile(r"^(?:summary|totals): (\d+)", re.MULTILINE)
CALL = re.compile(
    r"^\s*[\d.]+\s+[\d.]+\s+\d+\s+(\d+)(?:\s+\d+)?\s+(\w+)$", re.MULTILINE
)
# nginx's headers for page saves, which are all that reach a worker.
FORWARDED = (
    b"Connection: close\r\nX-Forwarded-For: 127.0.0.1\r\nX-Forwarded-Proto: http\r\n"
    b"X-Request-ID: 0123456789abcdef0123456789abcdef"
)

# gunicorn whose first worker is its own process: valgrind takes commands only there.
# Nearly every request is slow under valgrind, and a line about it would count too.
ONE_PROCESS = """
import os
os.fork, os.getppid = int, os.getpid
from settings.monitoring import middleware
middleware.SLOW = float("inf")
from gunicorn.app.wsgiapp import run
run()
"""

# What each person sends at a time, in the order of a visit.
STEPS: Mapping[str, Callable[[Respondent], Iterator[Request]]] = {
    "login_page": lambda person: iter([person.login_page()]),
    "login": lambda person: iter([person.login()]),
    "display": lambda person: iter([person.display()]),
    "content": lambda person: iter([person.content(1)]),
    "save": lambda person: save_requests(person, range(1, PAGES + 1)),
    "review": lambda person: iter([person.review()]),
    "finish": lambda person: iter([person.finish()]),
    "thanks": lambda person: iter([person.thanks()]),
}


class Worker(NamedTuple):
    target: Target
    pid: int


class Count(NamedTuple):
    """Of one kind of request, for each of them."""

    instructions: float
    # By their names; empty where they are not counted.
    calls: Mapping[str, float]

    @property
    def system_calls(self) -> float:
        return sum(self.calls.values())


def main() -> int:
    parser = command_parser(__doc__, people=(10, "whose visits are counted"))
    use = parser.add_mutually_exclusive_group()
    use.add_argument(
        "--against",
        type=caller_path,
        nargs="?",
        const=KEPT,
        metavar="FILE",
        help=f"compare instructions, and fail if a kind needs {MOST_GROWTH:.0%}% more"
        " than in this file (default: the kept figures); counts no system calls",
    )
    use.add_argument(
        "--keep", action="store_true", help=f"write {KEPT.relative_to(ROOT)} anew"
    )
    parser.add_argument(
        "--application", default="survey.taking.wsgi", help="a WSGI module"
    )
    options = parser.parse_args()
    stack = running_stack()
    if options.against and (why_not := why_not_comparable(options.against)):
        print(f"Nothing is compared: {why_not}")
        return 0
    for program in ("valgrind",) if options.against else ("valgrind", "strace"):
        if not path_of_program(program):
            install_packages([program])
    with step("Inviting people"):
        details, codes = stack.open_rehearsal(
            *("--name=instructions", "--empty", f"--pages={PAGES}"),
            *(f"--items={ITEMS}", f"--respondents={2 * (options.people + WARM)}"),
        )
    survey, half = RehearsalSurvey.of(details), options.people + WARM
    instructions = count_instructions(stack, options.application, survey, codes[:half])
    calls: Mapping[str, Mapping[str, float]] = {}
    if not options.against:
        calls = count_system_calls(stack, options.application, survey, codes[half:])
    counts = {kind: Count(instructions[kind], calls.get(kind, {})) for kind in STEPS}
    print_counts(counts)
    figures = identity() | figures_of(counts)
    if options.keep:
        KEPT.write_text(json.dumps(figures, indent=1) + "\n")
    earlier = json.loads(options.against.read_text()) if options.against else {}
    return conclude(figures, grown(figures, earlier))


def print_counts(counts: Mapping[str, Count]) -> None:
    print_table(
        ("request", "instructions", "system calls", "which"),
        [
            (
                kind,
                f"{count.instructions:,.0f}",
                f"{count.system_calls:.1f}",
                ", ".join(
                    f"{name} {number:.3g}"
                    for name, number in sorted(
                        count.calls.items(), key=lambda it: -it[1]
                    )
                    if number >= 0.05
                ),
            )
            for kind, count in counts.items()
        ],
    )


def identity() -> dict[str, str]:
    """Say what instructions depend on besides the product."""
    modules = [f"{name}.__version__.split()[0]" for name in PACKAGES]
    words = f"import platform, {', '.join(PACKAGES)};" + (
        f"print(platform.python_version(), {', '.join(modules)})"
    )
    versions = output_of([PYTHON, "-c", words], failing="Python does not start").split()
    here = dict(zip(("python", *PACKAGES), versions, strict=True))
    return here | {"architecture": platform.machine()}


def why_not_comparable(file: Path) -> str:
    """Return "" if figures of this file count the same instructions as those here."""
    there, here = json.loads(file.read_text()), identity()
    differing = [name for name in SAME if there.get(name) != here[name]]
    if not differing:
        return ""

    def words(figures: Mapping[str, str]) -> str:
        return ", ".join(f"{name} {figures.get(name, '?')}" for name in differing)

    return f"{file.name} has {words(there)}, and here is {words(here)}"


def figures_of(counts: Mapping[str, Count]) -> dict[str, Any]:
    times = {kind: SAVES_PER_VISIT if kind == "save" else 1 for kind in counts}
    calls = {
        f"{kind}_system_calls": round(each.system_calls, 1)
        for kind, each in counts.items()
        if each.calls
    }
    return {
        **{
            f"{kind}_instructions": round(each.instructions)
            for kind, each in counts.items()
        },
        **calls,
        "visit_instructions": round(
            sum(times[kind] * each.instructions for kind, each in counts.items())
        ),
    }


def grown(figures: Mapping[str, Any], earlier: Mapping[str, Any]) -> list[str]:
    """Say which instructions are above those that were kept."""
    return [
        f"{name} is {figures[name]:,}, which is {figures[name] / before - 1:.1%} more"
        " than the kept figure; where that is meant: provisioning/run instructions"
        " --keep"
        for name, before in earlier.items()
        if name.endswith("_instructions") and figures[name] > before * (1 + MOST_GROWTH)
    ]


# Counting


def count_instructions(
    stack: Stack, application: str, survey: RehearsalSurvey, codes: Sequence[str]
) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        valgrind = ["valgrind", "--tool=callgrind", "--instr-atstart=no"]
        valgrind += [f"--callgrind-out-file={folder}/out.%p", "--quiet"]
        with (
            step("Starting a worker under valgrind"),
            one_worker(stack, application, folder, *valgrind) as worker,
        ):

            def control(command: str) -> None:
                words = ["vgdb", f"--pid={worker.pid}", *command.split()]
                output_of(words, failing="valgrind refuses")

            @contextmanager
            def counted(kind: str) -> Iterator[None]:
                control("zero")
                yield
                control(f"dump {kind}")

            def ready() -> None:
                control("instrumentation on")

            requests = take_survey(worker.target, survey, codes, counted, ready)
        totals = totals_of(Path(folder))
    return {kind: totals[kind] / requests[kind] for kind in STEPS}


def totals_of(folder: Path) -> dict[str, int]:
    """Return the instructions of each dump, by its name."""
    totals = {}
    for path in folder.iterdir():
        text = path.read_text(errors="replace")
        if (kind := re.search(r"^desc: Trigger: .*?(\w+)$", text, re.MULTILINE)) and (
            total := SUMMARY.search(text)
        ):
            totals[kind[1]] = int(total[1])
    return totals


def count_system_calls(
    stack: Stack, application: str, survey: RehearsalSurvey, codes: Sequence[str]
) -> dict[str, dict[str, float]]:
    with (
        tempfile.TemporaryDirectory() as folder,
        one_worker(stack, application, folder) as worker,
    ):

        @contextmanager
        def counted(kind: str) -> Iterator[None]:
            command = ["strace", "-c", "-f", "-o", f"{folder}/{kind}"]
            with subprocess.Popen(
                [*command, "-p", str(worker.pid)],
                stderr=subprocess.PIPE,
                text=True,
            ) as strace:
                assert strace.stderr is not None  # noqa: S101
                # It says that it is attached.
                strace.stderr.readline()
                yield
                strace.send_signal(signal.SIGINT)

        requests = take_survey(worker.target, survey, codes, counted)
        return {
            kind: {
                name: int(number) / requests[kind]
                for number, name in CALL.findall(Path(folder, kind).read_text())
                if name != "total"
            }
            for kind in STEPS
        }


def take_survey(
    target: Target,
    survey: RehearsalSurvey,
    codes: Sequence[str],
    counted: Callable[[str], Any],
    ready: Callable[[], None] = lambda: None,
) -> dict[str, int]:
    """Let people take their surveys in step; return how many requests were counted."""
    people = [Respondent(code, survey, target) for code in codes]
    for steps in STEPS.values():
        for person in people[:WARM]:
            ask(target, steps(person))
    ready()
    requests = {}
    for kind, steps in STEPS.items():
        with counted(kind):
            requests[kind] = sum(ask(target, steps(each)) for each in people[WARM:])
    return requests


def ask(target: Target, requests: Iterator[Request]) -> int:
    """Send requests as nginx passes them on, each by a connection of its own."""

    def forwarded() -> Iterator[Request]:
        for each in requests:
            head, _, body = each.data.partition(b"\r\n\r\n")
            head += b"\r\n" + FORWARDED
            by_uwsgi = each.kind != CONTENT
            each.data = encode(head, body) if by_uwsgi else head + b"\r\n\r\n" + body
            yield each

    tally = send(target, [forwarded()], together=1, timeout=60).tally
    tally.refuse_failures()
    return tally.answered()


def encode(head: bytes, body: bytes) -> bytes:
    """Encode a request in HTTP by the uwsgi protocol, as nginx does."""
    line, *headers = head.split(b"\r\n")
    method, address, protocol = line.split()
    variables = {
        b"REQUEST_METHOD": method,
        b"REQUEST_URI": address,
        b"SERVER_PROTOCOL": protocol,
    }
    for header in headers:
        name, _, value = header.partition(b": ")
        name = name.upper().replace(b"-", b"_")
        variables[name if name.startswith(b"CONTENT_") else b"HTTP_" + name] = value
    del variables[b"HTTP_CONNECTION"]
    block = b"".join(
        pack("<H", len(part)) + part for pair in variables.items() for part in pair
    )
    return b"\0" + pack("<H", len(block)) + b"\0" + block + body


@contextmanager
def one_worker(
    stack: Stack, application: str, folder: str, *tool: str
) -> Iterator[Worker]:
    """Serve by one worker with the stack's configuration, under a tool."""
    environment = {**environment_of(stack.folder, "taking"), "PYTHONPATH": str(ROOT)}
    environment |= {"PYTHONHASHSEED": "0", "SUPERVISOR_PROCESS_NAME": "instructions"}
    # Not beside the metrics of the stack's workers, who are other users.
    environment |= {"PROMETHEUS_MULTIPROC_DIR": folder}
    with listen(0) as listener:
        target = target_of(f"http://127.0.0.1:{listener.getsockname()[1]}")
        server = start_process(
            [*tool, str(PYTHON), "-c", ONE_PROCESS, application]
            + [f"--config={stack.folder}/etc/taking/gunicorn.py", "--workers=1"]
            + ["--max-requests=0", "--timeout=0", f"--bind=fd://{listener.fileno()}"],
            cwd=ROOT,
            env={**os.environ, **environment},
            pass_fds=(listener.fileno(),),
        )
    ready = stack.run / "ready" / "instructions"
    try:
        if not wait_until(lambda: ready.exists() or server.poll(), seconds=PATIENCE):
            raise Refusal("The worker does not start")
        yield Worker(target, server.pid)
    finally:
        stop_process(server, seconds=60)
        ready.unlink(missing_ok=True)


if __name__ == "__main__":
    raise SystemExit(main())
