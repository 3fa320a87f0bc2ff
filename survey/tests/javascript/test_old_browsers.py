"""Respondents' scripts use nothing newer than the oldest supported browsers have.

Those are Chrome 80 and Safari 13.1 (see docs/decisions/0073-supported-browsers.md): the
JavaScript of 2020, without BigInt, which Safari lacked. The parser is acorn 8.19.0
(npm, MIT, `dist/acorn.js` as released). `newer_names.txt` has each name of JavaScript's
library and of the DOM that one of the two browsers lacks everywhere, from
`@mdn/browser-compat-data` 8.1.9 (npm, CC0).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Error, Page

from survey.tests.chromium import MODELS, STATIC
from survey.tests.javascript.test_modules import joined

ACORN = "b95392d79457d0357555c5ed3e56302d074b92dff119bcf3b44179500b10e9df"
LEVEL = 2020
MODULES = sorted(
    {name for entry in ("take", "login", "complete") for name in joined(entry)}
)
NEWER = frozenset((MODELS / "newer_names.txt").read_text("utf-8").split())
# Data that comes from the server.
OWN = {"actions", "loading", "local", "login"}
# Functions that are passed in as options.
CALLBACKS = {"address", "changed"}
# Used only where the browser has it.
GUARDED = {"navigator.locks", "locks.query", "navigator.storage"}
# What follows these is the browser's, whatever names our own objects have.
GLOBALS = {"Array", "CSS", "Intl", "Math", "Number", "Object", "Promise", "String"}
GLOBALS |= {"crypto", "document", "history", "location", "navigator", "window"}


@pytest.fixture(scope="module")
def parser(chromium, modules) -> Iterator[Page]:
    acorn = (MODELS / "acorn.js").read_bytes()
    assert hashlib.sha256(acorn).hexdigest() == ACORN
    page = chromium.new_page()
    page.goto(modules)
    for name in ("acorn.js", "names_in_source.js"):
        page.add_script_tag(url=f"/models/{name}")
    yield page
    page.close()


@pytest.fixture(scope="module")
def defined(parser) -> dict[str, set[str]]:
    """Return the names of methods and of data that the modules define."""
    parts: dict[str, set[str]] = {"methods": set(), "keys": set(OWN)}
    for name in MODULES:
        names = names_in(parser, source_of(name))
        parts = {kind: known | set(names[kind]) for kind, known in parts.items()}
    return parts


def source_of(name: str) -> str:
    return Path(STATIC, "js", f"{name}.js").read_text("utf-8")


def names_in(parser: Page, source: str, version: int = LEVEL) -> dict[str, Any]:
    return parser.evaluate("args => namesInSource(...args)", [source, version])


def newer_parts(parser, defined, source: str, version: int = LEVEL) -> list[str]:
    """Return what a browser of the oldest level does not know."""
    try:
        used = names_in(parser, source, version)["used"]
    except Error as error:
        return [error.message]
    return [
        f"{use['object'] or ''}.{use['name']}"
        for use in used
        if use["name"] in NEWER
        and f"{use['object']}.{use['name']}" not in GUARDED
        and not is_own(defined, use)
    ]


def is_own(defined: dict[str, set[str]], use: dict[str, Any]) -> bool:
    if use["object"] is None or use["object"] in GLOBALS:
        return False
    # "at" is a key of ours, and a newer method of lists.
    names = (
        defined["methods"] | CALLBACKS
        if use["isCall"]
        else set().union(*defined.values())
    )
    return use["name"] in names


@pytest.mark.parametrize("name", MODULES)
def test_modules_run_in_the_oldest_supported_browsers(parser, defined, name):
    assert newer_parts(parser, defined, source_of(name)) == []


@pytest.mark.parametrize("name", ["old_browser", "hide_stopped"])
def test_old_browsers_read_what_is_no_module(parser, defined, name):
    assert newer_parts(parser, defined, source_of(name), version=5) == []


@pytest.mark.parametrize(
    "source",
    [
        "a ??= b;",
        "a ||= b;",
        "class Box { size = 1; }",
        "class Box { #size() {} }",
        "const big = 10n;",
        "await start();",
        "const found = /(?<=a)b/.exec(text);",
        "list.at(-1);",
        "list.findLast(isOdd);",
        "Object.hasOwn(box, name);",
        "Object.groupBy(list, kind);",
        "structuredClone(box);",
        "box.replaceChildren();",
        "text.replaceAll(one, two);",
        "crypto.randomUUID();",
        "Promise.any(list);",
        "new WeakRef(box);",
        "form.requestSubmit();",
        "const big = BigInt(text);",
    ],
)
def test_newer_syntax_and_names_are_found(parser, defined, source):
    assert newer_parts(parser, defined, source)
