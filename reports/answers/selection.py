"""Select the people of an export."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.db import connections

from accounts.permissions import Places
from survey.models import Administration


@dataclass(frozen=True, slots=True)
class Selection:
    """Select who started in these places, without opt-outs and declines.

    Exports with names, and all counts of people in them, ask here who is in a file.
    Those without names have the `keys` of people of a release instead.
    """

    administrations: Sequence[Administration]
    places: Places
    finished_only: bool = False
    # Respondents by administration.
    keys: Mapping[int, Sequence[int]] | None = None
    # The console may not read responses. It counts starts with an open code although
    # they may have no answer.
    reads_responses: bool = True

    def people(self, administration: Administration, alias: str) -> str:
        """Return a condition on the table `survey_respondent r`.

        It is built from whole numbers only, so nothing can be injected.
        """
        conditions = [f"r.administration_id = {int(administration.pk)}"]
        if self.keys is not None:
            return (
                f"{conditions[0]} AND {is_among(self.keys[administration.pk], alias)}"
            )
        conditions += [
            "r.started_at IS NOT NULL",
            # A parent, or the person, has refused.
            "r.opted_out_at IS NULL",
            "r.declined_at IS NULL",
        ]
        if self.reads_responses:
            # A start with an open code may be a look at the first page, or a
            # program's.
            conditions.append(
                "(r.open_code_id IS NULL OR EXISTS (SELECT 1 FROM survey_response e"  # noqa: S608
                f" WHERE e.administration_id = {int(administration.pk)}"
                " AND e.respondent_id = r.id))"
            )
        if self.finished_only:
            conditions.append("r.completed_at IS NOT NULL")
        if not self.places.state:
            conditions.append(
                "r.school_id IN (SELECT s.id FROM accounts_school s"  # noqa: S608
                f" WHERE s.district_id IN ({_numbers(self.places.districts)})"
                f" OR s.id IN ({_numbers(self.places.schools)}))"
            )
        return " AND ".join(conditions)


def is_among(keys: Iterable[int], alias: str) -> str:
    """Return a condition on `r` that it is one of these, however many they are."""
    numbers = ",".join(map(str, keys))
    if connections[alias].vendor == "postgresql":
        return f"r.id IN (SELECT unnest('{{{numbers}}}'::bigint[]))"  # noqa: S608
    return f"r.id IN (SELECT value FROM json_each('[{numbers}]'))"  # noqa: S608


def _numbers(keys: frozenset[int]) -> str:
    # An empty list is no SQL, and nothing is in (NULL).
    return ", ".join(str(int(key)) for key in sorted(keys)) or "NULL"
