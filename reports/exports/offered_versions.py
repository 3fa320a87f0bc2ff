"""Find the version of the survey that a person was offered.

The texts of a survey can be corrected while it is open. Which version somebody
read is not stored with the answers, so it follows from the day and second of
the first login: the audit log knows when an administration changed to which
version.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from django.db import DEFAULT_DB_ALIAS

from accounts.models import AuditEntry
from survey.models import Administration, PublishedSurvey

ACTION = "correct texts of administration"


@dataclass(frozen=True)
class OfferedVersions:
    """The versions of one administration, in the order of time."""

    # One more than there are changes; a version can be offered again.
    versions: Sequence[PublishedSurvey]
    changed_at: Sequence[datetime] = ()

    @cached_property
    def changes(self) -> tuple[int, ...]:
        """Unix times of the changes."""
        return tuple(int(at.timestamp()) for at in self.changed_at)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(version.survey.version for version in self.versions)

    @property
    def is_single(self) -> bool:
        return not self.changed_at

    def period_of(self, started: str) -> int:
        """Return how many changes there were before a Unix time."""
        return bisect_right(self.changes, int(started)) if self.changes else 0

    def between(self, start: datetime, end: datetime) -> list[PublishedSurvey]:
        """Return the versions that were offered in this period, each once."""
        first = bisect_left(self.changed_at, start)
        last = bisect_right(self.changed_at, end)
        return list(dict.fromkeys(self.versions[first : last + 1]))

    def sql(self, is_postgresql: bool) -> str:
        """Return `period_of` as SQL about the table `r`.

        It is built from whole numbers only, so nothing can be injected.
        """
        started = (
            "floor(extract(epoch FROM r.started_at))::bigint"
            if is_postgresql
            else "CAST(strftime('%s', r.started_at) AS integer)"
        )
        cases = [
            f"CASE WHEN {started} >= {int(change)} THEN 1 ELSE 0 END"
            for change in self.changes
        ]
        return " + ".join(cases) or "0"


def offered_versions(
    administrations: Sequence[Administration],
) -> dict[int, OfferedVersions]:
    """Return the versions by administration. 2 statements, or 1 without changes.

    From the primary: the database role for reports cannot read the audit log.
    """
    entries: dict[int, list[AuditEntry]] = defaultdict(list)
    for entry in AuditEntry.objects.using(DEFAULT_DB_ALIAS).filter(
        kind=Administration._meta.label_lower,
        subject_id__in=[administration.pk for administration in administrations],
        action=ACTION,
    ):
        entries[entry.subject_id or 0].insert(0, entry)
    digests = {
        change["digest"]
        for survey_entries in entries.values()
        for entry in survey_entries
        for change in (entry.before, entry.after)
    }
    published: dict[str, PublishedSurvey] = {}
    if digests:
        rows = PublishedSurvey.objects.using(DEFAULT_DB_ALIAS)
        published = rows.select_related("survey").in_bulk(digests)
    return {
        administration.pk: _offered(
            administration, entries[administration.pk], published
        )
        for administration in administrations
    }


def _offered(
    administration: Administration,
    entries: Sequence[AuditEntry],
    published: Mapping[str, PublishedSurvey],
) -> OfferedVersions:
    """`entries` are in the order of time."""
    if not entries:
        return OfferedVersions((administration.published,))
    first = published[entries[0].before["digest"]]
    return OfferedVersions(
        (first, *(published[entry.after["digest"]] for entry in entries)),
        tuple(entry.at for entry in entries),
    )
