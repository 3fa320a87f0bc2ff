"""Whom no measurement may touch. Standard library only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from provisioning.commands import Refusal

REAL = """
SELECT coalesce(json_agg(a.name), '[]')
FROM survey_administration a LEFT JOIN survey_wave w ON w.id = a.wave_id
WHERE now() BETWEEN a.opens_at AND a.closes_at + interval '10 minutes'
  AND w.name IS DISTINCT FROM 'Rehearsals'
"""


def refuse_real_people(ask: Callable[[str], Any], *, consequence: str) -> None:
    """`ask` gives the one JSON value that the primary says."""
    real = ask(REAL)
    if real:
        raise Refusal(
            f"Real people may answer now ({', '.join(real)}), and {consequence}"
        )
