"""The plan and its properties, as one run is given them."""

from __future__ import annotations

import argparse
from pathlib import Path

from provisioning.commands import ROOT
from provisioning.jmeter.people import Data
from provisioning.jmeter.shapes import Load

PLAN = ROOT / "jmeter" / "survey.jmx"
USUAL_PORTS = {"http": 80, "https": 443}


def write_properties(
    path: Path, options: argparse.Namespace, data: Data, load: Load
) -> None:
    port = f":{options.port}"
    usual = options.port == USUAL_PORTS[options.protocol]
    own = {
        "protocol": options.protocol,
        "host": options.host,
        "port": str(options.port),
        "origin": f"{options.protocol}://{options.host}{'' if usual else port}",
        **load.properties(servers=max(1, len(options.remote))),
    }
    if options.influxdb:
        own["influxdb"] = options.influxdb
    if not options.remote:
        # A load server was told of its own codes when it was started.
        own["codes"] = str(data.codes.with_suffix(""))
    lines = [f"{name}={value}\n" for name, value in own.items()]
    path.write_text("".join(lines) + data.pages.read_text(encoding="ascii"))


def write_plan(path: Path, options: argparse.Namespace) -> None:
    text = PLAN.read_text(encoding="utf-8")
    if options.influxdb:
        text = text.replace(' enabled="false"', "")
    path.write_text(text, encoding="utf-8")
