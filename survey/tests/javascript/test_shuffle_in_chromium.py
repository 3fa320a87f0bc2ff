"""Server and browser put randomised options into the same order."""

from __future__ import annotations

import random

from survey.taking.without_javascript.rendering import shuffled

SHUFFLE = """async (cases) => {
  const { shuffled } = await import("/js/shuffle.js");
  return cases.map((given) => shuffled(...given));
}"""


def test_both_orders_are_the_same(chromium, modules):
    drawn = random.Random(1)
    cases = [
        (list(range(length)), drawn.randrange(2**32), name, item_seed)
        for length in (1, 2, 3, 7, 20)
        for name in ("pets", "ñandú😀", "x" * 30)
        # The importer reads seeds of at most 15 digits.
        for item_seed in (*[None] * 10, 0, 7, -7, 2**31, 10**15 - 1, 1 - 10**15)
    ]
    page = chromium.new_page()
    page.goto(modules)
    orders = page.evaluate(SHUFFLE, cases)
    page.close()
    assert orders == [shuffled(*case) for case in cases]
