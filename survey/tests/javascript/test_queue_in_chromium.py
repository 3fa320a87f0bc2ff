"""The queue of waiting saves, in the browser that runs it.

`queue_model.js` loses, delays, doubles and forges what goes over the network;
its seed is in each failure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from survey.taking.storage import TABS

SEEDS = range(1, 151)


def body(n: int, answers: str, seen: int = 9, first: int = 100) -> str:
    """Return the n-th save of a tab whose first revision is `first`."""
    revision = first + n * TABS
    return f'{{"revision":{revision},"seen":{seen},"answers":{answers}}}'


RUN_MODEL = """async ([seeds, sabotage]) => {
  const { runModel } = await import("/models/queue_model.js");
  const results = [];
  for (const seed of seeds) results.push([seed, await runModel(seed, sabotage)]);
  return results;
}"""
SCRIPT = """async (body) => {
  const { scripted } = await import("/models/queue_model.js");
  const { Queue } = await import("/js/queue.js");
  const { classify, retryAfter } = await import("/js/send_save.js");
  const { fullJitter } = await import("/js/clock.js");
  const { mergeAnswers } = await import("/js/merge_answers.js");
  const names = {scripted, Queue, classify, retryAfter, fullJitter, mergeAnswers};
  return await globalThis.script(names);
}"""


@pytest.fixture(scope="module")
def page(chromium: Browser, modules: str) -> Iterator[Page]:
    page = chromium.new_page()
    page.goto(modules)
    yield page
    page.close()


@pytest.fixture
def run(page: Page) -> Callable[[str], Any]:
    """Runs the body of a function that is given the modules' names."""

    def run(body: str) -> Any:
        names = "{scripted, Queue, classify, retryAfter, fullJitter, mergeAnswers}"
        page.evaluate(f"globalThis.script = async ({names}) => {{{body}}}; undefined")
        return page.evaluate(SCRIPT)

    return run


def run_model(page: Page, seeds: Any, sabotage: str = "") -> list[tuple[int, dict]]:
    return page.evaluate(RUN_MODEL, [list(seeds), sabotage])


def test_the_last_answers_arrive_on_any_network(page):
    results = run_model(page, SEEDS)
    assert {seed: r["violations"] for seed, r in results if r["violations"]} == {}
    # The runs had as many failures as intended.
    totals = {
        name: sum(r["counts"][name] for _, r in results)
        for name in ("sent", "lost", "foreign", "reloads", "saved", "leaves")
    }
    assert min(totals.values()) > 150, totals


@pytest.mark.parametrize(
    ("sabotage", "damage"),
    [
        ("believes any 200", "false Saved"),
        ("forgets kept saves", "lost: page"),
        # An older save that arrives later would then win.
        ("trusts equal answers", "lost: page"),
    ],
)
def test_without_its_protections_the_model_finds_violations(page, sabotage, damage):
    results = run_model(page, range(1, 61), sabotage)
    violations = [text for _, result in results for text in result["violations"]]
    assert any(text.startswith(damage) for text in violations)


def test_each_page_has_one_waiting_save_and_one_save_is_in_flight(run):
    assert run("""
      const { queue, sent, settle, status } = scripted();
      queue.put(1, '{"a":"1"}');
      queue.put(2, '{"b":"1"}');
      queue.put(2, '{"b":"2"}');
      queue.put(1, '{"a":"2"}');
      const first = sent.length;
      const before = queue.pending();
      sent[0].answer({kind: "saved", revision: sent[0].revision, at: "x"});
      await settle();
      while (queue.inFlight.size) {
        const last = sent[sent.length - 1];
        last.answer({kind: "saved", revision: last.revision, at: "x"});
        await settle();
      }
      return [first, before, sent.map(({body}) => body), status().state];
    """) == [
        1,
        2,
        [
            body(0, '{"a":"1"}'),
            body(2, '{"b":"2"}'),
            body(3, '{"a":"2"}'),
        ],
        "saved",
    ]


def test_a_retry_sends_identical_bytes(run):
    assert run("""
      const { queue, clock, sent, settle } = scripted();
      queue.put(1, '{"a":"1"}');
      sent[0].answer({kind: "retry", after: null});
      await settle();
      await clock.advance(60000);
      return [sent.length, sent[0].body === sent[1].body];
    """) == [2, True]


def test_a_reply_for_an_older_revision_does_not_acknowledge_a_newer_save(run):
    """The tab was hidden: old and new answers of a page are on the wire."""
    assert run("""
      const { queue, sent, settle, status } = scripted();
      queue.put(1, '{"a":"old"}');
      queue.put(1, '{"a":"new"}');
      queue.sendAll();
      const both = sent.map(({revision}) => revision);
      sent[0].answer({kind: "saved", revision: 100, at: "x"});
      await settle();
      const after_old = [queue.pending(), status().state];
      sent[1].answer({kind: "saved", revision: both[1], at: "x"});
      await settle();
      return [both, after_old, queue.pending(), status().state];
    """) == [[100, 100 + TABS], [1, "saving"], 0, "saved"]


def test_a_save_superseded_by_its_own_tab_does_not_stop_it(run):
    assert run("""
      const { queue, sent, settle } = scripted();
      queue.put(1, '{"a":"old"}');
      queue.put(1, '{"a":"new"}');
      queue.sendAll();
      sent[1].answer({kind: "saved", revision: sent[1].revision, at: "x"});
      sent[0].answer({kind: "halt", error: "superseded"});
      await settle();
      return [queue.halted, queue.pending()];
    """) == [None, 0]


def test_a_page_is_sent_again_only_if_it_changed(run):
    assert run("""
      const { queue, sent, settle } = scripted({ known: [[1, '{"a":"1"}'], [2, '{}']] });
      queue.put(1, '{"a":"1"}');
      queue.put(2, '{"b":null}');
      sent[0].answer({kind: "saved", revision: sent[0].revision, at: "x"});
      await settle();
      queue.put(2, '{"b":null}');
      return sent.map(({page, body}) => [page, body]);
    """) == [[2, body(0, '{"b":null}')]]


def test_a_refused_page_waits_while_others_go_on(run):
    assert run("""
      const { queue, sent, settle, kept } = scripted();
      queue.put(1, '{"a":"x"}');
      sent[0].answer({kind: "answers", items: {a: "not_a_number"}});
      await settle();
      queue.put(2, '{"b":"1"}');
      sent[1].answer({kind: "saved", revision: sent[1].revision, at: "x"});
      await settle();
      const refused = queue.refusals();
      const stillKept = [...kept.keys()];
      queue.put(1, '{"a":"x"}');
      const unchanged = sent.length;
      queue.put(1, '{"a":"1"}');
      return [refused.map(({page, items}) => [page, items]), stillKept, unchanged, sent[2].body];
    """) == [
        [[1, {"a": "not_a_number"}]],
        [1],
        2,
        body(2, '{"a":"1"}'),
    ]


@pytest.mark.parametrize(
    "error", ["person", "finished", "closed", "withdrawn", "declined"]
)
def test_a_stopped_tab_keeps_its_answers(run, error):
    assert run(f"""
      const {{ queue, clock, sent, settle, kept }} = scripted();
      queue.put(1, '{{"a":"1"}}');
      sent[0].answer({{kind: "halt", error: "{error}"}});
      await settle();
      queue.put(2, '{{"b":"1"}}');
      queue.sendAll();
      queue.retrySoon();
      await clock.advance(10 * 60 * 1000);
      return [sent.length, queue.halted.error, [...kept.keys()], queue.pending()];
    """) == [1, error, [1, 2], 2]


def test_everything_is_sent_after_a_new_login(run):
    assert run("""
      const { queue, sent, settle, status } = scripted();
      queue.put(1, '{"a":"1"}');
      sent[0].answer({kind: "session", error: "session"});
      await settle();
      queue.put(2, '{"b":"1"}');
      const stopped = [sent.length, status().key];
      queue.resume(500);
      sent[1].answer({kind: "saved", revision: sent[1].revision, at: "x"});
      await settle();
      return [stopped, sent.map(({body}) => body)];
    """) == [
        [1, "session_over"],
        [
            body(0, '{"a":"1"}'),
            body(1, '{"b":"1"}'),
            body(0, '{"a":"1"}'),
        ],
    ]


def test_a_restored_save_is_sent_first_with_its_own_revision(run):
    assert run("""
      const { queue, sent, settle, kept } = scripted({ base: 500, known: [[1, '{"a":"0"}']] });
      const save = { revision: 100, seen: 9, content: '{"a":"1"}' };
      await queue.restore(1, { before: '{"a":"0"}', save, later: null });
      queue.put(1, '{"a":"2"}');
      const first = sent.map(({body}) => body);
      const slot = kept.get(1);
      sent[0].answer({kind: "saved", revision: 100, at: "x"});
      await settle();
      return [first, slot.save.revision, slot.later.content, sent[1].body];
    """) == [
        ['{"revision":100,"seen":9,"answers":{"a":"1"}}'],
        100,
        '{"a":"2"}',
        body(0, '{"a":"2"}', seen=100, first=500).replace(
            '"answers', '"shown":[9,100],"answers'
        ),
    ]


def test_a_restored_save_that_the_server_already_has_is_sent_again(run):
    """An older save of the page may still be on its way to the server."""
    assert run("""
      const { queue, sent, settle, kept, status } = scripted({ known: [[1, '{"a":"1"}']] });
      const save = { revision: 70, seen: 9, content: '{"a":"1"}' };
      await queue.restore(1, { before: "{}", save, later: null });
      sent[0].answer({kind: "saved", revision: 70, at: "x"});
      await settle();
      return [sent[0].revision, status().state, kept.size];
    """) == [70, "saved", 0]


def test_a_restored_save_that_another_device_replaced_is_dropped(run):
    assert run("""
      const { queue, sent, settle, kept } = scripted({
        seen: [80], known: [[1, '{"a":"3","b":null}']],
      });
      const save = { revision: 70, seen: 9, content: '{"a":"1","b":null}' };
      await queue.restore(1, { before: "{}", save, later: null });
      await settle();
      return [sent.length, queue.unsaved(1), queue.pending(), kept.size];
    """) == [0, None, 0, 0]


def test_a_restored_save_with_more_than_the_other_device_has_is_not_dropped(run):
    assert run("""
      const { queue, sent, settle, kept } = scripted({
        seen: [80], known: [[1, '{"a":"3","b":null}']],
      });
      const save = { revision: 70, seen: 9, content: '{"a":"1","b":"2"}' };
      await queue.restore(1, { before: "{}", save, later: null });
      sent[0].answer({kind: "halt", error: "superseded"});
      await settle();
      return [queue.halted.error, queue.unsaved(1), kept.size];
    """) == ["superseded", '{"a":"3","b":"2"}', 1]


def test_a_restored_save_that_another_device_repeated_is_dropped(run):
    assert run("""
      const { queue, sent, settle, kept } = scripted({ known: [[1, '{"a":"1"}']] });
      const save = { revision: 70, seen: 9, content: '{"a":"1"}' };
      await queue.restore(1, { before: "{}", save, later: null });
      sent[0].answer({kind: "halt", error: "superseded"});
      await settle();
      return [queue.halted, queue.pending(), kept.size];
    """) == [None, 0, 0]


def test_continue_here_keeps_changes_of_both_sides(run):
    """Another device answered b; this one, at the same time, a."""
    assert run("""
      const { queue, sent, settle, status } = scripted({ known: [[1, '{"a":"0","b":"0"}']] });
      queue.put(1, '{"a":"1","b":"0"}');
      sent[0].answer({kind: "halt", error: "superseded"});
      await settle();
      const stopped = [status().key, queue.pending()];
      queue.rebase({ base: 900, seen: [899], shown: [[899]], known: [[1, '{"a":"0","b":"2"}']] });
      return [stopped, sent[1].body];
    """) == [
        ["superseded", 1],
        body(1, '{"a":"1","b":"2"}', seen=899),
    ]


def test_an_answer_without_a_row_is_lost_although_its_page_was_saved_since(run):
    assert run("""
      const { queue, sent, settle } = scripted({ known: [[1, '{}']] });
      queue.put(1, '{"b":"2"}');
      sent[0].answer({kind: "saved", revision: sent[0].revision, at: "x"});
      await settle();
      const sight = { base: 9e9, seen: [8e9], shown: [[8e9]] };
      const state = { ...sight, known: [[1, '{"a":"1"}']], earlier: [] };
      // An answer that this device may not show has a row.
      const lost = [queue.isLostBy(state), queue.isLostBy({ ...state, earlier: ["b"] })];
      queue.rebase(state);
      return [lost, queue.unsaved(1)];
    """) == [[True, False], '{"a":"1","b":"2"}']


# What a closed tab knew was lost, and another tab has saved the page since.
ADOPT_LOST = """
  const { queue } = scripted({ seen: [100], known: [[1, '{"a":"6"}']] });
  const later = { content: '{"a":"3","b":"5"}', held: true, number: 501, replaced: [] };
  %s
  await queue.restore(1, { before: '{"a":"3"}', beforeRevision: 500, save: null, later });
  // What is shown now is not what this tab was loaded with.
  const seen = queue.seenOf(1);
  queue.rebase({ base: 900, seen: [100], shown: [[100]], known: [[1, '{"a":"6"}']] });
  return [seen, queue.unsaved(1)];
"""


def test_what_only_a_closed_tab_knew_is_not_sent_again(run):
    assert run(ADOPT_LOST % "") == [500, '{"a":"6","b":"5"}']


def test_if_it_counted_as_known_here_it_would_replace_newer_answers(run):
    twin = "queue.newestHere = queue.newestKnown;"
    assert run(ADOPT_LOST % twin) == [500, '{"a":"3","b":"5"}']


def test_a_draft_that_was_taken_over_twice_wins_over_what_it_replaced(run):
    assert (
        run("""
      const { queue, kept } = scripted({ known: [[1, '{"a":"0"}']] });
      queue.put(1, '{"a":"1"}');
      const replaced = ['{"a":"0","b":"2"}'];
      const save = { revision: 50, seen: 9, content: '{"a":"0","b":"3"}', replaced };
      await queue.restore(1, { before: '{"a":"0"}', beforeRevision: 9, save, later: null });
      const next = scripted({ seen: [800], known: [[1, '{"a":"0","b":"2"}']] }).queue;
      await next.restore(1, kept.get(1));
      return next.unsaved(1);
    """)
        == '{"a":"1","b":"3"}'
    )


def test_answers_of_a_dropped_save_are_no_changes_of_this_tab(run):
    """The save that was taken over is dropped; then another tab changes its answer."""
    assert (
        run("""
      const known = '{"a":"1","b":"2"}';
      const { queue, sent, settle } = scripted({ seen: [60], known: [[1, known]] });
      const save = { revision: 70, seen: 9, content: known };
      await queue.restore(1, { before: "{}", save, later: null });
      queue.hold(1, '{"a":"1","b":"3"}');
      sent[0].answer({kind: "halt", error: "superseded"});
      await settle();
      queue.rebase({ base: 9e9, seen: [8e9], shown: [[8e9]], known: [[1, '{"a":"4","b":"2"}']] });
      return queue.unsaved(1);
    """)
        == '{"a":"4","b":"3"}'
    )


def test_without_the_merge_the_other_devices_answer_would_be_lost(run):
    assert run("""
      const both = mergeAnswers('{"a":"0","b":"0"}', '{"a":"1","b":"0"}', '{"a":"0","b":"2"}');
      const blind = mergeAnswers(null, '{"a":"1","b":"0"}', '{"a":"0","b":"2"}');
      return [both, blind];
    """) == ['{"a":"1","b":"2"}', '{"a":"1","b":"0"}']


def test_an_item_may_be_named_like_a_javascript_property(run):
    assert (
        run("""
      const names = '{"constructor":"1","__proto__":"2"}';
      return mergeAnswers('{"constructor":"1"}', names, '{"constructor":"3"}');
    """)
        == '{"__proto__":"2","constructor":"3"}'
    )


def test_an_item_that_one_side_did_not_answer_is_taken_from_the_other(run):
    assert run("""
      const before = '{"a":"0"}';
      return [
        mergeAnswers(before, '{"a":"1"}', '{"a":"0","b":"2"}'),
        mergeAnswers(before, '{"b":"2","a":"0"}', '{"a":"1"}'),
      ];
    """) == ['{"a":"1","b":"2"}', '{"a":"1","b":"2"}']


def test_retries_are_spread_over_at_most_a_minute(run):
    waits = run("""
      const draws = [0, 0.5, 0.999];
      return [1, 2, 5, 7, 12].map((attempt) => draws.map((draw) => fullJitter(attempt, () => draw)));
    """)
    assert waits[0] == [0, 500, 999]
    assert waits[1] == [0, 1000, 1998]
    assert waits[3] == waits[4] == [0, 30000, 59940]


def test_a_corrected_clock_of_the_device_changes_no_waiting_time(page):
    assert page.evaluate(
        """async () => {
          const { systemClock } = await import("/js/clock.js");
          const { now } = Date;
          const before = systemClock.now();
          Date.now = () => now() - 24 * 60 * 60 * 1000;
          const passed = systemClock.now() - before;
          Date.now = now;
          return passed >= 0;
        }"""
    )


def test_a_retry_waits_at_least_as_long_as_retry_after(run):
    assert run("""
      const { queue, clock, sent, settle } = scripted({ random: () => 0 });
      queue.put(1, '{"a":"1"}');
      sent[0].answer({kind: "retry", after: 30000});
      await settle();
      await clock.advance(10000);
      queue.retrySoon();
      await clock.advance(29999);
      const early = sent.length;
      await clock.advance(30001);
      return [early, sent.length];
    """) == [1, 2]


def test_the_network_coming_back_ends_a_long_wait(run):
    assert run("""
      const { queue, clock, sent, settle } = scripted({ random: () => 0.9 });
      queue.put(1, '{"a":"1"}');
      for (let turn = 0; turn < 6; turn += 1) {
        sent[turn].answer({kind: "retry", after: null});
        await settle();
        if (turn < 5) await clock.advance(clock.time + 60000);
      }
      await clock.advance(clock.time + 5000);
      const still = sent.length;
      queue.retrySoon();
      await clock.advance(clock.time + 1000);
      return [still, sent.length];
    """) == [6, 7]


def test_a_page_that_makes_the_server_fail_does_not_hold_up_others(run):
    assert run("""
      const { queue, clock, sent, settle } = scripted();
      queue.put(1, '{"a":"1"}');
      queue.put(2, '{"b":"1"}');
      sent[0].answer({kind: "retry", after: null});
      await settle();
      await clock.advance(60000);
      return sent.map(({page}) => page);
    """) == [1, 2]


def test_a_draft_waits_until_the_page_is_left(run):
    assert run("""
      const { queue, sent, kept } = scripted();
      queue.hold(3, '{"a":"1"}');
      const draft = [sent.length, queue.pending(), kept.get(3).later.held];
      queue.sendAll();
      return [draft, sent.map(({body}) => body)];
    """) == [[0, 0, True], [body(0, '{"a":"1"}')]]


def from_server(reply: str) -> str:
    """Return the JSON of a refusal with the mark of `refusals.refusal`."""
    return reply[:-1] + ',"from":"groundswell"}'


REPLIES = [
    (200, '{"saved":5,"revision":7,"at":"x"}', "saved"),
    (200, '{"saved":5,"revision":6,"at":"x"}', "retry"),
    (200, '{"saved":5,"revision":"7"}', "retry"),
    (200, '{"revision":7}', "retry"),
    (200, "<h1>Log in to wifi</h1>", "retry"),
    (200, "[7]", "retry"),
    (204, "", "retry"),
    (0, "", "retry"),
    (302, "", "retry"),
    (401, from_server('{"error":"session"}'), "session"),
    (401, from_server('{"error":"reissued"}'), "session"),
    (401, "<h1>Proxy</h1>", "retry"),
    (401, '{"error":"session"}', "retry"),
    (403, from_server('{"error":"person"}'), "halt"),
    (403, from_server('{"error":"origin"}'), "refused"),
    (400, "<h1>Bad request</h1>", "retry"),
    (403, "<h1>Blocked by the school</h1>", "retry"),
    (403, '{"error":"blocked","from":"filter.example"}', "retry"),
    (403, '{"error":"person"}', "retry"),
    (403, '{"from":"groundswell"}', "retry"),
    (404, "<h1>No such site</h1>", "retry"),
    (405, "", "retry"),
    (404, from_server('{"error":"page"}'), "refused"),
    (407, "", "retry"),
    (409, from_server('{"error":"superseded"}'), "halt"),
    (409, from_server('{"error":"finished"}'), "halt"),
    (409, from_server('{"error":"withdrawn"}'), "halt"),
    (409, from_server('{"error":"declined"}'), "halt"),
    (409, from_server('{"error":"closed"}'), "halt"),
    (409, "", "retry"),
    (409, '{"error":"superseded"}', "retry"),
    (413, "<h1>Too large</h1>", "retry"),
    (413, from_server('{"error":"too_large"}'), "refused"),
    (415, from_server('{"error":"json"}'), "refused"),
    (422, from_server('{"error":"answers","items":{"q":"missing"}}'), "answers"),
    (422, from_server('{"error":"body"}'), "refused"),
    (422, '{"error":"answers","items":{"q":"missing"}}', "retry"),
    (429, "", "retry"),
    (429, from_server('{"error":"too_many"}'), "retry"),
    (500, "", "retry"),
    (502, "<h1>Bad gateway</h1>", "retry"),
    (503, '{"error":"again"}', "retry"),
]


@pytest.mark.parametrize(("status", "text", "kind"), REPLIES)
def test_replies_are_classified(page, status, text, kind):
    classified = page.evaluate(
        """async ([status, text]) => {
          const { classify } = await import("/js/send_save.js");
          const header = () => null;
          return classify({ status, text, revision: 7, header });
        }""",
        [status, text],
    )
    assert classified["kind"] == kind


@pytest.mark.parametrize(
    ("after", "date", "wait"),
    [
        ("5", None, 5000),
        ("0", None, 0),
        ("99999999", None, 900_000),
        (None, None, None),
        ("soon", None, None),
        # Relative to the server's date: the device's clock may be wrong.
        ("Thu, 01 Jan 1970 00:01:30 GMT", None, None),
        ("Thu, 01 Jan 1970 00:01:30 GMT", "Thu, 01 Jan 1970 00:01:20 GMT", 10_000),
        ("Thu, 01 Jan 1970 00:00:01 GMT", "Thu, 01 Jan 1970 00:01:20 GMT", 0),
    ],
)
def test_retry_after_in_seconds_or_as_a_date(page, after, date, wait):
    assert (
        page.evaluate(
            """async (headers) => {
              const { retryAfter } = await import("/js/send_save.js");
              return retryAfter((name) => headers[name]);
            }""",
            {"Retry-After": after, "Date": date},
        )
        == wait
    )


def test_continue_here_merges_a_restored_save_without_undoing_newer_answers(run):
    """Another device changed a after this one; b it never touched."""
    assert run("""
      const theirs = [[1, '{"a":"4","b":null}']];
      const { queue, sent, settle } = scripted({ known: theirs });
      const save = { revision: 70, seen: 9, content: '{"a":"1","b":"1"}' };
      await queue.restore(1, { before: '{"a":null,"b":null}', save, later: null });
      sent[0].answer({ kind: "halt", error: "superseded" });
      await settle();
      queue.rebase({ base: 900, seen: [899], shown: [[899]], known: theirs });
      await settle();
      return sent[1].body;
    """) == body(1, '{"a":"4","b":"1"}', seen=899)
