from __future__ import annotations

import argparse
import json
from contextlib import ExitStack
from pathlib import Path

import pytest

from provisioning.commands import Refusal
from provisioning.measure.jmeter import run as jmeter_run
from provisioning.measure.jmeter.jmeter_process import JmeterRun
from provisioning.measure.jmeter.options import run_parser
from provisioning.measure.jmeter.run import (
    check_people,
    make_files,
    plan_properties,
)
from provisioning.measure.jmeter.shapes import load_of
from provisioning.measure.load.respondent import VIEWS


def options(*arguments: str, **changes: object) -> argparse.Namespace:
    options = run_parser("Runs.").parse_args(
        ["--shape", "bell", "--duration", "10", "--within", "5", *arguments]
    )
    return argparse.Namespace(**{**vars(options), "rate": 27.7, **changes})


LOAD = load_of(options(), pages=10)


@pytest.fixture
def codes(tmp_path: Path) -> Path:
    codes = tmp_path / "codes.csv"
    codes.write_text("code,take\n" + "".join(f"C{n},1\n" for n in range(10)))
    return codes


@pytest.fixture
def pages(tmp_path: Path) -> Path:
    pages = tmp_path / "pages.properties"
    pages.write_text("take.1.pages=10\n")
    return pages


def written(*arguments: str, **changes: object) -> dict[str, str]:
    text = plan_properties(options(*arguments, **changes), Path("/x/codes.csv"), LOAD)
    return dict(line.split("=", 1) for line in text.splitlines())


def test_too_few_people_are_refused_before_the_run(codes, pages):
    check_people(codes, pages, LOAD)
    codes.write_text("code,take\nC1,1\n")
    with pytest.raises(Refusal, match="1 people have codes, and the load needs 10"):
        check_people(codes, pages, LOAD)


@pytest.mark.parametrize(
    ("protocol", "port", "origin"),
    [
        ("http", "8080", "http://127.0.0.1:8080"),
        ("http", "80", "http://127.0.0.1"),
        ("https", "443", "https://127.0.0.1"),
        ("https", "80", "https://127.0.0.1:80"),
    ],
)
def test_the_origin_is_written_as_browsers_send_it(protocol, port, origin):
    assert written("--protocol", protocol, "--port", port)["origin"] == origin


def test_the_plan_reads_codes_and_target():
    assert written()["codes"] == "/x/codes"
    assert written()["arrivals"] == f"{LOAD.arrivals:.4f}"
    assert "influxdb" not in written()


def test_load_servers_keep_their_own_codes():
    properties = written("--remote", "a,b", "--influxdb", "http://x")
    assert "codes" not in properties
    assert properties["influxdb"] == "http://x"
    assert properties["arrivals"] == f"{LOAD.arrivals / 2:.4f}"


@pytest.fixture
def manage(tmp_path: Path) -> Path:
    """A manage.py that notes its arguments and writes the files it is asked for."""
    program = tmp_path / "manage"
    program.write_text(
        f"""#!/bin/sh
echo "$@" >> {tmp_path}/calls
while [ $# -gt 0 ]; do
    case $1 in --codes | --pages) case $2 in /*) echo code > "$2" ;; esac ;; esac
    shift
done
"""
    )
    program.chmod(0o755)
    return program


def test_people_are_made_up_and_their_codes_deleted(tmp_path, manage):
    given = options("--manage", str(manage), "--survey-pages", "10")
    with ExitStack() as cleanup:
        codes, pages = make_files(given, tmp_path, cleanup)
        assert codes.exists()
        assert pages.exists()
    assert not codes.exists()
    opened, drawn = (tmp_path / "calls").read_text().splitlines()
    assert opened == (
        "open_rehearsal --name jmeter-10x5 --respondents 31 --unstarted"
        " --pages 10 --items 5"
    )
    assert drawn.endswith(f"--codes {codes} --pages {pages} --limit 31")


def test_one_code_makes_up_an_open_code(tmp_path, manage):
    given = options("--manage", str(manage), "--shape", "one-code", "--within", "60")
    with ExitStack() as cleanup:
        make_files(given, tmp_path, cleanup)
    opened, drawn = (tmp_path / "calls").read_text().splitlines()
    assert opened == "open_code_rehearsal --name jmeter-10x5-open --pages 10 --items 5"
    assert drawn.startswith("jmeter_data --administration jmeter-10x5-open --codes ")
    people = load_of(given, pages=10).people
    assert int(drawn.split("--limit ")[1]) >= people > 0
    assert written("--shape", "one-code")["open"] == "true"
    # The twin: other shapes leave the plan as it is.
    assert not {"open", "start", "httpclient.socket.http.cps"} & written().keys()


def test_heavy_is_multilingual_and_slow(tmp_path, manage):
    given = options("--manage", str(manage), "--shape", "heavy")
    with ExitStack() as cleanup:
        make_files(given, tmp_path, cleanup)
    opened, _ = (tmp_path / "calls").read_text().splitlines()
    assert opened.endswith("--pages 20 --items 50 --multilingual")
    assert written("--shape", "heavy")["httpclient.socket.http.cps"] == "32000"


def test_an_open_rehearsal_gives_all_its_people(tmp_path, manage):
    given = options("--manage", str(manage), "--administration", "autumn")
    with ExitStack() as cleanup:
        make_files(given, tmp_path, cleanup)
    (drawn,) = (tmp_path / "calls").read_text().splitlines()
    assert drawn.startswith("jmeter_data --administration autumn --codes ")
    assert "--limit" not in drawn


@pytest.fixture
def without_jmeter(monkeypatch):
    """A JMeter that sends ten people in the first second, each of them well."""

    def run_jmeter(java, jmeter, output, load, options):
        (output / "dashboard").mkdir()
        (output / "dashboard" / "index.html").touch()
        lines = ["timeStamp,elapsed,success,threadName,label,URL,take"]
        for n in range(277):
            person = f"{1_000_000 + n * 10},5,true,people 1-{n % 10}"
            lines.append(f"{person},{VIEWS[n % len(VIEWS)]},http://127.0.0.1/,1")
        (output / "results.csv").write_text("\n".join(lines))
        return JmeterRun(began=1000.0, cores={"postgres": 0.512})

    monkeypatch.setattr(jmeter_run, "run_jmeter", run_jmeter)
    monkeypatch.setattr(jmeter_run, "prepare_java", lambda: "java")
    monkeypatch.setattr(jmeter_run, "prepare_jmeter", lambda: Path("/opt/jmeter"))


@pytest.mark.usefixtures("without_jmeter")
def test_a_run_writes_the_plan_and_reports_its_result(tmp_path, codes, pages, capsys):
    output = tmp_path / "results"
    given = options("--influxdb", "http://x", codes=codes, pages=pages)
    result = jmeter_run.run(given, output)

    assert result["held"] is True
    assert result["rate_achieved"] == 27.7
    assert result["cores_used"] == {"postgres": 0.51}
    assert result["samplers"].keys() == set(VIEWS)
    assert result["slowest"]["view"]["name"] == "survey_login"
    assert "take.1.pages=10" in (output / "run.properties").read_text().splitlines()
    plan = (output / "plan.jmx").read_text()
    assert 'testname="figures while it runs">' in plan
    assert 'testname="platform" enabled="false"' in plan
    assert json.loads((output / "result.json").read_text()) == result
    *_, last = capsys.readouterr().out.splitlines()
    assert json.loads(last) == result
    # The codes that were given stay.
    assert codes.exists()
    with pytest.raises(Refusal, match="is there already"):
        jmeter_run.run(given, output)


@pytest.fixture
def platform(tmp_path, pages):
    """A manage.py with an endpoint for message platforms, and its arguments."""
    pages.write_text("survey.administration=autumn\ntake.1.pages=10\n")
    program = tmp_path / "manage"
    program.write_text(
        f"""#!/bin/sh
echo "$@" >> {tmp_path}/calls
echo '{{"platform": 1, "api_key": "SECRET", "people": 40}}'
"""
    )
    program.chmod(0o755)
    return program


@pytest.mark.usefixtures("without_jmeter")
def test_a_reminder_asks_the_endpoint_and_keeps_no_key(
    tmp_path, codes, pages, platform, monkeypatch
):
    plans = []
    run_jmeter = jmeter_run.run_jmeter

    def note(java, jmeter, output, *rest):
        plans.append((output / "run.properties").read_text())
        return run_jmeter(java, jmeter, output, *rest)

    monkeypatch.setattr(jmeter_run, "run_jmeter", note)
    arguments = ("--shape", "reminder", "--within", "10", "--manage", str(platform))
    output = tmp_path / "results"
    jmeter_run.run(options(*arguments, codes=codes, pages=pages), output)
    assert "--name=autumn --addresses=" in (tmp_path / "calls").read_text()
    # All in the second in which arrivals rise.
    assert "messages=40.00\n" in plans[0]
    assert "api_key=SECRET\n" in plans[0]
    assert "finder=true\n" in plans[0]
    assert 'testname="platform">' in (output / "plan.jmx").read_text()
    texts = "".join(each.read_text() for each in output.iterdir() if each.is_file())
    assert "SECRET" not in texts


@pytest.mark.usefixtures("without_jmeter")
def test_a_release_without_an_endpoint_is_rehearsed_without(
    tmp_path, codes, pages, platform, capsys
):
    platform.write_text(
        "#!/bin/sh\n"
        """echo "Unknown command: 'x'" >&2\n"""
        """echo "Type 'manage.py help' for usage." >&2\n"""
        "exit 1\n"
    )
    arguments = ("--shape", "reminder", "--within", "10", "--manage", str(platform))
    output = tmp_path / "results"
    result = jmeter_run.run(options(*arguments, codes=codes, pages=pages), output)
    assert "No platform asks" in capsys.readouterr().out
    assert "message_person: no request at all" not in result["missed"]
    # The twin: the finder is there, and was not asked by this JMeter.
    assert "school_finder: no request at all" in result["missed"]
    assert 'testname="platform" enabled="false"' in (output / "plan.jmx").read_text()


@pytest.mark.usefixtures("without_jmeter")
def test_given_files_have_to_exist(tmp_path, codes, pages):
    given = options(codes=codes, pages=pages)
    pages.unlink()
    with pytest.raises(FileNotFoundError, match=r"pages\.properties"):
        jmeter_run.run(given, tmp_path / "results")
    assert not (tmp_path / "results").exists()


@pytest.mark.usefixtures("without_jmeter")
def test_a_run_that_is_refused_leaves_no_folder(tmp_path, codes, pages):
    given = options(codes=codes, pages=pages)
    codes.write_text(codes.read_text().replace(",", ";"))
    for output in (tmp_path / "results", tmp_path / "ladder" / "step-1"):
        with pytest.raises(Refusal, match="row 1: the header has to be code,take"):
            jmeter_run.run(given, output)
    assert sorted(tmp_path.iterdir()) == [codes, pages]
    # Of a folder that was there, only the new one inside it goes.
    (tmp_path / "ladder").mkdir()
    with pytest.raises(Refusal):
        jmeter_run.run(given, tmp_path / "ladder" / "step-2")
    assert not any((tmp_path / "ladder").iterdir())


@pytest.mark.usefixtures("without_jmeter")
def test_a_run_that_began_keeps_its_folder(tmp_path, codes, pages, monkeypatch):
    def fail(*arguments):
        raise Refusal("JMeter ended by itself")

    monkeypatch.setattr(jmeter_run, "run_jmeter", fail)
    with pytest.raises(Refusal, match="ended by itself"):
        jmeter_run.run(options(codes=codes, pages=pages), tmp_path / "results")
    assert (tmp_path / "results" / "plan.jmx").exists()
