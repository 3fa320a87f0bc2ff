"""Write grades as schools do."""

from __future__ import annotations


def grade_name(code: str) -> str:
    """Return a CEDS code without its zero: 6 for 06."""
    return code.removeprefix("0")
