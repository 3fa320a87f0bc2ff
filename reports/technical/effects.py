"""Keep what careless answers and weights change, for the page about quality."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from accounts.http import Cell
from reports.models import Scoring
from reports.scores.effects import Effects
from reports.technical.source import TechnicalSource
from reports.technical.tables import Row


def keep_effects(source: TechnicalSource, tables: Mapping[str, Sequence[Row]]) -> None:
    """Store the effects of the tables with the scores that they are of. 1 statement."""
    [percent] = [row[3] for row in tables["careless"] if row[0] == "either"]
    changes: dict[str, dict[str, float | str | None]] = {}
    for measure, people, _logits, points, *_rest in tables["effects"][1:]:
        changes.setdefault(str(people), {})[str(measure)] = _shown(points)
    effects = Effects(
        _shown(percent),
        changes.get("without careless answers", {}),
        changes.get("weighted to the roster", {}),
        source.weights[1] if source.weights else (),
    )
    Scoring.objects.filter(
        pk=source.scoring.pk, calculated_at=source.scoring.calculated_at
    ).update(effects=effects.as_json())


def _shown(cell: Cell) -> float | str | None:
    return float(cell) if isinstance(cell, (int, float)) else cell and str(cell)
