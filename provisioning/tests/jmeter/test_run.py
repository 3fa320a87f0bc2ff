from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import stat
import subprocess
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from provisioning import processes
from provisioning.commands import ROOT, Refusal
from provisioning.jmeter import install, shapes
from provisioning.jmeter.options import LEVELS, add_arguments, check_target, is_loopback
from provisioning.jmeter.report import answered_between, arrivals
from provisioning.jmeter.run import PLAN
from provisioning.jmeter.server import write_part
from provisioning.jmeter.service_levels import (
    SAMPLERS,
    judge,
    read_levels,
    table_rows,
)

pytestmark = pytest.mark.once


def run(name: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [ROOT / "jmeter" / name, *arguments],
        cwd="/",
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )


def statistics(**changes: dict) -> dict:
    of = {
        "sampleCount": 1000,
        "errorCount": 0,
        "errorPct": 0.0,
        "pct1ResTime": 3.0,
        "pct2ResTime": 20.0,
        "pct3ResTime": 60.0,
        "maxResTime": 90.0,
    }
    return {one: {**of, **changes.get(one, {})} for one in (*SAMPLERS, "Total")}


def missed(measured: dict, rate: float = 1, people: float = 1) -> list[str]:
    levels = read_levels(LEVELS, "day")
    verdict = judge(measured, rate=rate, people=people, levels=levels)
    return [f"{one.sampler} {one.measure}" for one in verdict if not one.held]


# The levels


def test_a_run_that_holds_its_levels():
    assert missed(statistics()) == []


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize(
    ("column", "value", "measure"),
    [
        ("errorPct", 0.01, "error_percent"),
        ("pct2ResTime", 151, "p95_ms"),
        ("pct3ResTime", 251, "p99_ms"),
    ],
)
def test_one_figure_too_many_is_named(sampler, column, value, measure):
    measured = statistics(**{sampler: {column: value}})
    assert missed(measured) == [f"{sampler} {measure}"]


def test_a_rate_that_was_not_reached():
    assert missed(statistics(), rate=0.95) == []
    assert missed(statistics(), rate=0.949) == ["all rate_percent"]
    # A load generator that cannot bring the people must not look like a success.
    assert missed(statistics(), people=0.94) == ["all people_percent"]


def test_a_view_that_nobody_asked_is_missed():
    measured = statistics()
    del measured["survey_complete"]
    assert missed(measured) == ["survey_complete requests"]
    assert ["survey_complete", "none *"] in [
        row[:2] for row in table_rows(measured, [])
    ]


def test_the_table_marks_what_was_missed():
    measured = statistics(survey_login={"errorPct": 2.5})
    verdict = judge(measured, rate=1, people=1, levels=read_levels(LEVELS, "day"))
    rows = {row[0]: " ".join(row) for row in table_rows(measured, verdict)}
    assert "2.5*" in rows["survey_login"]
    assert "*" not in rows["survey_display"]


@pytest.mark.parametrize("shape", ["day", "bell"])
def test_both_shapes_have_levels_for_every_view(shape):
    levels = read_levels(LEVELS, shape)
    assert levels["error_percent"] == 0
    assert levels["rate_percent"] >= 95
    assert all(
        {"p95_ms", "p99_ms"} <= one.keys() for one in levels["samplers"].values()
    )


@pytest.mark.parametrize(
    "spoil",
    [
        lambda levels: levels.pop("day"),
        lambda levels: levels["day"].pop("error_percent"),
        lambda levels: levels["day"]["samplers"].pop("survey_login"),
        lambda levels: levels["day"]["samplers"]["survey_login"].update(p98=1),
    ],
)
def test_levels_that_would_judge_less_are_refused(spoil, tmp_path):
    levels = json.loads(LEVELS.read_text())
    spoil(levels)
    path = tmp_path / "slo.json"
    path.write_text(json.dumps(levels))
    with pytest.raises(Refusal, match=r"slo\.json"):
        read_levels(path, "day")


def test_only_good_answers_of_the_time_in_question_count():
    results = [
        "timeStamp,elapsed,label,success\n",
        "1000,10,survey_login,true\n",
        "1990,10,survey_login,true\n",
        "1500,10,survey_login,false\n",
        "900,50,survey_login,true\n",
    ]
    assert answered_between(results, 1000, 2000) == 1


def test_a_person_comes_with_the_first_request():
    results = [
        "timeStamp,threadName\n",
        *("3000,people 1-2\n", "1000,people 1-1\n", "900,people 1-2\n"),
    ]
    assert arrivals(results) == [900, 1000]


# How many come


def test_people_are_computed_from_requests():
    assert shapes.requests_per_person(10) == pytest.approx(27.7)
    load = shapes.day(rate=277, duration=60, pages=10, think=3, ramp=10)
    assert load.arrivals == pytest.approx(10)
    assert load.ends - load.begins == 60
    # The last to come in that time are still busy when it ends.
    assert load.begins >= load.ramp + 10 * 3


def test_what_was_drawn_is_what_those_who_came_bring():
    load = shapes.day(rate=277, duration=60, pages=10, think=3, ramp=10)
    even = [second / 10 for second in range(100, 1200)]
    assert load.drawn(even) == pytest.approx(277, rel=0.01)
    # Nobody came in the first half of the time that is looked at.
    late = [came for came in even if came > load.begins + 30]
    assert load.drawn(late) < 277 / 2
    assert load.drawn([0.0]) == 0


def test_at_the_bell_200_classes_come_for_1250_requests_a_second():
    load = shapes.bell(rate=1250, duration=133, pages=10, within=20)
    assert load.people == 6002
    assert str(load).startswith("6,002 people, 200 classes of 30, within 20 s")
    assert load.properties()["ramp"] == "0.0"


def test_load_servers_share_the_arrivals():
    load = shapes.day(rate=277, duration=60, pages=10, think=3, ramp=10)
    assert load.properties(servers=4)["arrivals"] == "2.5000"


def test_each_load_server_takes_people_of_its_own(tmp_path):
    codes = tmp_path / "codes.csv"
    codes.write_text("code,take\n" + "".join(f"C{n},1\n" for n in range(7)))
    parts = [tmp_path / f"{n}.csv" for n in (1, 2, 3)]
    assert [write_part(codes, p, (n, 3)) for n, p in enumerate(parts, 1)] == [3, 2, 2]
    lines = [line for part in parts for line in part.read_text().split()[1:]]
    assert sorted(lines) == [f"C{n},1" for n in range(7)]
    assert stat.S_IMODE(parts[0].stat().st_mode) == 0o600


# The plan


@pytest.fixture(scope="module")
def plan() -> ElementTree.Element:
    return ElementTree.parse(PLAN).getroot()  # noqa: S314


def test_the_samplers_are_the_five_views(plan):
    names = [one.get("testname") for one in plan.iter("HTTPSamplerProxy")]
    assert set(names) == set(SAMPLERS)
    # A save, the same again, and a changed one.
    assert names.count("survey_change_page") == 3


def test_every_save_is_held_to_its_own_receipt(plan):
    for sampler, tree in samplers(plan, "survey_change_page"):
        body = text(sampler, "Argument.value")
        assert '"answers":${__P(take.${take}.${step}.' in body
        pattern = text(tree.find("ResponseAssertion"), "1")
        assert r'"revision":\s*${revision}[,}]' in pattern
        assert '"saved"' in pattern
        # Python reads this pattern as JMeter does.
        pattern = re.sub(r"\$\{__P\(take.*?items\)\}", "5", pattern)
        pattern = pattern.replace("${revision}", "17")
        assert re.search(pattern, '{"saved": 5, "revision": 17, "at": "…"}')
        assert re.search(pattern, '{"saved":5,"revision":17}')
        assert not re.search(pattern, '{"saved": 5, "revision": 177, "at": "…"}')
        assert not re.search(pattern, '{"saved": 4, "revision": 17, "at": "…"}')


def test_every_request_is_looked_at(plan):
    for name in SAMPLERS:
        for _, tree in samplers(plan, name):
            assert tree.find("ResponseAssertion") is not None


def test_load_goes_nowhere_unless_told(plan):
    target = plan.find(".//ConfigTestElement")
    assert text(target, "HTTPSampler.domain") == "${__P(host,127.0.0.1)}"
    listener = plan.find(".//BackendListener")
    assert listener.get("enabled") == "false"
    assert PLAN.read_text().count('enabled="false"') == 1


def samplers(plan, name):
    """Each sampler with what stands below it."""
    for tree in plan.iter("hashTree"):
        children = list(tree)
        for one, below in zip(children, children[1:], strict=False):
            if one.tag == "HTTPSamplerProxy" and one.get("testname") == name:
                yield one, below


def text(element, name: str) -> str:
    return next(one.text for one in element.iter() if one.get("name") == name)


# What is refused


@pytest.mark.parametrize("name", ["install", "run", "ladder", "server"])
def test_every_command_explains_itself(name):
    done = run(name, "--help")
    assert done.returncode == 0
    assert f"usage: jmeter/{name}" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--rate", "0"), "0 is not a number above 0"),
        (("--rate", "9", "--host", "192.0.2.1"), "192.0.2.1 is not this machine"),
        (("--rate", "9", "--remote", "127.0.0.1"), "--remote needs the --codes"),
        (("--rate", "9", "--codes", "x.csv"), "--codes and --pages belong together"),
        (("--rate", "9", "--slo", "/nowhere.json"), "/nowhere.json"),
    ],
)
def test_one_line_says_what_is_wrong(arguments, says):
    done = run("run", *arguments)
    assert done.returncode
    last = done.stderr.splitlines()[-1]
    assert last.startswith("jmeter/run: ")
    assert says in last
    assert "Traceback" not in done.stderr


def options_of(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return parser.parse_args(arguments)


def test_another_machine_is_loaded_only_by_somebody_who_may():
    with pytest.raises(Refusal, match="is not this machine"):
        check_target(options_of("--host", "192.0.2.1"))
    check_target(options_of("--host", "192.0.2.1", "--elsewhere"))
    check_target(options_of("--host", "127.0.0.9"))
    data = ("--codes", "c.csv", "--pages", "p.properties")
    with pytest.raises(Refusal, match=r"192\.0\.2\.7 is not this machine"):
        check_target(options_of(*data, "--remote", "127.0.0.1,192.0.2.7:1099"))
    with pytest.raises(Refusal, match="need --keystore"):
        check_target(options_of(*data, "--remote", "192.0.2.7", "--elsewhere"))


def test_what_is_this_machine():
    assert is_loopback("localhost")
    assert is_loopback("::1")
    assert not is_loopback("192.0.2.1")


def test_a_load_server_stays_on_loopback(tmp_path):
    done = run("server", "--codes", "c.csv", "--address", "192.0.2.1")
    assert done.returncode == 1
    assert "stays on loopback" in done.stderr


# Installing


@pytest.fixture
def repository(tmp_path, monkeypatch) -> Path:
    """A Maven repository of one artifact and one with JMeter's configuration."""
    import zipfile

    folder = tmp_path / "maven"
    folder.mkdir()
    (folder / "ApacheJMeter-5.6.3.jar").write_bytes(b"starts JMeter")
    with zipfile.ZipFile(folder / "ApacheJMeter_config-5.6.3.jar", "w") as jar:
        jar.writestr("bin/jmeter.properties", "x=1\n")
        jar.writestr("elsewhere", "not wanted")
    listed = tmp_path / "artifacts.txt"
    lines = [
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n"
        for path in sorted(folder.iterdir())
    ]
    listed.write_text("# a comment\n" + "".join(lines).replace("  A", "  x/A"))
    (folder / "x").mkdir()
    for path in list(folder.glob("*.jar")):
        path.rename(folder / "x" / path.name)
    monkeypatch.setattr(install, "ARTIFACTS", listed)
    monkeypatch.setenv("MAVEN_MIRROR", folder.as_uri())
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return folder


def test_jmeter_is_put_together_once(repository, monkeypatch):
    home = install.prepare_jmeter()
    assert (home / "bin" / "ApacheJMeter.jar").read_bytes() == b"starts JMeter"
    assert (home / "bin" / "jmeter.properties").exists()
    assert not (home / "elsewhere").exists()
    monkeypatch.setenv("MAVEN_MIRROR", "file:///nowhere")
    assert install.prepare_jmeter() == home


def test_another_file_than_the_expected_one_is_refused(repository):
    (repository / "x" / "ApacheJMeter-5.6.3.jar").write_bytes(b"something else")
    with pytest.raises(Refusal, match="is not what jmeter/artifacts.txt expects"):
        install.prepare_jmeter()
    assert not (install.cache_folder() / install.NAME).exists()


def test_the_list_names_each_artifact_once():
    names = [one.name for one in install.read_artifacts()]
    assert len(names) == len(set(names))
    assert "ApacheJMeter_http-5.6.3.jar" in names


# Whose the processor was


def test_seconds_are_counted_by_program():
    before = {1: ("nginx", 5.0), 2: ("java", 1.0), 9: ("gone", 4.0)}
    after = {1: ("nginx", 6.0), 2: ("java", 4.0), 3: ("java", 2.0)}
    assert processes.cpu_used_by_program(before, after) == {"java": 5.0, "nginx": 1.0}
    assert os.getpid() in processes.cpu_seconds_by_process()


def test_a_worker_that_ended_meanwhile_is_counted_once():
    # It had used 30 s before; all of its 70 are its master's now.
    before = {1: ("gunicorn", 10.0), 2: ("gunicorn", 30.0)}
    after = {1: ("gunicorn", 80.0), 3: ("gunicorn", 5.0)}
    assert processes.cpu_used_by_program(before, after) == {"gunicorn": 45.0}
