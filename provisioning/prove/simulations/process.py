"""Run a simulation with the product's code, in a process of its own."""

from __future__ import annotations

import json
import os
from typing import Any

from provisioning.commands import ROOT, output_of, step
from provisioning.in_django import arguments_for
from provisioning.installation.environment import (
    PRODUCTION,
    PYTHON,
    prepare_environment,
)


def simulated_figures(module: str, doing: str, **arguments: int) -> Any:
    """Return what `simulate` of this module of this folder returns."""
    prepare_environment(PRODUCTION)
    path = f"prove.simulations.{module}.simulate"
    with step(doing):
        output = output_of(
            [PYTHON, *arguments_for(path, **arguments)],
            failing="The simulation failed",
            cwd=ROOT,
            env={**os.environ, "DJANGO_SETTINGS_MODULE": "settings.test"},
        )
    return json.loads(output.splitlines()[-1])
