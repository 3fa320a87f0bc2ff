"""Wait for one jmeter/run --remote, send its part of the people, and end.

Every load server is given the same codes and takes a part of its own. It listens on
loopback, unless --address and --keystore are given.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import tempfile
from pathlib import Path

from provisioning.commands import Refusal, Stopped, command_parser
from provisioning.measure.jmeter.install import prepare_java, prepare_jmeter
from provisioning.measure.jmeter.jmeter_process import (
    java_command,
    rmi_options,
    why_ended,
)
from provisioning.measure.jmeter.options import HEADER, caller_path, read_codes
from provisioning.measure.load.target import is_loopback
from provisioning.processes import start_process, stop_process

# Longer than any rehearsal; a server that no run has called ends too.
LONGEST = 4 * 60 * 60


def main() -> int:
    options = parse_options()
    if not is_loopback(options.address) and not options.keystore:
        raise Refusal("Without --keystore a load server stays on loopback")
    java, jmeter = prepare_java(), prepare_jmeter()
    with tempfile.TemporaryDirectory(prefix="groundswell-jmeter-") as folder:
        scratch = Path(folder)
        log = scratch / "jmeter.log"
        people = write_part(options.codes, scratch / "codes.csv", options.part)
        command = java_command(java, jmeter, heap=options.heap, scratch=scratch)
        command += rmi_options(options.keystore, address=options.address)
        command += ["-s", "-j", str(log)]
        command += [f"-Jcodes={scratch / 'codes'}", "-Jserver.exitaftertest=true"]
        command += [f"-Jserver_port={options.port}"]
        command += [f"-Jserver.rmi.port={options.port}"]
        command += [f"-Jserver.rmi.localport={options.rmi_port or options.port + 1}"]
        print(f"{people:,} people wait on {options.address}:{options.port}", flush=True)
        process = start_process(
            command,
            output=subprocess.DEVNULL,
            cwd=scratch,
            parent_signal=signal.SIGKILL,
        )
        try:
            status = process.wait(timeout=LONGEST)
        except subprocess.TimeoutExpired:
            raise Refusal("No run called, and the load server ended") from None
        except Stopped:
            return 0
        finally:
            stop_process(process)
        if status:
            text = log.read_text(errors="replace") if log.exists() else ""
            raise Refusal(f"JMeter can't serve here: {why_ended(text, which=-1)}")
    print("The run is over.")
    return 0


def parse_options() -> argparse.Namespace:
    parser = command_parser(__doc__)
    add = parser.add_argument
    add("--codes", type=caller_path, required=True, help="the CSV file of jmeter_data")
    add(
        "--part",
        type=_part,
        default="1/1",
        metavar="N/M",
        help="of the people; %(default)s",
    )
    add("--address", default="127.0.0.1", help="of this machine; %(default)s")
    add("--port", type=int, default=1099, help="and the next one; %(default)s")
    add("--rmi-port", type=int, help="instead of the next one")
    add("--keystore", type=caller_path, help="the one that jmeter/run is given")
    add("--heap", default="2g", help="of JMeter, at most; %(default)s")
    return parser.parse_args()


def _part(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"([1-9]\d*)/([1-9]\d*)", text)
    part, parts = (int(match[1]), int(match[2])) if match else (1, 0)
    if part > parts:
        raise argparse.ArgumentTypeError(f"{text} is no part such as 2/3")
    return part, parts


def write_part(codes: Path, path: Path, part: tuple[int, int]) -> int:
    """Write every M-th line from the N-th on; return their number."""
    number, parts = part
    lines = read_codes(codes)[number - 1 :: parts]
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.writelines(f"{line}\n" for line in [HEADER, *lines])
    return len(lines)
