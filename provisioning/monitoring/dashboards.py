"""Write the rules of Prometheus, the dashboard of Grafana, and the guide to alerts.

From the metrics of /metrics and from provisioning/monitoring/alerts.py. A test fails
once a metric or an alert has changed since.
"""

from __future__ import annotations

import os

from provisioning.commands import ROOT, command_parser, output_of, step
from provisioning.in_django import arguments_for
from provisioning.installation.environment import PRODUCTION, PYTHON, STACK
from provisioning.installation.environment import prepare_environment as prepare

FOLDER = ROOT / "provisioning" / "monitoring"
GUIDE = ROOT / "docs" / "guides" / "alerts.md"


def main() -> int:
    command_parser(__doc__).parse_args()
    prepare(PRODUCTION, STACK)
    with step("Writing alerts.yml, dashboard.json and docs/guides/alerts.md"):
        output_of(
            [
                PYTHON,
                *arguments_for(
                    "monitoring.documents.write",
                    folder=str(FOLDER),
                    guide_path=str(GUIDE),
                ),
            ],
            failing="They can't be written",
            env={**os.environ, "DJANGO_SETTINGS_MODULE": "settings.test"},
        )
    return 0
