"""Map the header of a list of schools to fields: that of NCES EDGE and others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from survey.people.rosters.columns import RosterColumns, bare_key, clean_header, squeeze

# Field -> headers that mean it, without punctuation and case. The first one is
# NCES EDGE's, and names the field in messages.
HEADERS = {
    "code": "ncessch schoolcode schoolid code ncesid",
    "district": "leaid districtcode districtid district",
    "name": "name schoolname schname school",
    "street": "street address streetaddress lstreet1 mstreet1",
    "city": "city town lcity mcity",
    "state": "state st stabr lstate mstate",
    "postal_code": "zip zipcode postalcode postcode lzip mzip",
    "latitude": "lat latitude latcod lat1516",
    "longitude": "lon long longitude lng loncod lon1516",
    "contact_name": "contact contactname",
    "contact_phone": "phone telephone contactphone",
    "contact_email": "email contactemail",
}
FIELD_OF_HEADER = {
    header: name for name, headers in HEADERS.items() for header in headers.split()
}
REQUIRED = ("NCESSCH or NAME", "LAT", "LON")


@dataclass(frozen=True)
class SchoolColumns(RosterColumns):
    @property
    def missing(self) -> list[str]:
        fields = self.fields.keys()
        wanted = (
            fields & {"code", "name"},
            "latitude" in fields,
            "longitude" in fields,
        )
        return [
            name
            for name, is_found in zip(REQUIRED, wanted, strict=True)
            if not is_found
        ]


def school_header(rows: Iterable[tuple[int, Sequence[str]]]) -> SchoolColumns | None:
    """Return the row that names the most columns, or None if no row names any."""
    best: SchoolColumns | None = None
    for number, cells in rows:
        columns = SchoolColumns([clean_header(cell) for cell in cells], number)
        for index, text in enumerate(columns.header):
            name = FIELD_OF_HEADER.get(squeeze(text)) or FIELD_OF_HEADER.get(
                bare_key(text)
            )
            if name:
                columns.fields.setdefault(name, index)
        if columns.fields and (not best or len(columns.fields) > len(best.fields)):
            best = columns
    return best
