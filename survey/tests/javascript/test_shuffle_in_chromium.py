"""Server and browser put randomised options into the same order."""

from __future__ import annotations

import random

from survey.taking.plain_rendering import shuffled

SHUFFLE = """async (cases) => {
  const { shuffled } = await import("/js/shuffle.js");
  return cases.map(([list, seed, name]) => shuffled(list, seed, name));
}"""


def test_both_orders_are_the_same(chromium, modules):
    drawn = random.Random(1)
    cases = [
        (list(range(length)), drawn.randrange(2**32), name)
        for length in (1, 2, 3, 7, 20)
        for name in ("pets", "ñandú😀", "x" * 30)
        for _ in range(10)
    ]
    page = chromium.new_page()
    page.goto(modules)
    orders = page.evaluate(SHUFFLE, cases)
    page.close()
    assert orders == [shuffled(*case) for case in cases]
