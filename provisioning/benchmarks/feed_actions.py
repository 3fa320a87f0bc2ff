"""Run a function of `feed_rows` or `feed_jobs` in the application of a stack.

Called with its name and its arguments as JSON; the last line printed is JSON.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module

import django
from django.conf import settings

if __name__ == "__main__":
    django.setup()
    path, arguments = sys.argv[1:]
    module, _, name = path.partition(".")
    function = getattr(import_module(f"provisioning.benchmarks.{module}"), name)
    # The stack's workers are told of the jobs of `scan` alone.
    settings.JOBS_BY_MESSAGE = name == "scan"
    print(json.dumps(function(**json.loads(arguments))))
