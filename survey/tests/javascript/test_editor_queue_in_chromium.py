"""The queue of the editor, in the browser that runs it, against a scripted server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qsl

import pytest
from playwright.sync_api import Browser, Page

# `answer` gets the body of each request, and returns [status, type of content, JSON],
# or null if the reply is lost after the server has done what was asked.
SCRIPT = """async () => {
  const { Queue } = await import("/js/editor_queue.js");
  const sent = [], saved = [], done = [], state = { at: "A" };
  let answer = () => [200, "application/json", {}];
  globalThis.fetch = async (address, { body: data } = {}) => {
    sent.push(String(data ?? address));
    await new Promise((resolve) => setTimeout(resolve, 5));
    const reply = answer(sent.at(-1));
    if (!reply) throw new TypeError("The reply is lost.");
    const [status, type, body] = reply;
    const json = async () => body;
    return { type: "basic", status, headers: { get: () => type }, json };
  };
  let finish;
  const idle = new Promise((resolve) => { finish = resolve; });
  const queue = new Queue({ edit: "/edit/", change: "/change/" }, {
    state: () => ({ ...state }), onStart() {}, onIdle: finish, onShown() {}, onContact() {}, onTrouble() {},
    onSaved: (address, field, { status }) => saved.push([address, status]),
    onDone: (verb, { status }) => done.push([verb, status]),
  });
  const answers = (given) => { answer = given; };
  BODY
  await idle;
  return { sent, saved, done };
}"""
PET, WHY = "survey:A:label:en", "survey:B:label:en"


@pytest.fixture(scope="module")
def page(chromium: Browser, modules: str) -> Iterator[Page]:
    page = chromium.new_page()
    page.goto(modules)
    yield page
    page.close()


@pytest.fixture
def run(page: Page) -> Callable[[str], dict[str, Any]]:
    """Runs statements with `queue`, `state` and `answers`, until all is sent."""

    def run(body: str) -> dict[str, Any]:
        result = page.evaluate(SCRIPT.replace("BODY", body))
        result["sent"] = [dict(parse_qsl(text)) for text in result["sent"]]
        return result

    return run


def test_texts_acts_and_selections_are_sent_in_order(run):
    result = run(f"""
        queue.save("{PET}", "Which", "");
        queue.show({{ at: "B" }});
        queue.act("up:A");
        queue.save("{WHY}", "Why?", "");
    """)
    first, second, third, last = result["sent"]
    assert first[f"f:{PET}"] == "Which" and second[f"f:{WHY}"] == "Why?"
    assert third["act"] == "up:A" and last == {"/edit/?at": "B"}
    assert result["done"] == [["up:A", 200]]


def test_a_rule_is_sent_with_the_question_that_it_was_filled_in_at(run):
    result = run(f"""
        queue.save("{PET}", "Which?", "");
        queue.act("", {{ rule: "relevant", "rule-relevant-key": "A" }});
        state.at = "B";
    """)
    rule = next(body for body in result["sent"] if "rule" in body)
    assert (rule["at"], rule["rule-relevant-key"]) == ("A", "A")


def test_a_question_is_added_below_the_last_one(run):
    result = run("""
        answers(() => [200, "application/json", { at: "new" }]);
        queue.act("add:text");
        queue.act("add:note");
        queue.act("up:C", { at: "C" });
    """)
    assert [body["at"] for body in result["sent"]] == ["A", "new", "C"]


def test_an_act_has_the_same_token_in_each_attempt(run):
    result = run("""
        let lost = true;
        answers(() => {
          const reply = lost ? null : [200, "application/json", {}];
          lost = false;
          return reply;
        });
        queue.act("add:text");
        queue.act("add:text");
    """)
    first, repeated, second = [body["token"] for body in result["sent"]]
    assert first == repeated != second and len(first) > 16


@pytest.mark.parametrize("status", [400, 413, 500])
def test_what_the_server_cannot_save_does_not_keep_the_rest_from_being_saved(
    run, status
):
    result = run(f"""
        const broken = [{status}, "text/html", null];
        answers((body) => body.includes("bad") ? broken : [200, "application/json", {{}}]);
        queue.save("{PET}", "bad", "");
        queue.act("bad:A");
        queue.save("{WHY}", "Why?", "");
    """)
    assert result["saved"] == [[PET, status], [WHY, 200]]
    assert result["done"] == [["bad:A", status]]
    assert len(result["sent"]) == 3


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_a_busy_server_is_asked_again(run, status):
    result = run(f"""
        let isBusy = true;
        answers(() => {{
          const reply = isBusy ? [{status}, "text/html", null] : [200, "application/json", {{}}];
          isBusy = false;
          return reply;
        }});
        queue.save("{PET}", "Which?", "");
    """)
    assert result["saved"] == [[PET, 200]] and len(result["sent"]) == 2
