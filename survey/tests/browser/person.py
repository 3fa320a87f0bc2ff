"""A simulated respondent who answers the visible items and remembers the answers."""

from __future__ import annotations

import random
from collections.abc import Mapping

from playwright.sync_api import Locator, Page, expect

from survey.models import PublishedSurvey, Respondent, Response
from survey.taking.published import build_published
from survey.tests.chromium import TIMEOUT
from survey.tests.conftest import code_of

# An earlier click counts as the second click of a double click.
BETWEEN_CLICKS = 600
Answers = dict[str, str | None]
# A page's number, and for how many milliseconds it has been visible.
SEEN = """(section) => {
  section.seen ??= performance.now();
  return [section.dataset.page, performance.now() - section.seen];
}"""


class Person:
    """Clicks and types in one tab.

    `answers` maps each item that was on a page to the text that the database
    should have, None if it was left blank. `known` has answers for items whose
    rules refuse arbitrary ones.
    """

    def __init__(
        self, page: Page, *, seed: int = 1, known: Mapping[str, str] | None = None
    ) -> None:
        self.page = page
        self.random = random.Random(seed)
        self.known = known or {}
        self.answers: Answers = {}
        self.pages: set[int] = set()
        self.skips = 0.1

    def log_in(self, respondent: Respondent) -> None:
        self.page.goto("/")
        self.page.fill("#code", code_of(respondent).lower())
        self.page.click("button[type=submit]")
        self.page.wait_for_selector("#page section.page")

    def number(self) -> int:
        return int(self.page.locator("#page section.page").evaluate(SEEN)[0])

    def answer_page(self) -> int:
        """Answer all visible items, including those that appear meanwhile."""
        done: set[str] = set()
        self.number()
        while True:
            items = self.page.locator("#page .item[data-item]:visible")
            names = items.evaluate_all("all => all.map((one) => one.dataset.item)")
            new = [name for name in names if name not in done]
            if not new:
                break
            self.answer(new[0])
            done.add(new[0])
        for item in self.page.locator("#page .item[data-item]:not(:visible)").all():
            if item.get_attribute("data-kind") != "note":
                self.answers[item.get_attribute("data-item") or ""] = None
        self.pages.add(self.number())
        return self.number()

    def answer(self, name: str) -> None:
        item = self.page.locator(f"#item-{name}")
        kind = item.get_attribute("data-kind") or ""
        if kind == "note":
            return
        optional = item.locator(".required-mark").count() == 0
        if name not in self.known and optional and self.random.random() < self.skips:
            # An answer of an earlier visit stays as it is.
            self.answers.setdefault(name, None)
            return
        answer = {
            "select_one": self.choose,
            "select_multiple": self.tick,
            "acknowledge": self.agree,
            "range": self.slide,
        }.get(kind, self.type)
        self.answers[name] = answer(item, name)

    def choose(self, item: Locator, name: str) -> str:
        if item.locator("select").count():
            values = [
                option.get_attribute("value") or ""
                for option in item.locator("select option").all()
            ]
            value = self.known.get(name) or self.random.choice(values[1:])
            item.locator("select").select_option(value)
            return value
        options = item.locator(".option:visible").all()
        values = [option.get_attribute("data-value") or "" for option in options]
        value = self.known.get(name) or self.random.choice(values)
        # The label of a segment has no box of its own.
        options[values.index(value)].locator("input").click()
        return value

    def tick(self, item: Locator, name: str) -> str:
        """Tick one or two options in random order."""
        options = item.locator(".option:visible").all()
        for option in self.random.sample(options, self.random.randint(1, 2)):
            if not option.locator("input").is_checked():
                option.click()
        return " ".join(
            sorted(
                option.get_attribute("data-value") or ""
                for option in options
                if option.locator("input").is_checked()
            )
        )

    def agree(self, item: Locator, name: str) -> str:
        item.locator("input[type=checkbox]").check()
        return "OK"

    def slide(self, item: Locator, name: str) -> str:
        slider = item.locator("input[type=range]")
        slider.focus()
        for _ in range(self.random.randint(1, 4)):
            slider.press("ArrowRight")
        return slider.input_value()

    def type(self, item: Locator, name: str) -> str:
        field = item.locator("input, textarea").first
        example = {
            "date": "2014-03-05",
            "time": "10:42",
            "datetime-local": "2026-03-05T10:42",
            "number": "7",
        }
        inputmode = field.get_attribute("inputmode") or ""
        default = "7" if inputmode in ("numeric", "decimal") else "Pizza 🍕, por favor"
        value = self.known.get(name) or example.get(
            field.get_attribute("type") or "", default
        )
        field.fill(value)
        return value

    def next(self) -> None:
        """Click Next, and wait for the next page or the review."""
        before = self.number()
        self.turn()
        self.waits_until_left(before)

    def waits_until_left(self, number: int) -> None:
        # Not wait_for_function(), which the page's policy forbids to poll.
        shown = self.page.locator(f"#page section.page[data-page='{number}']")
        expect(shown).to_have_count(0, timeout=TIMEOUT)

    def turn(self) -> None:
        press_next(self.page)

    def is_reviewing(self) -> bool:
        return "/take/complete/" in self.page.url

    def answer_to_the_end(self) -> None:
        total = int(self.page.locator("#progress").get_attribute("max") or 0)
        for _ in range(total + 1):
            if self.is_reviewing():
                return
            last = self.answer_page()
            if last == total:
                self.turn()
                self.page.wait_for_url("**/take/complete/**")
            else:
                self.next()

    def finish(self) -> None:
        self.page.click("#finish-button")
        expect(self.page.locator(".done")).to_be_visible()

    def sees(self, state: str) -> None:
        expect(self.page.locator("#status")).to_have_attribute("data-state", state)


def press_next(page: Page) -> None:
    """Click Next once the page has been visible for long enough."""
    _, passed = page.locator("#page section.page").evaluate(SEEN)
    page.wait_for_timeout(max(0, BETWEEN_CLICKS - passed))
    page.click("#next")


def stored(respondent: Respondent, published: PublishedSurvey) -> Answers:
    """Return the respondent's stored answers by item name; options sorted."""
    import json

    names = build_published("", json.loads(published.definition)).names
    rows = Response.objects.filter(respondent_id=respondent.pk)
    return {
        names[item]: value and " ".join(sorted(value.split(" ")))
        if value and is_several(published, names[item])
        else value
        for item, value in rows.values_list("item_id", "value")
    }


def is_several(published: PublishedSurvey, name: str) -> bool:
    import json

    items = json.loads(published.definition)["items"]
    return items[name]["kind"] == "select_multiple"
