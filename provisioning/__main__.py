"""Run a command, as python.sh does: `python -m provisioning MODULE NAME OPTIONS`."""

from __future__ import annotations

import sys
from importlib import import_module

from provisioning.commands import run_command

if __name__ == "__main__":
    module, *sys.argv = sys.argv[1:]
    sys.exit(run_command(sys.argv[0], lambda: import_module(module).main()))
