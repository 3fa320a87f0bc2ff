"""The demo: its three surveys, its people, and their answers."""

from __future__ import annotations

import csv
import json
import re
import stat
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from io import StringIO
from pathlib import Path
from statistics import correlation, mean, variance

import pytest
from django.apps import apps
from django.conf import settings
from django.core.management import call_command
from django.db import transaction
from django.db.models import Min
from django.test import Client, TestCase
from django.utils import timezone
from openpyxl import load_workbook

from accounts.models import (
    AuditEntry,
    District,
    PlaceSettings,
    School,
    SchoolListing,
    User,
)
from accounts.tests.logging_in import log_in
from survey.fieldwork.emails.schedules import count_recipients
from survey.instrument.definitions.measures import measures_of
from survey.instrument.definitions.rules import state_of
from survey.models import (
    Administration,
    EmailSchedule,
    Identity,
    MessagePlatform,
    PublishedSurvey,
    Respondent,
    Response,
    SchoolCount,
    Survey,
    Wave,
)
from survey.simulation.demo import load
from survey.simulation.demo.answers import COMMENTS, deviation
from survey.simulation.demo.emails import STATE
from survey.simulation.demo.load import (
    CLOSED,
    FILES,
    FOLDER,
    RUNNING,
    STAFF_EMAIL,
    UNUSED,
    load_demo,
    publish_workbook,
)
from survey.taking.published import published_survey

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

# Survey -> its languages.
LANGUAGES = {
    "climate_students": ["en", "es"],
    "climate_teachers": ["en", "es"],
    "climate_parents": ["en", "es", "ar"],
}


@pytest.fixture
def data(settings, tmp_path: Path) -> Path:
    settings.DATA_DIR = tmp_path
    return tmp_path


@pytest.fixture
def nobody(monkeypatch):
    """Skip surveys and people in tests of the staff logins."""
    for name in ("load_waves", "load_parents_of_wave"):
        monkeypatch.setattr(f"survey.simulation.demo.load.{name}", lambda now: None)


def run(*arguments: str) -> str:
    out = StringIO()
    call_command("load_demo", *arguments, stdout=out)
    return out.getvalue()


def definition_of(name: str) -> dict:
    return json.loads(PublishedSurvey.objects.get(survey__name=name).definition)


def texts_of(definition: dict) -> list[dict[str, str]]:
    """Return the texts that respondents read; each maps languages to words."""
    texts = [definition["title"]]
    for page in definition["pages"]:
        texts += [page["title"], *(block["label"] for block in page["blocks"])]
    for options in definition["option_sets"].values():
        texts += [option["label"] for option in options]
    kinds = ("label", "hint", "guidance", "required_message", "constraint_message")
    for item in definition["items"].values():
        texts += [item[kind] for kind in kinds if kind in item]
    return [text for text in texts if text]


def answerable(definition: dict) -> list[str]:
    return [
        name
        for name, item in definition["items"].items()
        if item["kind"] not in ("note", "calculate", "hidden")
    ]


def responses(name: str) -> dict[int, dict[str, str | None]]:
    """Map respondent id to item name to value, for one administration."""
    administration = Administration.objects.get(name=name)
    names = published_survey(administration.published_id).names
    answers: dict[int, dict[str, str | None]] = {}
    for row in Response.objects.filter(administration_id=administration.pk):
        answers.setdefault(row.respondent_id, {})[names[row.item_id]] = row.value
    return answers


def scores(measure: dict, name: str) -> dict[int, list[int]]:
    """Map respondents to their values, reversed ones turned, if none is blank."""
    values_of = {}
    for respondent, answers in responses(name).items():
        values = [answers.get(item["name"]) for item in measure["items"]]
        if all(values):
            values_of[respondent] = [
                -int(value) if item["reversed"] else int(value)
                for item, value in zip(measure["items"], values, strict=True)
            ]
    return values_of


def alpha(rows: list[list[int]]) -> float:
    """Cronbach's alpha: how well the items of a measure agree."""
    items = list(zip(*rows, strict=True))
    total = variance(sum(row) for row in rows)
    return len(items) / (len(items) - 1) * (1 - sum(map(variance, items)) / total)


def shares(prefix: str) -> tuple[int, int, int]:
    """Count people, started and finished, in both administrations of a wave."""
    names = [f"{prefix}{name}" for name in FILES.values()]
    people = Respondent.objects.filter(administration__name__in=names)
    return (
        people.count(),
        people.exclude(started_at=None).count(),
        people.exclude(completed_at=None).count(),
    )


def test_loading_again_adds_what_is_missing_and_nothing_else(
    unanswered, data, monkeypatch, settings
):
    with monkeypatch.context() as patched:
        # An older demo has no parents.
        patched.setattr(load, "load_parents_of_wave", lambda now: None)
        older = run()
    people = Respondent.objects.count()
    schedule = EmailSchedule.objects.get()
    assert schedule.administration.name == "demo-teachers"
    assert schedule.confirmed_at is None and count_recipients(schedule) == 119

    first = run()
    before = Respondent.objects.count(), Response.objects.count()
    assert before[0] > people
    lines = first.splitlines()[1:]
    parents = [line for line in lines if line.startswith("parent")]
    assert len(parents) == 2
    assert older.splitlines() == [
        "The demo is loaded.",
        *(line for line in lines if line not in parents),
    ]

    assert run() == first
    assert "already there" in first
    assert (Respondent.objects.count(), Response.objects.count()) == before
    assert User.objects.count() == 5
    password = (data / "staff.txt").read_text().strip()
    assert f"analyst@groundswell.example  {password}  analyst, Riverside" in first

    schedule.delete()
    settings.EMBEDDED = True
    load_demo()
    assert EmailSchedule.objects.get().is_active


def test_only_the_owner_can_read_the_password_file(nobody, data):
    demo = load_demo()
    path = data / "staff.txt"

    assert path.read_text().strip() == demo.staff_password
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_missing_password_file_gives_all_staff_a_new_password(nobody, data):
    demo = load_demo()
    (data / "staff.txt").unlink()

    reloaded = load_demo()

    assert reloaded.staff_password != demo.staff_password
    assert Client().login(email=STAFF_EMAIL, password=reloaded.staff_password)


def test_staff_missing_from_an_older_demo_are_added(nobody, data):
    old = load_demo()
    for account in old.staff:
        user = User.objects.get(email=account.email)
        user.memberships.all().delete()
        user.delete()

    reloaded = load_demo()

    assert reloaded.staff == old.staff
    assert reloaded.staff_password == old.staff_password
    assert Client().login(email=old.staff[0].email, password=old.staff_password)


def test_without_a_data_folder_the_password_is_printed_once(nobody, settings):
    assert not hasattr(settings, "DATA_DIR")

    assert load_demo().staff_password
    assert load_demo().staff_password is None
    assert "shown when it was made" in run()


def test_interrupted_load_leaves_nothing_behind(data, monkeypatch):
    def fail(plan, opens_at, until):
        assert Respondent.objects.count() == 519, "nothing there to be left behind"
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("survey.simulation.demo.load.make_up_responses", fail)
        with pytest.raises(KeyboardInterrupt):
            load_demo()

    assert Respondent.objects.count() == 0
    assert not Administration.objects.exists()


class TestTheSurveys(TestCase):
    """Tests that read the three surveys, which are published once, without people."""

    @classmethod
    def setUpTestData(cls) -> None:
        for name in (*FILES.values(), "parents"):
            publish_workbook(FOLDER / f"{name}.xlsx")

    def test_surveys_have_the_planned_pages_and_items(self):
        for name, pages, least, most in (
            ("climate_students", 12, 57, 64),
            ("climate_teachers", 8, 37, 44),
            ("climate_parents", 6, 24, 28),
        ):
            definition = definition_of(name)
            assert len(definition["pages"]) == pages
            assert least <= len(answerable(definition)) <= most
            assert [row["code"] for row in definition["languages"]] == LANGUAGES[name]

    def test_every_text_is_in_each_language(self):
        for name, languages in LANGUAGES.items():
            shown = texts_of(definition_of(name))
            assert len(shown) > 70
            # Names of schools, languages and numbers may be alike; sentences are not.
            assert [text for text in shown if set(text) != set(languages)] == []
            same = [text["en"] for text in shown if len({*text.values()}) < len(text)]
            assert same in ([], ["No"])
            if "ar" in languages:
                arabic = [text["ar"] for text in shown]
                assert [text for text in arabic if re.search("[A-Za-z]", text)] == []

    def test_surveys_contain_every_usual_element(self):
        for name in ("climate_students", "climate_teachers"):
            definition = definition_of(name)
            items = definition["items"].values()
            assert {
                "note",
                "acknowledge",
                "integer",
                "range",
                "text",
                "select_multiple",
                "calculate",
            } <= {item["kind"] for item in items}
            looks = {look for item in items for look in item.get("appearance", [])}
            assert {"minimal", "likert"} <= looks
            blocks = [block for page in definition["pages"] for block in page["blocks"]]
            assert sum(block["grid"] for block in blocks) >= 5
            assert any("${" in block["label"].get("en", "") for block in blocks)
            assert any(item.get("constraint") for item in items)

    def test_values_of_scales_rise_and_are_never_reversed(self):
        for name in ("climate_students", "climate_teachers"):
            for scale in ("agree", "often", "rating"):
                options = definition_of(name)["option_sets"][scale]
                values = [int(option["value"]) for option in options]
                assert values == list(range(1, len(values) + 1))
        agree = definition_of("climate_students")["option_sets"]["agree"]
        assert agree[0]["label"]["en"] == "Strongly disagree"

    def test_five_essentials_group_the_measures_of_the_three_surveys(self):
        essentials, names = set(), set()
        for survey in Survey.objects.order_by("name"):
            content = measures_of(survey)
            essentials |= {row["name"] for row in content["essentials"]}
            names |= {row["name"] for row in content["measures"]}
            for row in (*content["essentials"], *content["measures"]):
                assert set(row["label"]) == set(LANGUAGES[survey.name])
                assert set(row["description"]) == set(LANGUAGES[survey.name])
        assert len(essentials) == 5
        assert len(names) == 16

    def test_rules_skip_an_item_and_a_page(self):
        definition = definition_of("climate_students")
        page = next(
            n
            for n, entry in enumerate(definition["pages"], start=1)
            if entry["name"] == "next_steps"
        )

        def state(**answers: str):
            return state_of(
                definition,
                answers,
                today="2026-11-21",
                now="2026-11-21T10:00:00-06:00",
                language="en",
            )

        assert not state(unkind="0").relevant["unkind_told"]
        assert state(unkind="1").relevant["unkind_told"]
        assert page not in state(grade="7").visible_pages()
        assert page in state(grade="8").visible_pages()


def test_made_up_answers_are_the_same_on_every_machine(data, monkeypatch):
    few = replace(load.RUNNING, finished=0.1, stopped=0.02)
    monkeypatch.setattr(load, "RUNNING", few)
    monkeypatch.setattr(load, "CLOSED", ())
    monkeypatch.setattr(load, "load_parents_of_wave", lambda now: None)

    def everything() -> list[tuple[str, str, str]]:
        deviation.cache_clear()
        with transaction.atomic():
            load_demo()
            ids = dict(Identity.objects.values_list("respondent_id", "external_id"))
            rows = sorted(
                (ids[person], name, value or "")
                for administration in ("demo-students", "demo-teachers")
                for person, answers in responses(administration).items()
                for name, value in answers.items()
            )
            transaction.set_rollback(True)
        return rows

    first = everything()

    assert len(first) > 800
    assert not Respondent.objects.exists()
    assert everything() == first


@pytest.mark.sqlite
@pytest.mark.skipif(bool(settings.SERVERS), reason="the demonstration runs on SQLite")
class TestTheLoadedDemo(TestCase):
    """Tests that share one loaded demo; what they write is rolled back.

    On PostgreSQL the other tests load parts of it.
    """

    @classmethod
    def setUpTestData(cls) -> None:
        cls.demo = load_demo()
        assert not cls.demo.already_there

    def test_three_people_can_start_the_loaded_demo(self):
        loaded = json.loads(run("--json"))

        assert District.objects.count() == 3
        assert School.objects.count() == 17
        assert shares("demo-earlier-") == (519, 415, 389)
        assert shares("demo-first-") == (519, 415, 389)
        assert shares("demo-last-") == (519, 441, 415)
        assert shares("demo-") == (519, 260, 208)
        assert [card["role"] for card in loaded["cards"]] == [
            "student",
            "student",
            "teacher",
        ]
        for card in loaded["cards"]:
            browser = Client()
            assert browser.post("/", {"code": card["code"]}).status_code == 302
            shell = browser.get("/take/", headers={"Accept": "application/json"}).json()
            assert shell["answers"] == {}
            assert shell["language"] == card["language"]

    def test_parents_answer_by_the_open_codes(self):
        loaded = json.loads(run("--json"))

        parents = Administration.objects.get(name="demo-parents")
        assert parents.denominator == "count"
        assert parents.wave == Administration.objects.get(name="demo-students").wave
        begun = Respondent.objects.filter(administration=parents)
        answered = set(responses("demo-parents"))
        assert len(answered) > 40
        assert begun.filter(completed_at=None, pk__in=answered).exists()
        assert begun.exclude(pk__in=answered).exists(), "an empty start"
        assert set(begun.values_list("language", flat=True)) == {"en", "es", "ar"}
        unlimited, limited = loaded["open_codes"]
        assert (unlimited["limit"], limited["limit"]) == (None, 25)
        # Each school but one has a response rate.
        counts = SchoolCount.objects.current()
        assert counts.filter(administration=parents).count() == 16
        before = begun.count()
        for code in (unlimited, limited):
            browser = Client()
            page = browser.post("/open/", {"code": code["code"], "language": "ar"})
            text = page.content.decode()
            assert 'dir="rtl"' in text
            [form] = re.findall('name="form" value="([^"]+)"', text)
            sent = {"code": code["code"], "language": "ar", "form": form}
            assert browser.post("/open/begin/", sent).status_code == 302
            shell = browser.get("/take/", headers={"Accept": "application/json"}).json()
            assert (shell["answers"], shell["language"]) == ({}, "ar")
        assert begun.count() == before + 2

    def test_each_role_has_a_login_with_its_district_or_school(self):
        demo = self.demo
        assert {user.email.partition("@")[0]: user.role for user in demo.staff} == {
            "state": "state administrator, the state",
            "district": "district administrator, Riverside",
            "coordinator": "school coordinator, Lincoln Middle School",
            "analyst": "analyst, Riverside",
        }
        for user in demo.staff:
            assert Client().login(email=user.email, password=demo.staff_password)
        appointed = AuditEntry.objects.filter(
            by="load_demo", action__startswith="appoint"
        )
        assert appointed.count() == 4

    def test_every_school_has_the_states_logo(self):
        logo = PlaceSettings.objects.get(school=None, district=None).logo
        assert logo.content.startswith(b"\x89PNG")
        picture = Client().get(f"/logo/{logo.name}/")
        assert picture["Content-Type"] == "image/png"
        # A person who has removed it keeps it removed.
        PlaceSettings.objects.update(logo=None)
        load.add_brand()
        assert not PlaceSettings.objects.exclude(logo=None).exists()

    def test_every_school_has_a_place_and_riverside_questions_of_its_own(self):
        located = SchoolListing.objects.exclude(latitude=None)
        assert located.count() == School.objects.count() == 17
        [module] = Administration.objects.exclude(module_of=None)
        assert module.module_of.name == "demo-students"
        assert module.district.name == "Riverside"
        assert (
            module.published.survey.title["es"] == "Autobuses y almuerzo en Riverside"
        )

    def test_staff_login_opens_the_admin(self):
        browser = Client()

        assert browser.login(email=STAFF_EMAIL, password=self.demo.staff_password)
        log_in(browser, User.objects.get(email=STAFF_EMAIL))
        assert browser.get("/engineers/").status_code == 200

    def test_made_up_answers_follow_the_rules(self):
        taken = responses("demo-students")
        grades = dict(Respondent.objects.values_list("pk", "grade"))

        reporters = {pk for pk, answers in taken.items() if answers.get("unkind_told")}
        assert reporters
        assert all(taken[pk]["unkind"] == "1" for pk in reporters)
        planned = {pk for pk, answers in taken.items() if "plan" in answers}
        assert planned
        assert all(int(grades[pk]) >= 8 for pk in planned)
        finished = Respondent.objects.exclude(completed_at=None)
        young = {row.pk for row in finished if row.grade and int(row.grade) < 8}
        assert young & set(taken)
        assert not young & planned

    def test_few_items_are_blank_and_comments_are_in_the_persons_language(self):
        definition = definition_of("climate_students")
        likert = [
            name
            for name, item in definition["items"].items()
            if item.get("option_set") == "agree"
        ]
        values = [
            answers[name]
            for answers in responses("demo-students").values()
            for name in likert
            if name in answers
        ]
        assert 0.01 < values.count(None) / len(values) < 0.08

        with COMMENTS.open(encoding="utf-8", newline="") as file:
            language_of = {row["text"]: row["language"] for row in csv.DictReader(file)}
        languages = dict(Respondent.objects.values_list("pk", "language"))
        written = {
            (languages[person], language_of[answers["one_change"]])
            for person, answers in responses("demo-students").items()
            if answers.get("one_change")
        }
        assert written == {("en", "en"), ("es", "es")}

    def test_answers_of_one_person_are_correlated(self):
        """Items of real scales correlate; independent draws would not."""
        plans = (RUNNING, *CLOSED)
        taken = [
            answers
            for plan in plans
            for answers in responses(f"{plan.prefix}-students").values()
        ]

        def halves(answers: dict) -> tuple[float, float] | None:
            items = [
                [int(answers[name]) for name in names if answers.get(name)]
                for names in (
                    [item for item in answers if item.startswith("belong_")],
                    [item for item in answers if item.startswith("teach_")],
                )
            ]
            return (mean(items[0]), mean(items[1])) if all(items) else None

        pairs = [pair for answers in taken if (pair := halves(answers))]
        assert len(pairs) > 800
        first, second = zip(*pairs, strict=True)
        # By chance, it is between -0.07 and 0.07 in 19 of 20 demos.
        assert correlation(first, second) > 0.2
        # The twin: the same numbers, each half from another person.
        assert abs(correlation(first, second[1:] + second[:1])) < 0.1

    def test_items_of_one_measure_agree_and_schools_and_waves_differ(self):
        scores_of = {}
        for role in FILES.values():
            survey = Survey.objects.get(name=f"climate_{role}")
            for measure in measures_of(survey)["measures"]:
                scores_of[measure["name"]] = scores(measure, f"demo-last-{role}")
        alphas = {
            name: alpha(list(rows.values())) for name, rows in scores_of.items() if rows
        }
        assert len(alphas) == 12
        assert mean(alphas.values()) > 0.6
        assert alphas["kind_classmates"] > 0.5, "with its reversed item"

        students = measures_of(Survey.objects.get(name="climate_students"))
        measure = students["measures"][0]
        schools = dict(Respondent.objects.values_list("pk", "school__name"))
        means = {}
        for wave in ("demo-last-students", "demo-students"):
            rows = scores(measure, wave)
            for school in {schools[pk] for pk in rows}:
                of_school = [mean(rows[pk]) for pk in rows if schools[pk] == school]
                means[wave, school] = mean(of_school)
        assert len(means) == 34
        # Some of them may be alike by chance.
        assert len(set(means.values())) > 26
        last = [mean for (wave, _), mean in means.items() if "last" in wave]
        assert max(last) - min(last) > 0.1

    def test_all_students_have_a_value_of_each_subgroup(self):
        students = Administration.objects.get(name="demo-last-students")
        people = Respondent.objects.filter(administration=students)
        assert len(students.subgroups) >= 5
        for name, values in students.subgroups.items():
            has = [person.attributes.get(name) for person in people]
            assert all(has), name
            assert set(has) == set(values), name

    def test_each_theme_of_a_closed_wave_has_a_score_in_each_school(self):
        for wave in ("earlier", "first", "last"):
            for role, schools in (("students", 17), ("teachers", 12)):
                name, problems = f"demo-{wave}-{role}", StringIO()
                call_command(
                    "score_administration", name, stdout=StringIO(), stderr=problems
                )
                assert "no scores" not in problems.getvalue()
                content = measures_of(Survey.objects.get(name=f"climate_{role}"))
                themes = {entry["essential"] for entry in content["measures"]} - {""}
                # By name, because the tests of the survey don't import reports.
                rows = apps.get_model("reports.ScoreRow").objects.filter(
                    administration__name=name, level="school", attribute=""
                )
                assert [set(row.essentials) for row in rows] == [themes] * schools

    def test_groups_of_a_school_and_a_grade_span_can_be_shown(self):
        """Ten elementary schools, each with ten measured people, have a benchmark."""
        options = {"benchmark": "demo-first-students", "chosen_by": STATE}
        call_command(
            "publish_results", "demo-last-students", **options, stdout=StringIO()
        )
        rows = apps.get_model("reports.ScoreRow").objects.filter(
            administration__name="demo-last-students", level="school"
        )
        everyone = rows.filter(attribute="")
        spans = Counter(everyone.values_list("span", flat=True))
        assert spans == {"elementary": 10, "": 7}
        lincoln = School.objects.get(name="Lincoln Middle School").pk
        groups = rows.filter(place_id=lincoln).exclude(attribute="")
        assert "grade" in set(groups.values_list("attribute", flat=True))

    def test_three_waves_are_closed_and_the_fourth_is_open(self):
        now = timezone.now()
        waves = Wave.objects.annotate(opens=Min("administrations__opens_at"))
        *closed, running = waves.order_by("opens")

        assert len(closed) == 3
        for wave in closed:
            assert {row.closes_at < now for row in wave.administrations.all()} == {True}
        for row in running.administrations.all():
            assert row.opens_at < now < row.closes_at
        hours = {
            timezone.localtime(moment).strftime("%H:%M")
            for row in Administration.objects.filter(wave__isnull=False)
            for moment in (row.opens_at, row.closes_at)
        }
        assert hours == {"07:00", "16:00"}

    def test_coordinators_see_which_students_have_finished(self):
        visible = Administration.objects.filter(coordinators_see_finished=True)
        assert {row.role for row in visible} == {"student"}
        assert visible.filter(name="demo-students").exists()

    def test_students_start_in_lessons_on_school_days(self):
        moments = [
            timezone.localtime(moment)
            for moment in Respondent.objects.filter(
                administration__role="student"
            ).values_list("started_at", flat=True)
            if moment
        ]

        assert {moment.weekday() for moment in moments} <= {0, 1, 2, 3, 4}
        assert {moment.hour for moment in moments} <= {8, 9, 10, 11, 13}
        # A class begins together: of most people others began within minutes.
        hours = [f"{moment:%m-%d %H}" for moment in moments]
        together = Counter(hours)
        assert mean(together[hour] for hour in hours) > 5

    def test_pages_are_saved_in_order_and_within_the_window(self):
        now = timezone.now()
        for respondent in Respondent.objects.exclude(started_at=None).select_related(
            "administration"
        ):
            saved = list(
                Response.objects.filter(
                    administration_id=respondent.administration_id,
                    respondent_id=respondent.pk,
                )
                .order_by("revision")
                .values_list("saved_at", flat=True)
            )
            if not saved:
                # Parents who began and gave no answer.
                assert respondent.open_code_id
                continue
            assert saved == sorted(saved)
            assert (
                respondent.administration.opens_at <= respondent.started_at < saved[0]
            )
            assert saved[-1] < (respondent.completed_at or now) <= now
        moments = Respondent.objects.exclude(completed_at=None).values_list(
            "completed_at", flat=True
        )
        for plan in (RUNNING, *CLOSED):
            names = [f"{plan.prefix}-{name}" for name in FILES.values()]
            of_wave = moments.filter(administration__name__in=names)
            assert max(of_wave) - min(of_wave) > timedelta(days=3)


def test_every_person_is_in_the_rosters_once():
    ids: Counter = Counter()
    names: Counter = Counter()
    for roster in ("students.csv", "teachers.csv"):
        with (FOLDER / roster).open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                ids[row["district"], row.get("student_id") or row["staff_id"]] += 1
                names[row["given_name"], row["family_name"]] += 1
    assert ids.total() == 519
    assert set(ids.values()) == {1}
    assert set(names.values()) == {1}
    assert set(UNUSED) <= {external for _, external in ids}


@pytest.mark.parametrize("name", ["students", "teachers", "parents"])
def test_pyxform_reads_the_workbooks(name):
    from pyxform.xls2json import workbook_to_json
    from pyxform.xls2json_backends import get_xlsform

    warnings: list[str] = []
    path = str(FOLDER / f"{name}.xlsx")
    read = workbook_to_json(get_xlsform(path), form_name=name, warnings=warnings)

    assert read["id_string"] == f"climate_{name}"
    assert [text for text in warnings if "or_other" not in text] == []
    assert load_workbook(path).sheetnames == [
        "survey",
        "choices",
        "settings",
        "measures",
    ]


def test_one_message_platform_is_added_however_often_the_demo_is_loaded(nobody, data):
    load_demo()
    load_demo()
    platform = MessagePlatform.objects.get()
    assert platform.district is None
    assert not platform.keys.exists()
