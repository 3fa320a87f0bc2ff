"""What the steps of a comparison share, each of which calls it `c`.

The people are in temporary tables.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from django.utils import timezone

from survey.instrument.definitions.schema import load_definition
from survey.models import Administration
from survey.people.rosters.blank_districts import DistrictsOfSchools
from survey.people.rosters.columns import RosterColumns
from survey.people.rosters.report import RejectionLog, RosterReport
from survey.people.rosters.row_parser import CellRejection, RowParser
from survey.people.rosters.scope import RosterScope
from survey.people.rosters.staging import Staging
from survey.people.rosters.table import RosterTable


@dataclass(frozen=True)
class Comparison:
    staging: Staging
    administration: Administration
    table: RosterTable
    scope: RosterScope
    columns: RosterColumns
    parser: RowParser
    report: RosterReport
    log: RejectionLog

    @classmethod
    def of(
        cls,
        staging: Staging,
        administration: Administration,
        table: RosterTable,
        scope: RosterScope,
    ) -> Comparison:
        columns = table.columns.with_subgroups(administration.subgroups)
        definition = load_definition(administration.published.definition)
        parser = RowParser(
            columns,
            role=administration.role,
            languages={
                language["code"]: language["name"]
                for language in definition["languages"]
            },
            subgroups=administration.subgroups,
            today=timezone.localdate(),
            known=table.known,
            layout=table.layout,
            districts=DistrictsOfSchools(scope),
        )
        report = RosterReport(columns, table.description)
        log = RejectionLog(lambda batch: staging.copy_rows("roster_rejection", batch))
        return cls(staging, administration, table, scope, columns, parser, report, log)

    def log_rows(
        self, query: str, field: str, reason: str | Callable[..., str]
    ) -> None:
        """Log the rows of a query for `fetch_in_batches` as rejected.

        It selects their number and the cell of a field, and what a `reason` that is a
        function takes.
        """
        heading = self.columns.heading(field)
        for batch in self.staging.fetch_in_batches(query):
            for row, cell, *details in batch:
                text = reason if isinstance(reason, str) else reason(*details)
                self.log.add_row([CellRejection(row, heading, text, cell)])
