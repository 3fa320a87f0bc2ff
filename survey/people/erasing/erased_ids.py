"""Keep erased people away from rosters, by keyed digests of their IDs.

Rosters, feeds and people added by hand compare with them. Only the keys of access
codes make such a digest, so that a copy of the database tells nobody's ID.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from survey.models import ErasedId
from survey.people import access_codes
from survey.people.rosters.comparison import Comparison
from survey.people.rosters.staging import sql_keys

SKIPPED = gettext_noop("This person was erased and is not invited again")
ERASED = gettext_noop(
    "is the ID of a person whose data were erased, and stays off the roster"
)


def remember(role: str, district: int, ids: Iterable[str]) -> dict[str, list[str]]:
    """Let no roster of a district bring these IDs back; return their digests.

    In hexadecimal, by the version of their key, as JSON has them. 1 statement.
    """
    version = access_codes.current_version()
    digests = [
        access_codes.erased_id_digest(role, external_id, version)
        for external_id in sorted(ids)
    ]
    ErasedId.objects.bulk_create(
        [
            ErasedId(
                district_id=district, role=role, digest=digest, key_version=version
            )
            for digest in digests
        ],
        ignore_conflicts=True,
    )
    return {str(version): [digest.hex() for digest in digests]}


class ErasedIds:
    """The erased IDs of some districts and one role. 1 statement."""

    def __init__(self, role: str, districts: Collection[int]) -> None:
        self.role = role
        # District -> version of the key -> digests.
        self.digests: defaultdict[int, defaultdict[int, set[bytes]]] = defaultdict(
            lambda: defaultdict(set)
        )
        rows = ErasedId.objects.filter(district__in=districts, role=role)
        for district, version, digest in rows.values_list(
            "district", "key_version", "digest"
        ):
            self.digests[district][version].add(bytes(digest))

    def has(self, district: int, external_id: str) -> bool:
        return any(
            access_codes.erased_id_digest(self.role, external_id, version) in digests
            for version, digests in self.digests.get(district, {}).items()
        )


def skip_erased_people(c: Comparison) -> dict[str, int]:
    """Leave rows of erased people out; return the note for the report.

    2 statements where nobody of the file's districts was erased. Else each row of these
    districts is compared, a few microseconds for each.
    """
    places = c.staging.fetch_all("SELECT DISTINCT district_id FROM roster_place")
    erased = ErasedIds(c.administration.role, [pk for (pk,) in places])
    if not erased.digests:
        return {}
    skipped: list[int] = []
    for batch in c.staging.fetch_in_batches(
        f"""
        SELECT new.row, p.district_id, new.external_id, new.previous_id
        FROM roster_row AS new JOIN roster_place AS p ON p.place = new.place
        WHERE p.district_id IN ({sql_keys(erased.digests)})
          AND new.row > %s ORDER BY new.row LIMIT %s
        """  # noqa: S608
    ):
        skipped += [
            row
            for row, district, *ids in batch
            if any(erased.has(district, text) for text in ids if text)
        ]
    if not skipped:
        return {}
    c.staging.remove_rejected_rows(f"row IN ({sql_keys(skipped)})")
    return {_(SKIPPED): len(skipped)}
