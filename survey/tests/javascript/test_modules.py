"""Check the habits that bundling needs (`settings/infrastructure/bundling.py`)."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
from django.conf import settings

from settings.infrastructure.bundling import EXPORT, IMPORT

MODULES = sorted(Path(settings.BASE_DIR, "static", "js").glob("*.js"))
# Entry -> the template that lists its modules.
BUNDLES = {
    "take": "_take_scripts",
    "login": "_login_scripts",
    "open_start": "_open_scripts",
    "complete": "_complete_scripts",
    "preview": "console/_survey_preview_take_scripts",
    "preview_review": "console/_survey_preview_review_scripts",
    "preview_frame": "console/_survey_preview_frame_scripts",
    "console": "../console/_scripts",
    "upload": "../console/_upload_scripts",
    "roster_columns": "console/_roster_columns_scripts",
}
ENTRIES = tuple(BUNDLES)
TOP_LEVEL = re.compile(
    r"^(?:export )?(?:async )?(?:function\*?|class|const|let)\s+(\w+)", re.MULTILINE
)


def imports_of(name: str) -> list[str]:
    text = next(path for path in MODULES if path.stem == name).read_text("utf-8")
    return re.findall(r'from "\./([\w-]+)\.js"', text)


def joined(entry: str) -> list[str]:
    template = Path(settings.BASE_DIR, "templates", "survey", f"{BUNDLES[entry]}.html")
    return re.findall(r"'js/([\w-]+)\.js'", template.read_text("utf-8"))


@pytest.mark.parametrize("entry", ENTRIES)
def test_each_module_of_a_bundle_follows_its_imports(entry):
    modules = joined(entry)
    assert modules[-1] == entry
    assert len(set(modules)) == len(modules)
    for position, name in enumerate(modules):
        assert set(imports_of(name)) <= set(modules[:position]), name


@pytest.mark.parametrize("entry", ENTRIES)
def test_each_module_of_a_bundle_is_imported(entry):
    modules = joined(entry)
    imported = {name for module in modules for name in imports_of(module)}
    assert set(modules) - imported == {entry}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_imports_and_exports_can_be_removed(path):
    rest = EXPORT.sub("", IMPORT.sub("", path.read_text("utf-8")))
    assert not re.search(r"^\s*(import|export)\b", rest, re.MULTILINE)
    assert "import(" not in rest
    assert " as " not in "".join(IMPORT.findall(path.read_text("utf-8")))


@pytest.mark.parametrize("entry", ENTRIES)
def test_no_name_is_declared_twice_in_a_bundle(entry):
    names = Counter(
        name
        for path in MODULES
        if path.stem in joined(entry)
        for name in TOP_LEVEL.findall(path.read_text("utf-8"))
    )
    assert [name for name, times in names.items() if times > 1] == []
