"""The keys of people as CSV, for import into a platform."""

from __future__ import annotations

import csv
from collections.abc import Iterator

from accounts.csv_injection import escape_formula
from survey.fieldwork.message_platforms.hashes import BATCH
from survey.fieldwork.message_platforms.person_keys import person_key
from survey.models import Administration, MessagePlatform, Respondent

HEADER = ("survey_key", "ID", "e-mail", "school", "language")


class _Line:
    """A file of one line, which is returned instead of stored."""

    def write(self, text: str) -> str:
        return text


def write_person_keys(
    platform: MessagePlatform, administration: Administration
) -> Iterator[str]:
    """Yield the lines of the file, read in batches: memory stays flat.

    Everybody who is on the roster, whether or not they have answered. The platform
    finds its contacts by ID or e-mail address.
    """
    writer = csv.writer(_Line())
    # With a byte order mark, so that Excel shows accents correctly.
    yield "\ufeff" + writer.writerow(HEADER)
    secret, last = bytes(platform.person_secret), 0
    people = Respondent.objects.on_roster().filter(
        administration=administration, withdrawn_at=None, identity__isnull=False
    )
    if platform.district_id:
        people = people.filter(school__district=platform.district_id)
    columns = people.order_by("pk").values_list(
        "pk", "identity__external_id", "identity__email", "school__name", "language"
    )
    while rows := list(columns.filter(pk__gt=last)[:BATCH]):
        for pk, *cells in rows:
            yield writer.writerow(
                [person_key(secret, pk), *(escape_formula(cell) for cell in cells)]
            )
        last = rows[-1][0]
