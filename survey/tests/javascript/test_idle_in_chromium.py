"""How long nobody was there, by two clocks of which each may be wrong."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

# Minutes pass on the clock that nobody can correct, and on the device's clock.
HELPERS = """
  localStorage.clear();
  const { Idle } = await import("/js/idle.js");
  const MINUTE = 60000;
  const shown = [];
  const time = { now: 5, wall: Date.parse("2026-11-22T10:00:00Z") };
  const question = {
    name: null,
    ask({ name }) { this.name = name; shown.push("ask"); },
    close() { if (this.name) shown.push("close"); this.name = null; },
  };
  const idle = new Idle({
    tag: "maya",
    clock: { now: () => time.now, after: () => {} },
    wall: () => time.wall,
    question,
    text: (key) => key,
    stop: () => shown.push("stop"),
  });
  const pass = (now, wall = now) => {
    time.now += now * MINUTE;
    time.wall += wall * MINUTE;
  };
"""


@pytest.fixture(scope="module")
def tab(chromium: Browser) -> Iterator[Page]:
    page = chromium.new_page()
    yield page
    page.close()


@pytest.fixture
def page(tab: Page, modules: str) -> Page:
    # A new document, which costs a third of a new tab.
    tab.goto(modules)
    return tab


def shown(page: Page, body: str) -> object:
    return page.evaluate(f"async () => {{ {HELPERS} {body} return shown; }}")


@pytest.mark.parametrize(
    ("minutes", "expected"),
    [
        ([9], []),
        ([10], ["ask"]),
        ([10, 4], ["ask"]),
        ([10, 5], ["ask", "close", "stop"]),
    ],
)
def test_it_asks_after_ten_minutes_and_stops_after_five_more(page, minutes, expected):
    steps = "".join(f"pass({n}); idle.check();" for n in minutes)
    assert shown(page, steps) == expected


def test_a_closed_laptop_whose_timers_stood_still_is_stopped(page):
    assert shown(page, "pass(0, 60); idle.check();") == ["stop"]


def test_a_page_that_is_shown_again_is_checked_at_once(page):
    body = """idle.listen(); pass(0, 60);
        document.dispatchEvent(new Event("visibilitychange", { bubbles: true }));"""
    assert shown(page, body) == ["stop"]


def test_the_first_input_after_a_long_sleep_is_not_the_persons(page):
    assert shown(page, "pass(0, 60); idle.noteInput(); idle.check();") == ["stop"]


@pytest.mark.parametrize("minutes", [3, -600])
def test_a_clock_that_is_set_back_delays_nothing(page, minutes):
    assert shown(page, f"pass(10, {minutes}); idle.check();") == ["ask"]


def test_input_counts_as_long_as_nothing_is_asked(page):
    body = "for (let n = 0; n < 9; n += 1) { pass(9); idle.noteInput(); }"
    assert shown(page, body) == []
    # While it asks, only its buttons count.
    body = "pass(10); idle.check(); idle.noteInput(); pass(5); idle.check();"
    assert shown(page, body) == ["ask", "close", "stop"]


def test_input_in_another_tab_of_the_same_person_closes_the_question(page):
    script = """pass(10); idle.check(); pass(1);
        localStorage.setItem("groundswell active", JSON.stringify({ tag: "%s", at: time.wall }));
        pass(1); idle.check();"""
    assert shown(page, script % "maya") == ["ask", "close"]
    assert shown(page, script % "noor") == ["ask"]


def test_a_time_in_the_future_counts_for_nothing(page):
    """It was noted before the clock was corrected."""
    assert shown(
        page, "pass(0, 600); idle.restart(); pass(15, -585); idle.check();"
    ) == ["stop"]
    note = 'JSON.stringify({ tag: "maya", at: time.wall + 600 * MINUTE })'
    script = f'localStorage.setItem("groundswell active", {note});'
    assert shown(page, f"pass(10); {script} idle.check();") == ["ask"]


def test_nothing_happens_after_it_has_stopped(page):
    body = "pass(15); idle.check(); pass(15); idle.check(); idle.noteInput();"
    assert shown(page, body) == ["stop"]
    resumed = body + "idle.resume(); pass(9); idle.check(); pass(1); idle.check();"
    assert shown(page, resumed) == ["stop", "ask"]
