"""Run a function of `provisioning` in Django, in a process of its own.

Called with its path and its arguments as JSON, as `arguments_for` writes them; the last
line printed is its result as JSON.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module


def arguments_for(path: str, /, **arguments: object) -> list[str]:
    """Return the arguments of Python that run a function in Django."""
    return ["-m", "provisioning.in_django", path, json.dumps(arguments)]


def main(path: str, arguments: str) -> None:
    import django
    from django.conf import settings

    django.setup()
    module, _, name = path.rpartition(".")
    function = getattr(import_module(f"provisioning.{module}"), name)
    # The stack's workers are told of the jobs of `scan` alone.
    settings.JOBS_BY_MESSAGE = name == "scan"
    print(json.dumps(function(**json.loads(arguments))))


if __name__ == "__main__":
    main(*sys.argv[1:])
