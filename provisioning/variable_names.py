"""Check that variables are named by what they are, and not `found` or `one`."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

from provisioning.commands import ROOT

BANNED = frozenset(
    ("found", "one", "other", "others", "own", "said", "kept", "again")
    + ("told", "who", "whom", "whose")
)
# What is left, as (source, tests). A bound may only go down.
MOST = {
    "accounts": (0, 0),
    "provisioning": (0, 0),
    "reports": (1, 0),
    "settings": (0, 0),
    "survey": (5, 0),
}


def banned_names(source: str) -> Iterator[tuple[int, str]]:
    """Return line and name of each banned name that the source code binds."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                pass
            case ast.Attribute(attr=name, ctx=ast.Store()):
                pass
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                pass
            case ast.MatchAs(name=str(name)) | ast.ExceptHandler(name=str(name)):
                pass
            case ast.alias(name=original, asname=asname):
                name = asname or original
            case _:
                continue
        if name in BANNED:
            yield node.lineno, name


def main(root: Path = ROOT) -> int:
    """Return 1 if an area has more of these names than it may."""
    status = 0
    for area, bounds in MOST.items():
        lines: dict[str, list[str]] = {"source": [], "tests": []}
        for path in sorted((root / area).rglob("*.py")):
            place = path.relative_to(root)
            if "migrations" not in place.parts:
                kind = "tests" if "tests" in place.parts else "source"
                for line, name in banned_names(path.read_text(encoding="utf-8")):
                    lines[kind].append(f"  {place}:{line}: {name}")
        for (kind, names), bound in zip(lines.items(), bounds, strict=True):
            if len(names) > bound:
                print(f"{area}, {kind}: {len(names)} names say nothing; {bound} may:")
                print(*names, sep="\n")
                status = 1
            elif len(names) < bound:
                print(f"{area}, {kind}: lower the bound {bound} to {len(names)}.")
    return status


if __name__ == "__main__":
    sys.exit(main())
