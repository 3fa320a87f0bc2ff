"""Numbers and dates as people type them: read, or asked, the same in the browser."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from playwright.sync_api import Browser, Page

from survey.taking.typed_values import read_typed


class Vector(NamedTuple):
    kind: str
    language: str
    typed: str
    text: str | None
    problem: str = ""
    # How to type both readings of a number.
    grouped: str | None = None
    decimal: str | None = None


VECTORS = [
    Vector(group["kind"], group["language"], *case)
    for group in json.loads(
        Path(__file__).with_name("typed_vectors.json").read_text(encoding="utf-8")
    )
    for case in group["cases"]
]
READ = """async (vectors) => {
  const { readTyped } = await import("/js/typed_values.js");
  return vectors.map(({ kind, typed, language }) => readTyped(kind, typed, language));
}"""


@pytest.fixture(scope="module")
def tab(chromium: Browser, modules: str) -> Iterator[Page]:
    page = chromium.new_page()
    page.goto(modules)
    yield page
    page.close()


@pytest.mark.parametrize("vector", VECTORS, ids=str)
def test_what_is_typed_is_read_or_asked(vector):
    read = read_typed(vector.kind, vector.typed, vector.language)
    assert read.problem == vector.problem
    if vector.problem:
        assert read.values.get("grouped") == vector.grouped
        assert read.values.get("decimal") == vector.decimal
    else:
        assert read.text == vector.text


def test_the_browser_reads_the_same(tab):
    texts = [vector._asdict() for vector in VECTORS]
    for vector, read in zip(VECTORS, tab.evaluate(READ, texts), strict=True):
        values = read.get("values", {})
        assert vector == Vector(
            vector.kind,
            vector.language,
            vector.typed,
            read.get("text"),
            read.get("problem", ""),
            values.get("grouped"),
            values.get("decimal"),
        )


NUMBERS = [vector for vector in VECTORS if vector.grouped is not None]


@pytest.mark.parametrize("vector", NUMBERS, ids=str)
def test_what_the_question_offers_is_certain(vector):
    for offered in (vector.grouped, vector.decimal):
        read = read_typed(vector.kind, offered or "", vector.language)
        assert read.problem == "", offered
