"""Run a function of `provisioning` in an application, for `Application.call`.

Called with its path and its arguments as JSON; the last line printed is JSON.
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
    module, _, name = path.rpartition(".")
    function = getattr(import_module(f"provisioning.{module}"), name)
    # The stack's workers are told of the jobs of `scan` alone.
    settings.JOBS_BY_MESSAGE = name == "scan"
    print(json.dumps(function(**json.loads(arguments))))
