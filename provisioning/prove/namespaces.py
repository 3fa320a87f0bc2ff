"""Start a proof in namespaces of its own: networks, mounts and processes."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Callable, Sequence

from provisioning.commands import Refusal, scratch_folder
from provisioning.installation.environment import (
    PRODUCTION,
    PYTHON,
    STACK,
    prepare_environment,
)
from provisioning.processes import start_process

# Everything that is started or mounted ends with the process namespace.
OF_PROCESSES = (
    *("unshare", "--mount", "--propagation=private", "--pid"),
    *("--fork", "--kill-child", "--mount-proc"),
)
# A shell is its first process, because that one has to reap what killed programs leave.
NAMESPACES = (*OF_PROCESSES, "--net", *("sh", "-c", '"$@"; exit $?', "sh"))


def run_in_namespaces(
    module: str,
    options: argparse.Namespace,
    *,
    install: Callable[[], None],
    namespaces: Sequence[str] = NAMESPACES,
) -> int:
    """Run a module with the caller's arguments, in namespaces that end with it.

    `install` brings packages before that: later there may be no network to fetch them
    from. Of `options`, `keep` and `folder` say what becomes of its files.
    """
    if os.geteuid() != 0:
        raise Refusal("Only root can make network namespaces; try sudo")
    prepare_environment(PRODUCTION, STACK)
    install()
    command = [*namespaces, str(PYTHON), "-m", "provisioning", module]
    parent = [options.folder] if options.folder else []
    with scratch_folder(*parent, keep=options.keep) as folder:
        process = start_process(
            [*command, *sys.argv, f"--folder={folder}"],
            parent_signal=signal.SIGKILL,
        )
        try:
            return process.wait()
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)
                process.wait()
