from __future__ import annotations

import csv
import json
import random
import re
from pathlib import Path

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.test import Client
from django.utils import timezone

from survey.fieldwork.open_codes.codes import code_of as code_of_open
from survey.fieldwork.open_codes.codes import revoke_open_code
from survey.models import Denominator, Respondent, Response, Wave
from survey.people.access_codes import format_code
from survey.simulation.answers import NoAnswerFound, simulate_take
from survey.simulation.demo.load import FOLDER, publish_workbook
from survey.simulation.load_survey import WAVE
from survey.taking.published import published_survey
from survey.tests.conftest import Browser, code_of, enrol, open_now
from survey.tests.open_codes.cast import open_code, open_to_parents


def write(tmp_path: Path, administration, **options) -> tuple[list[dict], dict]:
    codes, pages = tmp_path / "codes.csv", tmp_path / "pages.properties"
    call_command(
        "jmeter_data",
        administration=administration.name,
        codes=codes,
        pages=pages,
        force=True,
        # The administration of the fixtures is not a rehearsal.
        **{"real_people": True, **options},
    )
    with codes.open(newline="") as file:
        return list(csv.DictReader(file)), properties_of(pages)


def properties_of(path: Path) -> dict[str, str]:
    """Read properties as java.util.Properties does."""
    lines = path.read_text(encoding="ascii").splitlines()
    return {
        name: re.sub(r"\\(u[0-9a-f]{4}|.)", _unescaped, value)
        for name, _, value in (line.partition("=") for line in lines)
    }


def _unescaped(match: re.Match) -> str:
    escape = match[1]
    return chr(int(escape[1:], 16)) if len(escape) == 5 else escape


def pages_of(properties: dict, take: str) -> list[dict]:
    return [
        {
            name: properties[f"take.{take}.{step}.{name}"]
            for name in ("page", "items", "answers", "changed")
        }
        for step in range(1, int(properties[f"take.{take}.pages"]) + 1)
    ]


def take_it(line: dict, properties: dict) -> tuple[list, Client]:
    """Do what the JMeter plan does with one line of the codes."""
    browser = Browser()
    assert browser.post("/", {"code": line["code"]}).status_code == 302
    revision = browser.bootstrap()["revision"]
    receipts = []
    for page in pages_of(properties, line["take"]):
        for answers in ("answers", "changed"):
            revision += 1
            body = f'{{"revision":{revision},"answers":{page[answers]}}}'
            reply = browser.send(page["page"], body)
            assert reply.status_code == 200, reply.content
            receipts.append((reply.json()["saved"], int(page["items"])))
    return receipts, browser


@pytest.fixture(params=["climate", "students", "teachers"])
def survey_of_any_kind(request, publish):
    """Open the survey of the fixtures and both of the demo, with all rules."""
    if request.param == "climate":
        return open_now(publish())
    return open_now(publish_workbook(FOLDER / f"{request.param}.xlsx"))


def test_every_page_is_saved_and_every_take_can_be_finished(
    tmp_path, survey_of_any_kind, lincoln
):
    for _ in range(6):
        enrol(survey_of_any_kind, lincoln, grade=str(_))
    lines, properties = write(tmp_path, survey_of_any_kind, takes=6)
    assert len(lines) == 6
    for line in lines:
        receipts, browser = take_it(line, properties)
        assert receipts
        assert all(saved == named for saved, named in receipts)
        review = browser.get("/take/complete/").content.decode()
        reviewed = re.search(r'name="reviewed" value="([^"]+)"', review)
        assert reviewed, "something is missing"
        done = browser.post("/take/complete/", {"reviewed": reviewed[1]})
        assert done.status_code == 302
    assert Respondent.objects.filter(completed_at=None).count() == 0
    assert Response.objects.filter(state="a").exists()


def test_answers_to_another_page_are_refused(tmp_path, administration, maya):
    """The twin: the view checks the answers that it receives."""
    lines, properties = write(tmp_path, administration, takes=1)
    first, second = pages_of(properties, "1")[:2]
    properties["take.1.1.answers"] = second["answers"]
    with pytest.raises(AssertionError, match="unknown_item"):
        take_it(lines[0], properties)


def test_properties_describe_the_survey(tmp_path, administration, maya):
    _, properties = write(tmp_path, administration)
    assert properties["survey.digest"] == administration.published_id
    assert properties["survey.pages"] == "3"
    assert properties["survey.language"] == "en"
    assert properties["takes"] == "10"


def test_codes_are_of_people_who_have_not_finished(tmp_path, administration, lincoln):
    began = enrol(administration, lincoln, grade="1", started_at=timezone.now())
    waits = enrol(administration, lincoln, grade="2")
    enrol(administration, lincoln, grade="3", withdrawn_at=timezone.now())
    now = timezone.now()
    enrol(administration, lincoln, grade="4", started_at=now, completed_at=now)
    lines, _ = write(tmp_path, administration)
    assert [line["code"].replace("-", "") for line in lines] == [
        code_of(waits),
        code_of(began),
    ]
    lines, _ = write(tmp_path, administration, limit=1)
    assert [line["code"].replace("-", "") for line in lines] == [code_of(waits)]


def test_several_surveys_are_mixed(tmp_path, administration, lincoln, publish):
    published = publish([{"last": {"kind": "text"}}], name="second")
    for_parents = open_to_parents(
        name="second", published=published, denominator=Denominator.ROSTER
    )
    for grade in "12":
        enrol(administration, lincoln, grade=grade)
    enrol(for_parents, lincoln, grade="3")
    administration.name += f",{for_parents.name}"
    lines, properties = write(tmp_path, administration, takes=2)
    # One of each survey first.
    assert [line["take"] for line in lines] == ["1", "3", "2"]
    assert properties["take.2.survey"] + "," + properties["take.3.survey"] == (
        administration.name
    )
    assert properties["take.3.pages"] == "1"
    assert properties["takes"] == "4"
    for line in lines:
        receipts, _ = take_it(line, properties)
        assert receipts


@pytest.fixture
def parents(db):
    return open_to_parents()


def test_everybody_gets_the_same_open_code(tmp_path, parents, lincoln):
    open_code(parents, lincoln, limit=5)
    code = open_code(parents, lincoln)
    lines, properties = write(tmp_path, parents, limit=25)
    assert [line["code"] for line in lines] == [format_code(code_of_open(code))] * 25
    # Of ten people one declines, and two answer for another child.
    chosen = [
        (properties[f"take.{take}.choice"], properties[f"take.{take}.children"])
        for take in range(1, 11)
    ]
    assert chosen.count(("decline", "1")) == 1
    assert chosen.count(("begin", "2")) == 2
    assert chosen.count(("begin", "1")) == 7


def test_people_on_a_roster_answer_once(tmp_path, administration, maya):
    _, properties = write(tmp_path, administration)
    assert "take.1.pages" in properties
    assert not any("children" in name for name in properties)


def test_a_limited_code_is_not_for_everybody(tmp_path, parents, lincoln):
    open_code(parents, lincoln, limit=5)
    revoke_open_code(code=open_code(parents, lincoln), by="a test")
    with pytest.raises(CommandError, match="no unlimited open code"):
        write(tmp_path, parents)


def test_only_the_owner_can_read_the_codes(tmp_path, administration, maya):
    write(tmp_path, administration)
    assert (tmp_path / "codes.csv").stat().st_mode & 0o777 == 0o600


def test_existing_files_are_kept_without_force(tmp_path, administration, maya):
    (tmp_path / "codes.csv").write_text("mine")
    with pytest.raises(CommandError, match="--force replaces it"):
        call_command(
            "jmeter_data",
            administration=administration.name,
            codes=tmp_path / "codes.csv",
            pages=tmp_path / "pages.properties",
            real_people=True,
        )
    assert (tmp_path / "codes.csv").read_text() == "mine"


def test_real_people_need_an_explicit_option(tmp_path, administration, maya):
    with pytest.raises(CommandError, match="is not a rehearsal.* add --real-people"):
        write(tmp_path, administration, real_people=False)
    assert list(tmp_path.iterdir()) == []
    # The twin: there was a person to write, and a rehearsal needs no option.
    administration.wave = Wave.objects.create(name=WAVE)
    administration.save(update_fields=["wave"])
    assert len(write(tmp_path, administration, real_people=False)[0]) == 1


def test_command_needs_people_who_have_not_finished(tmp_path, administration):
    with pytest.raises(CommandError, match="No one is left"):
        write(tmp_path, administration)


def test_unanswerable_item_is_named(publish):
    impossible = {
        "age": {
            "kind": "integer",
            "required": True,
            "constraint": ["and", [">", ["$", "age"], 9], ["<", ["$", "age"], 3]],
            "local": ["constraint"],
        }
    }
    published = published_survey(publish([impossible]).digest)
    with pytest.raises(NoAnswerFound, match="age"):
        simulate_take(published, draw=random.Random(1), now=timezone.localtime())


def test_hidden_page_is_not_sent(publish):
    pages = [
        {"sure": {"kind": "acknowledge", "required": True}},
        {"why": {"kind": "text", "relevant": ["!=", ["$", "sure"], "OK"]}},
        {"last": {"kind": "text"}},
    ]
    published = published_survey(publish(pages).digest)
    draw = random.Random(1)
    pages = simulate_take(published, draw=draw, now=timezone.localtime())
    assert [page.page for page in pages] == [1, 3]


def test_second_visit_has_other_answers(publish):
    published = published_survey(publish().digest)
    draw = random.Random(3)
    pages = simulate_take(published, draw=draw, now=timezone.localtime())
    assert any(page.changed != page.answers for page in pages)
    # What a rule reads stays, or a page could vanish after it was answered.
    first = pages[0]
    assert first.changed["subjects"] == first.answers["subjects"]
    assert json.dumps(first.changed) != "{}"
