from __future__ import annotations

import json
import stat

import pytest
from django.core.management import CommandError, call_command

from survey.instrument.definitions.publishing import publish_survey
from survey.instrument.xlsform import import_survey, read_xlsform
from survey.models import Respondent, Response
from survey.simulation.load_survey import (
    WAVE,
    NotARehearsal,
    delete_answers,
    workbook,
)
from survey.tests.conftest import open_now

pytestmark = pytest.mark.django_db


@pytest.fixture
def rehearse(capsys, tmp_path):
    def run(*options, respondents=3, pages=2, items=2, name="rehearsal"):
        arguments = [f"--respondents={respondents}", f"--pages={pages}"]
        arguments += [f"--items={items}", f"--name={name}"]
        arguments += [f"--codes={tmp_path / 'codes.txt'}", "--json", *options]
        capsys.readouterr()
        call_command("open_rehearsal", *arguments)
        described = json.loads(capsys.readouterr().out)
        return described, (tmp_path / "codes.txt").read_text().split("\n")[:-1]

    return run


def log_in(browser, code):
    reply = browser.post("/", {"code": code}, headers={"Accept": "application/json"})
    assert reply.status_code == 200, reply.content
    return reply.json()["tag"]


def answer(browser, described, n, value="3"):
    answers = {item["name"]: value for item in described["pages"][n - 1]["items"]}
    return browser.save(n, answers, browser.bootstrap()["revision"])


def test_people_of_a_rehearsal_can_answer(rehearse, browser, tmp_path):
    described, codes = rehearse()

    assert len(codes) == len(set(codes)) == described["respondents"] == 3
    assert stat.S_IMODE((tmp_path / "codes.txt").stat().st_mode) == 0o600
    assert [len(page["items"]) for page in described["pages"]] == [2, 2]
    assert described["pages"][0]["items"][0]["name"] == "p1_q1"
    assert described["pages"][0]["items"][0]["values"] == ["1", "2", "3", "4", "5"]
    log_in(browser, codes[0])
    assert answer(browser, described, 1).json()["saved"] == 2
    path = f"/content/{described['digest']}/{described['renderer']}/en/2/"
    assert b"p2_q1" in browser.get(path).content


def test_second_run_adds_only_missing_people(rehearse):
    first, codes = rehearse(respondents=2)
    second, more = rehearse(respondents=5)

    assert more[:2] == codes
    assert len(more) == Respondent.objects.count() == 5
    assert {**second, "respondents": 2} == first
    assert rehearse(respondents=2)[1] == codes


def test_unstarted_leaves_out_people_who_started(rehearse, browser):
    _, codes = rehearse()
    log_in(browser, codes[0])

    _, unstarted = rehearse("--unstarted")

    assert len(unstarted) == 3
    assert codes[0] not in unstarted
    assert Respondent.objects.count() == 4


def test_empty_deletes_all_answers(rehearse, browser):
    described, codes = rehearse()
    log_in(browser, codes[0])
    answer(browser, described, 1)
    assert Response.objects.count() == 2

    rehearse("--empty")

    assert not Response.objects.exists()
    assert not Respondent.objects.exclude(started_at=None).exists()


def test_real_administration_is_never_changed(rehearse, administration, maya):
    with pytest.raises(CommandError, match="real administration"):
        rehearse("--empty", name=administration.name)
    with pytest.raises(NotARehearsal):
        delete_answers(administration)
    assert Respondent.objects.count() == 1


def test_real_administration_of_the_same_survey_keeps_its_answers():
    reading = read_xlsform(workbook(1, 1))
    survey = import_survey(draft=reading.draft)
    with pytest.raises(NotARehearsal):
        delete_answers(open_now(publish_survey(survey=survey)))


def test_other_sizes_need_another_name(rehearse):
    rehearse()
    with pytest.raises(CommandError, match="2 pages of 2 items"):
        rehearse(pages=3)
    described, _ = rehearse(pages=3, name="longer")
    assert len(described["pages"]) == 3


def test_a_multilingual_rehearsal_is_read_in_each_language(rehearse, browser):
    described, codes = rehearse("--multilingual")
    read = set()
    for code in codes:
        log_in(browser, code)
        read.add(browser.bootstrap()["language"])
    assert read == {"en", "es", "ar"}
    path = f"/content/{described['digest']}/{described['renderer']}"
    assert "في هذه المدرسة" in browser.get(f"{path}/ar/1/").content.decode()
    with pytest.raises(CommandError, match="2 pages of 2 items, multilingual"):
        rehearse()


@pytest.mark.parametrize("size", [{"pages": 0}, {"items": 51}, {"respondents": -1}])
def test_sizes_are_limited(rehearse, size):
    with pytest.raises(CommandError, match="is a number from 1"):
        rehearse(**size)


def test_rehearsal_is_recognised_by_its_wave(rehearse):
    rehearse()
    assert Respondent.objects.first().administration.wave.name == WAVE
