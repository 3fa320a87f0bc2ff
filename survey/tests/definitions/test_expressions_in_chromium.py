"""The same vectors as in Python, by the modules that respondents' browsers run."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from random import Random

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from playwright.sync_api import Browser, Page

from survey.instrument.definitions.expressions import Context, evaluate, to_text
from survey.instrument.definitions.portable_regex import PatternError, matches, portable
from survey.instrument.definitions.rules import state_of
from survey.tests.definitions.compiled import DEFINITION, clock_of, expected
from survey.tests.definitions.compiled import VECTORS as RULES_VECTORS
from survey.tests.definitions.test_expressions import (
    CATASTROPHES,
    CONTEXTS,
    EVALUATED,
    PATTERN_PARTS,
    TREES,
    VECTORS,
    compiled,
    plain,
    same,
    values_of,
)

EVALUATE = """async (batch) => {
  const { evaluate } = await import("/js/expressions.js");
  const choiceLabel = (name, value) => `[${name}=${value}]`;
  const plain = (result) => {
    if (typeof result !== "number") return result;
    if (Object.is(result, -0)) return { number: "-0" };
    return Number.isFinite(result) ? result : { number: String(result) };
  };
  const results = JSON.parse(batch).map(({ expr, context }) => {
    try {
      return plain(evaluate(expr, { ...context, choiceLabel }));
    } catch (error) {
      return { error: String(error) };
    }
  });
  return JSON.stringify(results);
}"""
MATCH = """async (batch) => {
  const { matches } = await import("/js/expressions.js");
  return JSON.stringify(JSON.parse(batch).map((pair) => matches(...pair)));
}"""
STATES = """async (batch) => {
  const rules = await import("/js/rules.js");
  const { outline, vectors } = JSON.parse(batch);
  const results = vectors.map(({ answers, clock, offered, values }) => {
    const state = rules.stateOf(outline, answers, clock);
    const names = Object.keys(outline.items);
    const pages = [1, 2, 3, 4, 5, 6, 7, 8];
    const optionsOf = (name) => rules.offeredOptions(outline, state, name);
    const pick = (list, of) => Object.fromEntries(list.map((name) => [name, of(name)]));
    return {
      hidden: names.filter((name) => !state.relevant[name]),
      problems: state.problems,
      values: pick(values, (name) => state.values[name]),
      offered: pick(offered, (name) => optionsOf(name).map((o) => o.value)),
      pages: pages.filter((number) => rules.pageVisible(outline, state, number)),
    };
  });
  return JSON.stringify(results);
}"""
SHUFFLE = """async (batch) => {
  const { shuffled } = await import("/js/shuffle.js");
  return JSON.stringify(JSON.parse(batch).map((given) => shuffled(...given)));
}"""


@pytest.fixture(scope="module")
def page(chromium: Browser, modules: str) -> Iterator[Page]:
    page = chromium.new_page()
    page.goto(modules)
    yield page
    page.close()


def in_browser(page, script, batch):
    # JavaScript writes 1e20 as 100000000000000000000, still a rounded number.
    return json.loads(page.evaluate(script, json.dumps(batch)), parse_int=float)


def browser_context(values, row=None):
    today, now = VECTORS["context"]["today"], VECTORS["context"]["now"]
    return {"values": values, "today": today, "now": now, "row": row or {}}


def test_browser_evaluates_the_vectors(page):
    batch = [
        {
            "expr": compiled(vector),
            "context": browser_context(values_of(vector), vector.get("row")),
        }
        for vector in EVALUATED
    ]

    results = in_browser(page, EVALUATE, batch)

    assert len(results) == len(EVALUATED) > 250
    differing = [
        (vector["expression"], vector["gives"], result)
        for vector, result in zip(EVALUATED, results, strict=True)
        if not same(result, vector["gives"])
    ]
    assert differing == []


def test_browser_agrees_with_python_on_any_expression(page):
    """A few hundred expressions, the same in every run."""
    cases = []

    @seed(20261121)
    @settings(
        max_examples=600,
        phases=[Phase.generate],
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(TREES, CONTEXTS)
    def collect(tree, values):
        cases.append((tree, values))

    collect()
    batch = [{"expr": tree, "context": browser_context(v)} for tree, v in cases]

    results = in_browser(page, EVALUATE, batch)

    differing = [
        (tree, values, ours, result)
        for (tree, values), result in zip(cases, results, strict=True)
        if not same(result, ours := in_python(tree, values))
    ]
    assert differing == []
    kinds = Counter(type(result).__name__ for result in results)
    assert kinds["str"] and kinds["bool"] and kinds["dict"]
    assert kinds["float"] > 50


def in_python(tree, values):
    today, now = VECTORS["context"]["today"], VECTORS["context"]["now"]
    context = Context(values, today, now, lambda name, value: f"[{name}={value}]")
    return plain(evaluate(tree, context))


def test_browser_writes_and_reads_numbers_like_python(page):
    random = Random(7)
    numbers = [
        random.uniform(-1, 1) * 10.0 ** random.randint(-30, 30) for _ in "x" * 500
    ]
    numbers += [float(random.randint(-(10**17), 10**17)) for _ in "x" * 200]
    numbers += [5e-324, 1.7976931348623157e308, 2.0**53, 1e16, 1e21, 1e-7]
    batch = [{"expr": ["string", n], "context": browser_context({})} for n in numbers]
    batch += [
        {"expr": ["+", ["number", to_text(n)], 0], "context": browser_context({})}
        for n in numbers
    ]
    batch += [
        {"expr": ["round", n, places], "context": browser_context({})}
        for places, n in enumerate(numbers[:300], start=-5)
    ]

    results = in_browser(page, EVALUATE, batch)

    ours = [in_python(case["expr"], {}) for case in batch]
    assert results[: len(numbers)] == [to_text(n) for n in numbers]
    assert results[len(numbers) : 2 * len(numbers)] == numbers
    assert results == ours


def test_browser_agrees_with_python_on_any_pattern(page):
    random = Random(11)
    pairs = []
    while len(pairs) < 5000:
        source = "".join(random.choices(PATTERN_PARTS, k=random.randint(1, 9)))
        value = "".join(random.choices("aaabc. é\n1_😀", k=random.randint(0, 4)))
        try:
            pairs.append((value, portable(source)))
        except PatternError:
            continue

    results = in_browser(page, MATCH, pairs)

    ours = [matches(*pair) for pair in pairs]
    assert [p for p, a, b in zip(pairs, results, ours, strict=True) if a != b] == []
    assert 200 < sum(ours) < 4800


def test_catastrophic_pattern_is_matched_in_linear_time_in_the_browser(page):
    batch = [(value * 50, portable(pattern)) for pattern, value in CATASTROPHES]
    script = f"""async (batch) => {{
      const started = performance.now();
      const results = await ({MATCH})(batch);
      return JSON.stringify([results, performance.now() - started]);
    }}"""

    results, milliseconds = in_browser(page, script, batch)

    assert json.loads(results) == [False] * len(CATASTROPHES)
    assert milliseconds < 3000


def test_twin_catastrophic_pattern_hangs_the_browsers_own_engine(
    chromium: Browser, modules: str
):
    """Run it in workers of a tab of its own, with which they end."""
    script = """async (batch) => {
      const { pairs, milliseconds } = JSON.parse(batch);
      const ask = (pair) => new Promise((resolve) => {
        const worker = new Worker("/models/own_engine.js");
        worker.onmessage = ({ data }) => resolve(data);
        worker.onerror = ({ message }) => resolve(message);
        setTimeout(resolve, milliseconds, "hangs");
        worker.postMessage(pair);
      });
      return JSON.stringify(await Promise.all(pairs.map(ask)));
    }"""
    pairs = [(value, portable(pattern)) for pattern, value in CATASTROPHES]
    pair = [("aaab", portable("(a+)+b"))]
    tab = chromium.new_page()
    tab.goto(modules)

    answers = in_browser(tab, script, {"pairs": pair, "milliseconds": 10_000})
    assert answers == [True]
    # They keep all cores busy until then.
    answers = in_browser(tab, script, {"pairs": pairs, "milliseconds": 500})
    assert answers == ["hangs"] * len(pairs)
    tab.close()


def test_browser_applies_the_rules_like_python(page):
    vectors = RULES_VECTORS["whole"]
    asked = [
        {
            "answers": vector["answers"],
            "clock": clock_of(vector),
            "offered": list(vector.get("offered", {})),
            "values": list(vector.get("values", {})),
        }
        for vector in vectors
    ]

    states = in_browser(page, STATES, {"outline": DEFINITION, "vectors": asked})

    assert len(states) > 30
    differing = [
        (vector["about"], {key: state[key] for key in expected(vector)})
        for vector, state in zip(vectors, states, strict=True)
        if {key: state[key] for key in expected(vector)} != expected(vector)
    ]
    assert differing == []


def test_browser_agrees_with_python_on_any_answers(page):
    random = Random(3)
    names = list(DEFINITION["items"])
    values = [
        "",
        "yes",
        "no",
        "dog",
        "cat dog",
        "other",
        "n",
        "s",
        "lincoln",
        "3",
        "0.5",
    ]
    values += ["21", "2010-01-01", "2030-01-01", "OK", "AB1", "none cat", "home"]
    cases = [
        {name: random.choice(values) for name in random.sample(names, 12)}
        for _ in range(400)
    ]
    clock = RULES_VECTORS["clock"]
    offered = ["school", "older", "district"]
    asked = [
        {"answers": answers, "clock": clock, "offered": offered, "values": names}
        for answers in cases
    ]

    states = in_browser(page, STATES, {"outline": DEFINITION, "vectors": asked})

    for answers, state in zip(cases, states, strict=True):
        ours = state_of(DEFINITION, answers, **clock)
        assert state["values"] == ours.values
        assert state["problems"] == ours.problems
        assert state["hidden"] == [n for n in names if not ours.relevant[n]]
        assert state["offered"] == {
            n: [option["value"] for option in ours.offered(n)] for n in offered
        }


def test_shuffled_options_keep_their_order_at_every_visit(page):
    options = ["a", "b", "c", "d", "e"]

    first, second = in_browser(page, SHUFFLE, [(options, 4711, "pets")] * 2)

    # Written down, so that a release never reorders what is on a screen.
    assert first == second == ["e", "b", "a", "c", "d"]


def test_options_with_a_seed_have_one_order_for_everybody(page):
    options = ["a", "b", "c", "d", "e"]

    mine, yours = (options, 4711, "pets", 7), (options, 4712, "toys", 7)

    assert in_browser(page, SHUFFLE, [mine, yours]) == [["d", "b", "c", "e", "a"]] * 2


def test_options_are_shuffled_evenly_and_differently_for_each_item(page):
    options = ["a", "b", "c"]
    given = [(options, number * 7919 - 2**31, "pets") for number in range(6000)]
    given += [(options, 1, f"q{number}") for number in range(6000)]

    orders = in_browser(page, SHUFFLE, given)

    for part in (orders[:6000], orders[6000:]):
        times = Counter("".join(order) for order in part)
        assert len(times) == 6
        assert all(850 < count < 1150 for count in times.values()), times
    assert in_browser(page, SHUFFLE, [([], 1, "a"), (["x"], 1, "a")]) == [[], ["x"]]
