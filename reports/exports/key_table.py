"""Make the key table of an approved project: which ID belongs to which project key.

It lists everybody on the rosters of the project's survey rounds, so alone it does not
tell who took part. It has no names and no answers.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from django.db import DEFAULT_DB_ALIAS
from django.db.models import Q
from django.utils.translation import gettext as _

from accounts.models import District
from reports.exports.anonymise import Shuffle
from reports.exports.csv_file import CsvFile
from reports.exports.job import DATA_FILE, FURTHER_FORMATS
from reports.exports.panel import BATCH, LETTER
from reports.exports.panel_people import joined_ids, person_ids
from reports.models.exports import KEY_TABLE, Export
from survey.models import Administration, Identity
from survey.work.jobs import Progress
from survey.work.requested_files import keep_files

HEADERS = ("project_key", "role", "district_code", "external_id")


def make_key_table(export: Export, folder: Path, progress: Progress) -> None:
    assert export.project is not None and export.project.key  # noqa: S101
    administrations = {row.pk: row for row in export.administrations.all()}
    progress.begin_step(_("Reading the IDs."))
    # As in panels, where the key and the letter make the IDs of the project's files.
    people = Shuffle(folder / "people", key=bytes(export.project.key), letter=LETTER)
    joined = joined_ids({row.role for row in administrations.values()})
    for rows in _listed_people(export, administrations):
        known = person_ids([row[0] for row in rows], administrations, joined)
        for respondent, administration, district, external_id in rows:
            if respondent not in known:
                # Erased a moment ago.
                continue
            role = administrations[administration].role
            line = json.dumps((role, district, external_id))
            people.add(known[respondent].as_bytes(), f"{line}\n".encode())
        progress.advance(len(rows))
    districts = dict(District.objects.using(DEFAULT_DB_ALIAS).values_list("pk", "code"))
    keys = lines = 0
    with (folder / DATA_FILE).open("wb") as file:
        writer = CsvFile(file, HEADERS, bom=False)
        for bundle in people.bundles():
            # A person is on the roster of each round.
            for listed, _same in groupby(bundle):
                key, rest = listed.decode().split("\t", 1)
                role, district, external_id = json.loads(rest)
                cells = (key, role, districts[district], external_id)
                writer.write([(writer.piece(cells),)])
                lines += 1
            keys += len({listed.split(b"\t", 1)[0] for listed in bundle})
        writer.close()
    keep_files(
        export,
        {"file_name": (folder / DATA_FILE, export.suffix)},
        progress,
        after={"people": keys, "project": export.project.name},
        rows=lines,
        respondents=keys,
    )
    progress.message = _("Ready: %(rows)s rows.") % {"rows": f"{lines:,}"}


def _listed_people(
    export: Export, administrations: dict[int, Administration]
) -> Iterator[list[tuple[int, int, int, str]]]:
    """Yield the people of the export's places who have an ID and did not opt out."""
    people = Identity.objects.using(DEFAULT_DB_ALIAS).filter(
        respondent__opted_out_at=None
    )
    places = export.scope
    if not places.state:
        people = people.filter(
            Q(respondent__school__district__in=places.districts)
            | Q(respondent__school__in=places.schools)
        )
    for administration in administrations:
        last = 0
        of_round = people.filter(administration=administration).order_by("respondent")
        while rows := list(
            of_round.filter(respondent__gt=last).values_list(
                "respondent", "administration", "district", "external_id"
            )[:BATCH]
        ):
            yield rows
            last = rows[-1][0]


FURTHER_FORMATS[KEY_TABLE] = make_key_table
