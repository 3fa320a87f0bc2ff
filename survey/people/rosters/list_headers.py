"""Map the header of a list, such as opt-outs, schools or counts, to fields."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from survey.people.rosters.columns import RosterColumns, clean_header, squeeze


@dataclass(frozen=True)
class ListHeader:
    """The headers of one kind of list; finds the row of a file that has them."""

    # Field -> headers that mean it, as `keys` spells them.
    headers: Mapping[str, Iterable[str]]
    # What messages call a missing column -> the fields one of which it needs.
    required: Mapping[str, Sequence[str]]
    # Forms in which a header is looked up, the exact one first.
    keys: Sequence[Callable[[str], str]] = (squeeze,)

    def __call__(
        self, rows: Iterable[tuple[int, Sequence[str]]]
    ) -> RosterColumns | None:
        """Return the row that names the most columns, or None if no row names any.

        A row with all required columns comes before others.
        """
        best: RosterColumns | None = None
        field_of = {text: name for name in self.headers for text in self.headers[name]}
        for number, cells in rows:
            header = [clean_header(cell) for cell in cells]
            fields: dict[str, int] = {}
            for index, text in enumerate(header):
                names = (field_of.get(key(text)) for key in self.keys)
                if name := next(filter(None, names), None):
                    fields.setdefault(name, index)
            missing = [
                label
                for label, names in self.required.items()
                if fields.keys().isdisjoint(names)
            ]
            columns = RosterColumns(header, number, fields, missing=missing)
            if fields and (best is None or _rank(columns) > _rank(best)):
                best = columns
        return best


def _rank(columns: RosterColumns) -> tuple[bool, int]:
    return not columns.missing, len(columns.fields)
