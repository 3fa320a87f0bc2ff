"""Make the rules of Prometheus, the dashboard of Grafana and the guide's table.

Runs in Django, because the dashboard is made from the metrics themselves: each has one
panel, whose kind follows from the metric's, with its HELP text.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from provisioning.monitoring.alerts import ALERTS, Alert

WIDTH, HEIGHT, COLUMNS = 8, 8, 3
# Sections of the dashboard: what the names of their metrics begin with. What is in none
# of them is in the last.
SECTIONS = {
    "Respondents": ("page_saves", "request_", "logins", "wrong_codes", "errors"),
    "Waiting and pools": ("listen_", "pool_", "sessions"),
    "Servers": (
        "up",
        "replica_",
        "commits",
        "wal_",
        "clock_",
        "disk_",
        "conntrack_",
        "certificate_",
    ),
    "Caches": ("cache_", "redis_"),
    "Jobs and workers": ("queue_", "jobs_", "workers_", "survey_day_"),
    "Backups": ("backup_", "drill_", "restore_", "log_"),
    "Roster feeds": ("feed_",),
    "E-mails and message platforms": ("email_", "messages"),
    "Others": ("",),
}
RATE = "[$__rate_interval]"
MARKS = ("<!-- alerts: begin -->", "<!-- alerts: end -->")


@dataclass(frozen=True, slots=True)
class MetricInfo:
    """A metric, without the prefix of the product."""

    name: str
    # counter, gauge or histogram.
    kind: str
    labels: tuple[str, ...]
    help: str

    def series(self) -> tuple[str, ...]:
        """Return the names that Prometheus stores."""
        full = f"groundswell_{self.name}"
        if self.kind == "histogram":
            return tuple(f"{full}_{part}" for part in ("bucket", "count", "sum"))
        return (f"{full}_total",) if self.kind == "counter" else (full,)


def metrics() -> list[MetricInfo]:
    """Return all metrics of /metrics, in the order of their definition."""
    # Not when this is imported: they need Django's settings.
    from settings.monitoring.metrics import ALL_CHILDREN  # noqa: TID251
    from settings.monitoring.metrics_page import SERVER_METRICS  # noqa: TID251

    counted = [
        MetricInfo(
            children.metric._name.removeprefix("groundswell_"),
            children.metric._type,
            tuple(children.metric._labelnames),
            children.metric._documentation,
        )
        for children in ALL_CHILDREN
    ]
    read = [
        MetricInfo(
            name.removesuffix("_total"),
            "counter" if name.endswith("_total") else "gauge",
            labels,
            text,
        )
        for name, (labels, text) in SERVER_METRICS.items()
    ]
    return [*counted, *read]


# Prometheus


def rules() -> str:
    """Return the file of rules."""
    group = {"name": "groundswell", "rules": [rule_of(alert) for alert in ALERTS]}
    return yaml.safe_dump({"groups": [group]}, sort_keys=False, width=1000)


def rule_of(alert: Alert) -> dict[str, Any]:
    return {
        "alert": f"Groundswell{alert.name}",
        "expr": alert.expression,
        **({"for": alert.lasting} if alert.lasting != "0m" else {}),
        "labels": {"severity": alert.severity},
        "annotations": {
            "summary": f"{alert.title[:1].upper()}{alert.title[1:]}",
            "description": plain(alert.action),
        },
    }


def plain(text: str) -> str:
    """Return Markdown without marks, with links as paths of this repository."""

    def path(link: re.Match[str]) -> str:
        return f"{link[1]} ({os.path.normpath(f'docs/guides/{link[2]}')})"

    text = re.sub(r"\[([^]]+)\]\(([^)]+)\)", path, text)
    text = re.sub(r"[`*]", "", text)
    return f"{text[:1].upper()}{text[1:]}."


# The guide


def table() -> str:
    """Return the alerts as a table in Markdown."""
    lines = ["| alert | expression | holds for | what to do |", "|---|---|---|---|"]
    for alert in ALERTS:
        expression = alert.expression.replace("|", "\\|")
        name = f"**{alert.title}**" if alert.severity == "critical" else alert.title
        lasting = alert.lasting if alert.lasting != "0m" else ""
        lines.append(f"| {name} | `{expression}` | {lasting} | {alert.action} |")
    return "\n".join(lines)


def guide(text: str) -> str:
    """Return the guide with the table between its marks."""
    begin, end = MARKS
    before, _, rest = text.partition(begin)
    after = rest.partition(end)[2]
    return f"{before}{begin}\n\n{table()}\n\n{end}{after}"


# Grafana


def dashboard() -> str:
    """Return the dashboard as JSON."""
    content = json.dumps(
        {
            "uid": "groundswell",
            "title": "Groundswell",
            "tags": ["groundswell"],
            "schemaVersion": 39,
            "editable": True,
            "refresh": "30s",
            "time": {"from": "now-3h", "to": "now"},
            "timezone": "browser",
            "templating": {"list": [_variable("datasource", "datasource")]},
            "panels": list(panels(metrics())),
        },
        indent=1,
        ensure_ascii=False,
    )
    return f"{content}\n"


def _variable(name: str, kind: str) -> dict[str, Any]:
    return {"name": name, "type": kind, "query": "prometheus", "label": "Data source"}


def panels(listed: Iterable[MetricInfo]) -> Iterator[dict[str, Any]]:
    left = list(listed)
    number = top = 0
    for section, beginnings in SECTIONS.items():
        members = [metric for metric in left if metric.name.startswith(beginnings)]
        left = [metric for metric in left if metric not in members]
        if not members:
            continue
        number += 1
        yield {
            **{"id": number, "type": "row", "title": section, "collapsed": False},
            "panels": [],
            "gridPos": {"x": 0, "y": top, "w": WIDTH * COLUMNS, "h": 1},
        }
        top += 1
        for index, metric in enumerate(members):
            number += 1
            line, column = divmod(index, COLUMNS)
            position = {"x": column * WIDTH, "y": top + line * HEIGHT}
            yield panel(metric, number, {**position, "w": WIDTH, "h": HEIGHT})
        top += -(-len(members) // COLUMNS) * HEIGHT


def panel(
    metric: MetricInfo, number: int, position: Mapping[str, int]
) -> dict[str, Any]:
    source = {"type": "prometheus", "uid": "${datasource}"}
    targets = [
        {"refId": letter, "expr": expression, "legendFormat": legend}
        for letter, (expression, legend) in zip("ABC", queries(metric), strict=False)
    ]
    words = re.sub("_(seconds|bytes|timestamp_seconds)$", "", metric.name)
    return {
        "id": number,
        "type": "timeseries",
        "title": words.replace("_", " ").capitalize(),
        "description": metric.help,
        "datasource": source,
        "gridPos": dict(position),
        "fieldConfig": {"defaults": {"unit": unit_of(metric)}, "overrides": []},
        "options": {"legend": {"displayMode": "list", "placement": "bottom"}},
        "targets": [target | {"datasource": source} for target in targets],
    }


def queries(metric: MetricInfo) -> Iterator[tuple[str, str]]:
    """Yield expressions of PromQL with their legends."""
    (first, *_) = metric.series()
    by = ", ".join(metric.labels)
    legend = " ".join(f"{{{{{label}}}}}" for label in metric.labels)
    if metric.kind == "histogram":
        labels = ", ".join(("le", *metric.labels))
        for share in (0.5, 0.99):
            rate = f"sum by ({labels}) (rate({first}{RATE}))"
            yield f"histogram_quantile({share}, {rate})", f"p{share * 100:g} {legend}"
    elif metric.kind == "counter":
        yield f"sum by ({by}) (rate({first}{RATE}))", legend or "a second"
    elif metric.name.endswith("timestamp_seconds"):
        sign = "{0} - time()" if "certificate" in metric.name else "time() - {0}"
        yield sign.format(first), legend or "{{instance}}"
    else:
        yield first, f"{legend} {{{{instance}}}}".strip()


def unit_of(metric: MetricInfo) -> str:
    """Return Grafana's name of the unit."""
    if metric.kind == "counter":
        return "ops"
    if metric.name.endswith("seconds"):
        return "s"
    if metric.name.endswith("bytes"):
        return "bytes"
    return "percentunit" if metric.name.endswith("ratio") else "short"


def write(folder: str, guide_path: str) -> None:
    """Write all three files."""
    page = Path(guide_path)
    Path(folder, "alerts.yml").write_text(rules())
    Path(folder, "dashboard.json").write_text(dashboard())
    page.write_text(guide(page.read_text()))
