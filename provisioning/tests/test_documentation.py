"""READMEs are short maps of their folders, and every link leads somewhere."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from provisioning.commands import ROOT

MOST_WORDS = 500
MOST_WORDS_AT_THE_ROOT = 900
DOCS = ROOT / "docs"
# Folders that need no explanation, or that programs write.
NOT_MAPPED = {"tests", "migrations", "locale", "__pycache__", "CACHE", "collected"}
LINK = re.compile(r"\]\(([^)\s]+)\)")


def folders(top: Path) -> Iterator[Path]:
    """Yield `top` and the folders below it that a map has to know."""
    for folder, names, _files in os.walk(top):
        names[:] = [name for name in names if name[0] != "."]
        names[:] = sorted(set(names) - NOT_MAPPED)
        yield Path(folder)


def has_files(folder: Path) -> bool:
    return any(path.is_file() for each in folders(folder) for path in each.iterdir())


def targets(page: Path) -> list[Path]:
    """Return the files and folders to which a page links."""
    links = [link.partition("#")[0] for link in LINK.findall(page.read_text())]
    return [
        Path(os.path.normpath(page.parent / link))
        for link in links
        if link and ":" not in link
    ]


READMES = [path for folder in folders(ROOT) if (path := folder / "README.md").exists()]
PAGES = [
    *READMES,
    *(ROOT / f"{name}.md" for name in ("CHANGELOG", "CONTRIBUTING", "SECURITY")),
    *sorted(DOCS.glob("**/*.md")),
]
DECISIONS = sorted((DOCS / "decisions").glob("*.md"))


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


# The page of `docs` is an index, with a line for each decision.
@pytest.mark.parametrize("readme", [r for r in READMES if r.parent != DOCS], ids=name)
def test_a_readme_is_short(readme):
    most = MOST_WORDS_AT_THE_ROOT if readme.parent == ROOT else MOST_WORDS
    assert len(readme.read_text().split()) <= most, (
        "move decisions to docs/decisions, and instructions to docs/guides"
    )


@pytest.mark.parametrize("readme", READMES, ids=name)
def test_a_readme_is_linked_from_the_one_above(readme):
    above = [path for path in READMES if path.parent in readme.parent.parents]
    if not above:
        assert readme.parent == ROOT
        return
    nearest = max(above, key=lambda path: len(path.parts))
    assert readme in targets(nearest), f"link it from {name(nearest)}"


@pytest.mark.parametrize("readme", READMES, ids=name)
def test_a_readme_lists_every_subfolder(readme):
    linked = {
        folder for target in targets(readme) for folder in (target, *target.parents)
    }
    missing = [
        folder.name
        for folder in sorted(readme.parent.iterdir())
        if folder.is_dir()
        and folder.name[0] != "."
        and folder.name not in NOT_MAPPED
        and has_files(folder)
        and folder not in linked
    ]
    assert not missing


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_relative_link_leads_to_a_file_or_folder(page):
    assert [name(target) for target in targets(page) if not target.exists()] == []


def test_decisions_have_a_number_a_date_and_a_place_in_the_index():
    indexed = targets(DOCS / "README.md")
    for page in DECISIONS:
        lines = page.read_text().splitlines()
        head = "\n".join(lines[:5])
        assert re.fullmatch(r"[0-9]{4}-[a-z0-9-]+\.md", page.name)
        assert re.fullmatch(
            r"# .+\n\n- Date: [0-9]{4}-[0-9]{2}-[0-9]{2}\n- Status: .+\n?", head
        ), page.name
        assert {"## Context", "## Decision"} <= {*lines}, page.name
        assert page in indexed, f"add {page.name} to docs/README.md"
    numbers = [page.name[:4] for page in DECISIONS]
    assert len(numbers) == len(set(numbers))
