"""Read what would be published of one place now, for a preview.

The page of a school reads this school alone. Districts and the state are sums of all
published schools: these are added up once for the same figures, and kept for an hour.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

from django.core.cache import cache

from reports.publishing.freezing import Frame, Freezer, FrozenPlace, basis_of
from reports.releases.levels import LEVELS, STATE
from survey.models import Administration

# Seconds. A district that is renamed has its former name for so long.
KEPT = 60 * 60


class Preview:
    """What would be published, in the same form as it would be frozen."""

    def __init__(self, administration: Administration) -> None:
        """`basis_of` the administration must not be empty. 3 statements."""
        self.administration = administration
        # With other figures, nothing that is kept is used.
        basis = basis_of(administration)
        self._key = f"publishing.preview.{administration.pk}.{basis}"

    @cached_property
    def schools(self) -> dict[int, list[int]]:
        """Return the keys of the published schools, by district."""
        cached: list[tuple[int, list[int]]] | None = cache.get(f"{self._key}.schools")
        return self._added_up[0] if cached is None else dict(cached)

    def places(self, level: str, key: int) -> list[FrozenPlace]:
        """Return a place and those around it; empty if it would not be published.

        Of a school: 6 statements.
        """
        if level != LEVELS.SCHOOL.value:
            wholes = [self._whole(level, key)]
            if level != STATE[0]:
                wholes.append(self._whole(*STATE))
            return [place for place in wholes if place] if wholes[0] else []
        district = next((at for at, keys in self.schools.items() if key in keys), None)
        if district is None:
            return []
        school = next(Freezer(self.administration, only=[key]).schools(), None)
        around = self._whole(LEVELS.DISTRICT.value, district), self._whole(*STATE)
        return [place for place in (school, *around) if place] if school else []

    def frame(self) -> Frame:
        schools = sum(map(len, self.schools.values()))
        return Freezer(self.administration, only=()).frame(schools)

    def _whole(self, level: str, key: int) -> FrozenPlace | None:
        """Return a district or the state."""
        if level == LEVELS.DISTRICT.value and key not in self.schools:
            return None
        cached: dict[str, Any] | None = cache.get(f"{self._key}.{level}.{key}")
        return FrozenPlace(**cached) if cached else self._added_up[1].get((level, key))

    @cached_property
    def _added_up(
        self,
    ) -> tuple[dict[int, list[int]], dict[tuple[str, int], FrozenPlace]]:
        """Add up all schools, and keep the result.

        Only if it is not kept yet, or no longer. 8 statements.
        """
        freezer = Freezer(self.administration)
        wholes = {(place.level, place.place_id): place for place in freezer.wholes()}
        schools = freezer.published if wholes else {}
        entries: dict[str, object] = {
            f"{self._key}.{level}.{key}": place.as_json()
            for (level, key), place in wholes.items()
        }
        # As pairs: the keys of a JSON object would be texts.
        entries[f"{self._key}.schools"] = list(schools.items())
        cache.set_many(entries, KEPT)
        return schools, wholes
