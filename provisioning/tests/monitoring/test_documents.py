"""Alerts and dashboards are of metrics that exist, and their files are up to date."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from itertools import combinations

import pytest
import yaml

from provisioning.monitoring import documents
from provisioning.monitoring.alerts import ALERTS
from provisioning.monitoring.dashboards import FOLDER, GUIDE
from provisioning.monitoring.documents import MetricInfo, metrics, queries

OLD = "out of date: run provisioning/run dashboards, and look at the difference"
NAME = re.compile(r"groundswell_\w+")
PROMTOOL = os.environ.get("PROMTOOL", "") or shutil.which("promtool") or ""


def known_series() -> set[str]:
    return {name for metric in metrics() for name in metric.series()}


def test_the_files_are_up_to_date():
    assert (FOLDER / "alerts.yml").read_text() == documents.rules(), OLD
    assert (FOLDER / "dashboard.json").read_text() == documents.dashboard(), OLD
    assert GUIDE.read_text() == documents.guide(GUIDE.read_text()), OLD


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_alerts_are_about_metrics_that_exist(alert):
    names = set(NAME.findall(alert.expression))
    assert names
    assert names <= known_series()
    assert alert.severity in ("critical", "warning")
    assert re.fullmatch(r"\d+[mh]", alert.lasting)


def test_a_name_that_is_wrong_is_noticed():
    assert "groundswell_page_saves_total" in known_series()
    assert "groundswell_page_saves" not in known_series()


def test_labels_in_alerts_are_those_of_the_metric():
    labels = {name: each.labels for each in metrics() for name in each.series()}
    for alert in ALERTS:
        for name, matched in re.findall(
            r"(groundswell_\w+)\{([^}]+)\}", alert.expression
        ):
            used = re.findall(r'(\w+)(?:=~|!=|=)"', matched)
            assert {*used} <= {*labels[name]}, alert.name


def test_each_metric_has_one_panel_with_its_help():
    panels = json.loads(documents.dashboard())["panels"]
    shown = [panel for panel in panels if panel["type"] != "row"]
    listed = metrics()
    assert len(shown) == len(listed)
    assert {panel["description"] for panel in shown} == {each.help for each in listed}
    names = {
        name
        for panel in shown
        for target in panel["targets"]
        for name in NAME.findall(target["expr"])
    }
    assert names <= known_series()
    assert len(names) == len(listed)


def test_panels_do_not_overlap():
    panels = json.loads(documents.dashboard())["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)

    def cells(panel):
        at = panel["gridPos"]
        return {
            (x, y)
            for x in range(at["x"], at["x"] + at["w"])
            for y in range(at["y"], at["y"] + at["h"])
        }

    for first, second in combinations(panels, 2):
        assert not cells(first) & cells(second)
    assert all(0 <= x < 24 for panel in panels for x, _ in cells(panel))


def test_a_new_metric_gets_a_panel_of_its_kind():
    new = [
        MetricInfo("new_total_of_things", "counter", ("kind",), "A new one."),
        MetricInfo("new_wait_seconds", "histogram", (), "Its time."),
    ]
    row, *shown = documents.panels(new)
    assert row["title"] == "Others"
    assert [panel["fieldConfig"]["defaults"]["unit"] for panel in shown] == ["ops", "s"]
    (rate, legend), *rest = queries(new[0])
    assert rate.startswith("sum by (kind) (rate(groundswell_new_total_of_things_total[")
    assert (legend, rest) == ("{{kind}}", [])
    assert [expression.split(",")[0] for expression, _ in queries(new[1])] == [
        "histogram_quantile(0.5",
        "histogram_quantile(0.99",
    ]


def test_rules_are_what_prometheus_reads():
    (group,) = yaml.safe_load(documents.rules())["groups"]
    assert len({rule["alert"] for rule in group["rules"]}) == len(ALERTS)
    for rule in group["rules"]:
        assert {"alert", "expr", "labels", "annotations"} <= {*rule}
        # Links are paths of this repository.
        assert "](" not in rule["annotations"]["description"]


@pytest.mark.skipif(
    not PROMTOOL,
    reason="promtool is not installed: Debian's prometheus, or"
    " go install github.com/prometheus/prometheus/cmd/promtool@latest and PROMTOOL=…",
)
@pytest.mark.parametrize(
    ("act", "file"), [("check", "alerts.yml"), ("test", "alerts_test.yml")]
)
def test_prometheus_accepts_the_rules_and_they_fire(act, file):
    command = [PROMTOOL, act, "rules", FOLDER / file]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
