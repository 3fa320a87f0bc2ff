"""Surveys in the console, as an administrator makes her way in Chromium."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.conf import settings
from django.db import connection
from django.test import Client
from django.urls import reverse
from playwright.sync_api import FrameLocator, Page, expect

from accounts.models import User
from accounts.staff_cookies import PREFIX
from accounts.tests.logging_in import log_in
from survey.instrument.definitions.corrections import publish_correction, use_correction
from survey.instrument.definitions.publishing import publish_survey
from survey.models import Respondent, Response, Survey, SurveyMeasures
from survey.tests.browser.accessibility import violations_on
from survey.tests.browser.conftest import LAPTOP
from survey.tests.browser.menus import choose_action
from survey.tests.browser.person import press_next
from survey.tests.conftest import code_of, enrol
from survey.tests.console.test_surveys import CHOICES, book, draft_of, offered
from survey.tests.definitions.test_corrections import CORRECTED_ROWS
from survey.tests.workbooks import form

pytestmark = pytest.mark.django_db(transaction=True)
NARROW = {"width": 390, "height": 844}
LABELS = ["label::English (en)", "label::Español (es)"]
HEAD = ["type", "name", *LABELS, "required", "relevant", "parameters"]
SURVEY = [
    HEAD,
    ["begin group", "first", "About you", "Sobre ti", None, None, None],
    ["text", "who", "Your name?", "¿Tu nombre?", None, None, None],
    ["select_one pets", "pet", "Which pet, ${who}?", "¿Qué mascota, ${who}?"]
    + ["yes", None, "randomize=true"],
    ["end group"],
    ["begin group", "cats", "Cats", "Gatos", None, "${pet} = 'cat'", None],
    ["integer", "lives", "How many lives?", "¿Cuántas vidas?", None, None, None],
    ["end group"],
    ["begin group", "last", "The end", "El fin", None, None, None],
    ["text", "why", "Why, ${who}?", "¿Por qué, ${who}?", "${lives} > 7", None, None],
    ["end group"],
]
PETS = [
    CHOICES[0],
    *(
        ["pets", name, name.title(), name.title()]
        for name in ("cat", "dog", "eel", "owl")
    ),
]
PUBLISHED = [["form_title", "form_id", "version"], ["Pets", "pets", "1"]]


def survey_book(rows=SURVEY) -> bytes:
    return form(
        rows, PETS, [[*PUBLISHED[0], "default_language"], [*PUBLISHED[1], "en"]]
    )


def with_five_problems() -> bytes:
    rows = [list(row) + [None] * (7 - len(row)) for row in SURVEY]
    rows[2][4] = "maybe"
    rows[3][6] = "randomize=perhaps"
    rows[5][5] = "${pett} = 'cat'"
    rows[6][0] = "geopoint"
    rows[9][4] = "${lives} >"
    return survey_book(rows)


@pytest.fixture
def console(device, server) -> Callable[..., Page]:
    """Open a tab in which a user is logged in."""

    def opened(user: User, viewport=LAPTOP, **options) -> Page:
        context = device(viewport=viewport, **options)
        name = PREFIX + settings.SESSION_COOKIE_NAME
        value = log_in(Client(), user).cookies[name].value
        context.add_cookies([{"name": name, "value": value, "url": server.url}])
        return context.new_page()

    return opened


def choose(page: Page, content: bytes, name: str = "pets.xlsx") -> None:
    page.set_input_files(
        "input[type=file]",
        {"name": name, "mimeType": "application/octet-stream", "buffer": content},
    )
    page.click("button:has-text('Upload')")


def inside(page: Page) -> FrameLocator:
    return page.frame_locator(".preview-frame iframe")


def turn(page: Page) -> None:
    # A faster click counts as the second half of a double click.
    page.wait_for_timeout(600)
    inside(page).locator("#next").click()


def count_rows() -> list[tuple[str, int]]:
    with connection.cursor() as cursor:
        counts = []
        for table in connection.introspection.table_names():
            if table.startswith(("survey_", "accounts_")):
                cursor.execute(f'SELECT count(*) FROM "{table}"')
                counts.append((table, cursor.fetchone()[0]))
    return sorted(counts)


def test_survey_is_uploaded_fixed_previewed_and_published(staff, console):
    page = console(staff.dana)
    page.goto("/console/surveys/")
    page.click(".empty >> text=Write a questionnaire")
    page.click("text=From a file")
    choose(page, with_five_problems())
    expect(page.locator("h2").first).to_have_text("5 problems")
    for words in ("maybe", "perhaps", "${pett}", "geopoint", "${lives} >"):
        assert words in page.locator("table").first.inner_text()
    assert not Survey.objects.exists()
    page.click("text=Upload again")
    choose(page, survey_book())
    expect(page.locator("h1")).to_have_text("Pets, version 1")
    assert page.url.endswith(reverse("survey_detail", args=[Survey.objects.get().pk]))

    page.click(".actions >> text=Preview")
    # The language that is chosen in the frame stays for the next person.
    expect(inside(page).locator(".page-title")).to_have_text("About you")
    inside(page).locator("#language").select_option("es")
    expect(inside(page).locator(".page-title")).to_have_text("Sobre ti")
    page.click("text=Next person")
    expect(page.locator("#seed")).to_have_value("2")
    expect(inside(page).locator(".page-title")).to_have_text("Sobre ti")
    box = page.locator(".preview-frame iframe").bounding_box()
    assert box and 390 <= box["width"] <= 394

    page.click(".crumbs >> text=Pets, version 1")
    expect(page.locator("main")).to_contain_text("A published version can’t be changed")
    page.click("text=Publish version")
    expect(page.locator("#messages")).to_contain_text("version 1 is published")
    assert Survey.objects.get().published_at


@pytest.mark.parametrize("published", [False, True])
def test_whole_survey_is_previewed_and_nothing_is_saved(staff, console, published):
    survey = draft_of(rows=SURVEY, choices=PETS)
    if published:
        offered(publish_survey(survey=survey))
    page = console(staff.state)
    asked: list[tuple[str, str]] = []
    failed: list[str] = []
    page.on("request", lambda request: asked.append((request.method, request.url)))
    page.on("pageerror", lambda error: failed.append(str(error)))
    page.goto("/console/surveys/")
    asked.clear()
    before = count_rows()
    page.goto(reverse("survey_preview", args=[survey.pk]))
    frame = inside(page)

    expect(frame.locator(".page-title")).to_have_text("About you")
    order = frame.locator("#item-pet .option").all_inner_texts()
    frame.locator("#item-who input").fill("Maya")
    expect(frame.locator("#item-pet .pipe")).to_have_text("Maya")
    turn(page)
    # Required: the rules hold here as well.
    expect(frame.locator(".page-title")).to_have_text("About you")
    frame.locator("#item-pet .option[data-value=cat]").click()
    turn(page)
    expect(frame.locator(".page-title")).to_have_text("Cats")
    expect(frame.locator("#status")).to_have_attribute("data-state", "saved")

    frame.locator("#language").select_option("es")
    expect(frame.locator(".page-title")).to_have_text("Gatos")
    frame.locator("#item-lives input").fill("9")
    turn(page)
    expect(frame.locator(".page-title")).to_have_text("El fin")
    frame.locator("#item-why textarea, #item-why input").first.fill("Porque sí")
    turn(page)

    # The review: nothing is missing. Back, take something away, and again.
    finish = frame.locator("#finish-button")
    expect(finish).to_be_visible()
    frame.locator("a.button", has_text="preguntas").click()
    expect(frame.locator(".page-title")).to_have_text("El fin")
    expect(frame.locator("#item-why textarea, #item-why input").first).to_have_value(
        "Porque sí"
    )
    page.wait_for_timeout(600)
    frame.locator("#back").click()
    expect(frame.locator("#item-lives input")).to_have_value("9")
    page.wait_for_timeout(600)
    frame.locator("#back").click()
    expect(frame.locator("#item-pet .option")).to_have_text(order)
    for title in ("Gatos", "El fin"):
        turn(page)
        expect(frame.locator(".page-title")).to_have_text(title)
    turn(page)
    finish.click()
    expect(frame.locator(".done")).to_be_visible()
    assert "3" in frame.locator(".done").inner_text()

    assert count_rows() == before
    assert not Response.objects.exists() and not Respondent.objects.exists()
    assert {method for method, _ in asked} == {"GET"}
    base = page.url.partition("/console/")[0]
    paths = [url.removeprefix(base) for _, url in asked]
    assert all(path.startswith(("/console/", "/static/")) for path in paths), paths
    assert any("/content/" in path for path in paths)
    assert failed == []


@pytest.mark.parametrize("is_reviewing", [False, True])
def test_a_preview_can_be_stopped(staff, console, is_reviewing):
    survey = draft_of(rows=SURVEY, choices=PETS)
    page = console(staff.state)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.method))
    page.goto(reverse("survey_preview", args=[survey.pk]))
    asked.clear()
    frame = inside(page)
    frame.locator("#item-pet .option[data-value=dog]").click()
    turn(page)
    expect(frame.locator(".page-title")).to_have_text("The end")
    if is_reviewing:
        turn(page)
        expect(frame.locator("#finish-button")).to_be_visible()
    frame.get_by_role("button", name="Stop for now").click()
    expect(frame.locator(".done h1")).to_have_text("Your answers are saved")
    # To the beginning of the preview, and never to the real login page.
    frame.get_by_role("link", name="Enter your code").click()
    expect(frame.locator("#item-pet, .page-title").first).to_be_visible()
    assert set(asked) == {"GET"}


def test_review_lists_items_that_another_page_requires(staff, console):
    rows = [list(row) for row in SURVEY]
    # The first page asks for something as soon as the last one says so.
    rows[2][4] = "${why} = 'me'"
    survey = draft_of(rows=rows, choices=PETS)
    page = console(staff.state)
    page.goto(reverse("survey_preview", args=[survey.pk]))
    frame = inside(page)
    frame.locator("#item-pet .option[data-value=dog]").click()
    turn(page)
    frame.locator("#item-why textarea, #item-why input").first.fill("me")
    turn(page)
    missing = frame.locator(".missing a")
    expect(missing).to_have_text("Your name?")
    expect(frame.locator("#finish-button")).to_have_count(0)
    missing.click()
    expect(frame.locator("#item-who input")).to_be_focused()
    frame.locator("#item-who input").fill("Maya")
    turn(page)
    expect(frame.locator(".page-title")).to_have_text("The end")
    turn(page)
    expect(frame.locator("#finish-button")).to_be_visible()


def test_each_previewed_person_has_an_own_order_and_starts_empty(staff, console):
    survey = draft_of(rows=SURVEY, choices=PETS)
    page = console(staff.state)
    orders = set()
    for seed in (1, 2, 3, 4):
        page.goto(reverse("survey_preview", args=[survey.pk]) + f"?seed={seed}")
        frame = inside(page)
        expect(frame.locator("#item-who input")).to_have_value("")
        orders.add(tuple(frame.locator("#item-pet .option").all_inner_texts()))
        frame.locator("#item-who input").fill("Maya")
        frame.locator("#item-pet .option").first.click()
        turn(page)
    assert len(orders) > 1


def test_twin_content_security_policy_blocks_saving_without_the_stub(staff, console):
    # The real transport, in the real frame, with its policy.
    survey = draft_of(rows=SURVEY, choices=PETS)
    page = console(staff.state)
    page.goto(reverse("survey_preview_take", args=[survey.pk, 1]))
    page.wait_for_selector("#page section.page")
    refused = page.evaluate(
        """async (paths) => {
          const send = (path) => new Promise((done) => {
            const asked = new XMLHttpRequest();
            asked.open("POST", path);
            asked.onload = () => done("sent");
            asked.onerror = () => done("refused");
            asked.send("{}");
          });
          return Promise.all(paths.map(send));
        }""",
        ["/take/pages/1/", "/", "/console/surveys/", "https://example.org/"],
    )
    assert refused == ["refused"] * 4


def test_text_is_corrected_in_the_browser(staff, console):
    published = publish_survey(survey=draft_of())
    administration = offered(published)
    enrol(administration, staff.lincoln)
    page = console(staff.state)
    page.goto(reverse("survey_detail", args=[published.survey_id]))
    choose_action(page, "Correct a text")
    choose(page, book(CORRECTED_ROWS, version="1.1"))
    expect(page.locator("h1")).to_have_text("Correction of About pets, version 1")
    page.click("button:has-text('Publish correction')")
    expect(page.locator("#messages")).to_contain_text("(spring)")
    administration.refresh_from_db()
    assert administration.published.survey.version == "1.1"


def test_answers_queued_in_a_browser_arrive_after_a_correction(staff, device):
    published = publish_survey(survey=draft_of())
    administration = offered(published)
    maya = enrol(administration, staff.lincoln, language="en")
    context = device()

    def log_in_as_maya() -> Page:
        page = context.new_page()
        page.goto("/")
        page.fill("#code", code_of(maya))
        page.click("button[type=submit]")
        return page

    page = log_in_as_maya()
    page.locator("#item-pet .option[data-value=dog]").click()
    context.set_offline(True)
    press_next(page)
    expect(page.locator("#status")).to_have_attribute("data-state", "waiting")
    page.close()
    assert not Response.objects.exists()

    draft = draft_of(rows=CORRECTED_ROWS, version="1.1", corrects=published)
    correction = publish_correction(survey=draft, corrects=published, by="test")
    use_correction(administration=administration, published=correction, by=staff.state)
    context.set_offline(False)
    page = log_in_as_maya()
    # The one page was answered: what is left is to finish.
    page.wait_for_url("**/take/complete/**")
    assert set(Response.objects.values_list("value", flat=True)) == {"dog", None}


def test_file_that_is_too_large_is_not_sent(staff, console):
    page = console(staff.dana)
    page.goto("/console/surveys/upload/")
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.method))
    choose(page, bytes(11 * 2**20))
    page.wait_for_timeout(500)
    assert "POST" not in sent
    field = page.locator("input[type=file]")
    assert "larger than 10 MB" in field.evaluate("field => field.validationMessage")


def test_workbook_is_uploaded_without_javascript(staff, console):
    page = console(staff.dana, java_script_enabled=False)
    page.goto("/console/surveys/upload/")
    choose(page, survey_book())
    expect(page.locator("h1")).to_have_text("Pets, version 1")


def test_every_page_is_accessible(staff, console):
    published = publish_survey(survey=draft_of(rows=SURVEY, choices=PETS))
    offered(published)
    draft = draft_of(version="2", corrects=published, rows=SURVEY[:5], choices=PETS)
    texts = [list(row) for row in SURVEY]
    texts[2][2] = "Your first name?"
    corrected = draft_of(version="3", corrects=published, rows=texts, choices=PETS)
    measured = draft_of(version="4", rows=SURVEY, choices=PETS)
    texts = {"label": {"en": "Pets"}, "description": {"en": "About pets."}}
    measure = {"name": "pets", "essential": "care", "direction": "positive", **texts}
    measure |= {"items": [{"name": "pet", "reversed": True}], "missing": []}
    content = {"essentials": [{"name": "care", **texts}], "measures": [measure]}
    SurveyMeasures.objects.create(survey=measured, content=content)
    page = console(staff.state, NARROW)
    page.goto("/console/surveys/upload/")
    choose(page, with_five_problems())
    expect(page.locator("h2").first).to_have_text("5 problems")
    addresses = {
        "problems": page.url,
        "list": "/console/surveys/",
        "none": "/console/surveys/?q=zebra",
        "upload": "/console/surveys/upload/",
        "draft": reverse("survey_detail", args=[draft.pk]),
        "variables": reverse("survey_variables", args=[draft.pk]),
        "published": reverse("survey_detail", args=[published.survey_id]),
        "publish": reverse("survey_publish", args=[draft.pk]),
        "retire": reverse("survey_retire", args=[published.survey_id]),
        "correct": reverse("survey_correct", args=[published.survey_id]),
        "refused": reverse("survey_correction", args=[draft.pk]),
        "correction": reverse("survey_correction", args=[corrected.pk]),
        "preview": reverse("survey_preview", args=[draft.pk]),
        "measures": reverse("survey_measures", args=[measured.pk]),
        "measure": reverse("survey_measure", args=[measured.pk, 1]),
        "new measure": reverse("survey_measure", args=[measured.pk, 0]),
        "essential": reverse("survey_essential", args=[measured.pk, 1]),
    }
    problems = {}
    for name, address in addresses.items():
        page.goto(address)
        if name == "preview":
            expect(inside(page).locator(".page-title")).to_be_visible()
        problems[name] = violations_on(
            page, [{"viewport": LAPTOP}, {"viewport": NARROW}]
        )
    assert {name: lines for name, lines in problems.items() if lines} == {}
