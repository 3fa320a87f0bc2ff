"""The whole way: answer, lose the network, the page, the server; finish."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from django.db import transaction
from playwright.sync_api import Route, expect

import survey.simulation.demo
from settings.tests.patience import eventually
from survey.instrument.definitions.publishing import publish_survey
from survey.instrument.xlsform import import_survey, read_xlsform
from survey.models import PublishedSurvey, Respondent, Response
from survey.tests.browser.conftest import LAPTOP
from survey.tests.browser.person import Person, stored
from survey.tests.conftest import enrol, open_now

pytestmark = pytest.mark.django_db(transaction=True)

SAVES = "**/take/pages/**"
STUDENTS = Path(survey.simulation.demo.__file__).with_name("students.xlsx")


@pytest.fixture
def published(transactional_db: None) -> PublishedSurvey:
    with STUDENTS.open("rb") as file:
        reading = read_xlsform(file)
    return publish_survey(
        survey=import_survey(
            draft=reading.draft,
            source_name="students.xlsx",
            source=STUDENTS.read_bytes(),
        )
    )


@pytest.fixture
def maya(published: PublishedSurvey, lincoln) -> Respondent:
    return enrol(open_now(published), lincoln, grade="07", language="en")


@pytest.mark.sqlite
def test_a_student_answers_the_whole_survey(device, server, maya, published):
    phone = device(locale="es-MX")
    person = Person(phone.new_page(), seed=7)
    person.log_in(maya)
    person.page.select_option("#language", "es")
    expect(person.page.locator("html")).to_have_attribute("lang", "es")
    expect(person.page.locator("#survey-title")).to_have_text("Mi escuela y yo")
    expect(person.page.locator(".skip")).to_have_text("Ir a las preguntas")
    expect(person.page.locator("#progress")).to_have_attribute(
        "aria-label", "Tu avance"
    )

    # Two pages without any failure.
    for _ in range(2):
        person.answer_page()
        person.next()
    person.sees("saved")

    # Three without the network.
    phone.set_offline(True)
    for _ in range(3):
        person.answer_page()
        person.next()
    person.sees("waiting")
    at = person.number()
    assert not set(stored(maya, published)) & {"none"}
    before = len(stored(maya, published))
    phone.set_offline(False)
    person.sees("saved")
    assert len(stored(maya, published)) > before
    assert stored(maya, published) == person.answers

    # A reload shows the same page.
    person.page.reload()
    person.page.wait_for_selector("#page section.page")
    assert person.number() == at

    # Back, another answer, and forward again.
    person.page.click("#back")
    person.waits_until_left(at)
    person.page.wait_for_selector("#page section.page")
    assert person.number() < at
    person.skips = 0
    person.answer_page()
    person.next()
    person.sees("saved")

    # The server is killed during a save, and started again.
    person.skips = 0.1
    person.answer_page()
    with held_respondent(maya):
        person.next()
        time.sleep(0.5)
        server.kill()
    person.sees("waiting")
    server.start()
    person.sees("saved")
    assert stored(maya, published) == person.answers

    # A second browser shows all saved answers.
    phone.close()
    laptop = device(viewport=LAPTOP)
    second = Person(laptop.new_page(), seed=8)
    second.answers, second.pages = person.answers, person.pages
    second.log_in(maya)
    assert second.number() == at + 1
    second.answer_to_the_end()
    assert stored(maya, published) == second.answers
    second.finish()

    maya.refresh_from_db()
    assert maya.completed_at is not None
    assert stored(maya, published) == second.answers
    assert f"All {pages_of(second)} pages" in second.page.locator(".done").inner_text()


def pages_of(person: Person) -> int:
    """Return the numbers of the demo's pages that this person was shown."""
    return len(person.pages)


class held_respondent:
    """Keeps a save of this respondent waiting in the database."""

    def __init__(self, respondent: Respondent) -> None:
        self.respondent = respondent
        self.atomic = transaction.atomic()

    def __enter__(self) -> None:
        self.atomic.__enter__()
        Respondent.objects.filter(pk=self.respondent.pk).update(grade="07")

    def __exit__(self, *error: object) -> None:
        self.atomic.__exit__(*error)


def test_a_page_whose_reply_was_lost_is_sent_again_and_saved_once(
    device, maya, published
):
    person = Person(device().new_page(), seed=3)
    person.log_in(maya)
    seen: list[str] = []

    def lose_first_reply(route):
        seen.append(route.request.post_data)
        reply = route.fetch()
        if len(seen) == 1:
            route.abort()
        else:
            route.fulfill(response=reply)

    person.page.route("**/take/pages/**", lose_first_reply)
    person.answer_page()
    person.next()
    person.sees("saved")
    assert len(seen) == 2
    assert seen[0] == seen[1]
    assert stored(maya, published) == person.answers


FOREIGN_REPLIES = [
    {"status": 200, "content_type": "text/html", "body": "<h1>Welcome to wifi</h1>"},
    {
        "status": 200,
        "content_type": "application/json",
        "body": '{"saved": 5, "revision": 1}',
    },
    {"status": 500, "body": "oops"},
    {"status": 401, "json": {"error": "session"}},
    {"status": 403, "json": {"error": "blocked"}},
    {"status": 409, "json": {"error": "superseded"}},
    {"status": 302, "headers": {"Location": "/"}, "body": ""},
]


def test_a_foreign_reply_does_not_count_as_saved(device, maya, published):
    """A captive portal says 200 to everything; a school's filter refuses."""
    person = Person(device().new_page(), seed=3)
    person.log_in(maya)

    def answer_instead(route: Route) -> None:
        route.fulfill(**reply)

    for reply in FOREIGN_REPLIES:
        before = stored(maya, published)
        person.page.route(SAVES, answer_instead)
        person.answer_page()
        assert person.answers != before
        person.next()
        person.sees("waiting")
        assert stored(maya, published) == before, reply
        person.page.unroute(SAVES)
        # Not after a pause, which grows.
        person.page.evaluate("dispatchEvent(new Event('online'))")
        person.sees("saved")
        assert stored(maya, published) == person.answers, reply


def test_a_closed_tab_loses_nothing_after_a_reload(device, server, maya, published):
    """The kept page goes out when its owner comes back, and then is wiped."""
    context = device()
    person = Person(context.new_page(), seed=5)
    person.log_in(maya)
    person.answer_page()
    context.route(SAVES, lambda route: route.abort())
    person.next()
    person.sees("waiting")
    # A closing tab sends its page once more, in a request that outlives it: Playwright
    # would not intercept that one.
    server.kill()
    person.page.close()
    assert not Response.objects.exists()

    server.start()
    context.unroute(SAVES)
    reopened = Person(context.new_page(), seed=6)
    reopened.page.goto("/take/")
    reopened.page.wait_for_selector("#page section.page")
    reopened.sees("saved")
    assert stored(maya, published) == person.answers
    eventually(lambda: kept_records(reopened.page) == [])


def kept_records(page) -> list[dict]:
    """Return the contents of this browser's IndexedDB, with values as text."""
    return page.evaluate(
        """async () => {
            const done = (request) => new Promise((resolve, reject) => {
                request.onsuccess = () => resolve(request.result);
                request.onerror = () => reject(request.error);
            });
            const readable = (value) =>
                value instanceof ArrayBuffer || ArrayBuffer.isView(value)
                    ? new TextDecoder("latin1").decode(value)
                    : JSON.stringify(value);
            const all = [];
            for (const { name } of await indexedDB.databases()) {
                const db = await done(indexedDB.open(name));
                for (const store of db.objectStoreNames) {
                    const rows = db.transaction(store).objectStore(store).getAll();
                    for (const row of await done(rows)) {
                        all.push(Object.fromEntries(Object.entries(row).map(
                            ([key, value]) => [key, readable(value)])));
                    }
                }
                db.close();
            }
            return all;
        }"""
    )


def test_the_next_child_at_the_same_computer_sees_no_answers(
    device, server, maya, published
):
    """Not by storage, history, the back button or the page cache."""
    noor = enrol(maya.administration, maya.school, language="en")
    context = device()
    person = Person(context.new_page(), seed=5)
    person.log_in(maya)
    person.skips = 0
    person.answer_page()
    person.next()
    person.sees("saved")
    person.answer_page()
    context.set_offline(True)
    person.next()
    person.sees("waiting")

    # There is something to leak, and it is not readable.
    eventually(lambda: len(kept_records(person.page)) == 1)
    (record,) = kept_records(person.page)
    texts = [value for value in person.answers.values() if value and len(value) > 3]
    for text in (*person.answers, *texts):
        assert text not in str(record)
    context.set_offline(False)
    context.route("**/take/pages/**", lambda route: route.abort())

    next_child = Person(person.page, seed=9)
    next_child.log_in(noor)
    assert next_child.number() == 1
    assert next_child.page.locator("#page input:checked").count() == 0
    for _ in range(3):
        next_child.page.go_back()
        next_child.page.wait_for_timeout(300)
        assert next_child.page.locator("#page input:checked").count() == 0
    assert (
        next_child.page.evaluate(
            "JSON.stringify([localStorage, sessionStorage, history.state])"
        ).count("seguro")
        == 0
    )
    context.unroute("**/take/pages/**")

    # Maya's waiting page is never saved for Noor, who went back to the login page
    # and so ended her session.
    next_child.log_in(noor)
    next_child.page.wait_for_timeout(1500)
    assert not Response.objects.filter(respondent_id=noor.pk).exists()

    # Maya logs in at the same computer again: nothing was lost.
    person.log_in(maya)
    assert person.number() == 3
    eventually(lambda: stored(maya, published) == person.answers)
    eventually(lambda: kept_records(person.page) == [])


def test_an_open_tab_never_saves_a_page_for_another_child(
    device, server, maya, published
):
    """Noor logs in while Maya's tab is open in the same browser."""
    noor = enrol(maya.administration, maya.school, language="en")
    context = device()
    first = Person(context.new_page(), seed=5)
    first.log_in(maya)
    second = Person(context.new_page(), seed=6)
    second.log_in(noor)

    first.answer_page()
    first.turn()
    expect(first.page.locator("#notice")).to_be_visible()
    first.page.wait_for_timeout(1000)
    assert not Response.objects.exists()


def test_a_login_after_the_session_ended_loses_no_page(device, maya, published):
    context = device()
    person = Person(context.new_page(), seed=5)
    person.log_in(maya)
    person.answer_page()
    for name in ("sessionid", "resume"):
        context.clear_cookies(name=name)
    person.turn()
    notice = person.page.locator("#notice")
    expect(notice).to_be_visible()
    from survey.tests.conftest import code_of

    notice.locator("input").fill(code_of(maya))
    notice.locator("button").first.click()
    person.sees("saved")
    assert stored(maya, published) == person.answers


def test_of_two_tabs_the_newer_wins_and_the_older_may_continue(device, maya, published):
    context = device()
    old = Person(context.new_page(), seed=5)
    old.log_in(maya)
    new = Person(context.new_page(), seed=6)
    new.page.goto("/take/")
    new.page.wait_for_selector("#page section.page")
    new.answer_page()
    new.next()
    new.sees("saved")
    assert stored(maya, published) == new.answers

    old.skips = 0
    old.answer_page()
    old.turn()
    notice = old.page.locator("#notice")
    expect(notice).to_be_visible()
    assert stored(maya, published) == new.answers
    notice.get_by_role("button").first.click()
    old.sees("saved")
    assert stored(maya, published) == old.answers


def test_an_old_open_tab_does_not_undo_the_phones_answers(device, maya, published):
    """It shows the page as it was, and goes past it in a hurry."""
    phone = Person(device().new_page(), seed=5)
    phone.log_in(maya)
    laptop = Person(device(viewport=LAPTOP).new_page(), seed=6)
    laptop.log_in(maya)
    phone.skips = 0
    phone.answer_page()
    phone.next()
    phone.sees("saved")

    laptop.answer("ready")
    laptop.turn()
    notice = laptop.page.locator("#notice")
    expect(notice).to_be_visible()
    assert stored(maya, published) == phone.answers
    notice.get_by_role("button").first.click()
    laptop.sees("saved")
    assert stored(maya, published) == phone.answers


def test_a_missing_required_answer_blocks_next_and_is_focused(device, maya, published):
    person = Person(device().new_page())
    person.log_in(maya)
    required = person.page.locator("#page .item:visible:has(.required-mark)")
    if not required.count():
        raise AssertionError("The demo's first page has nothing required.")
    person.turn()
    assert person.number() == 1
    error = required.first.locator(".error")
    expect(error).to_be_visible()
    assert person.page.evaluate("document.activeElement !== document.body")
