"""Which column of a roster is what, however it was headed."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches

# Field -> headers that mean it, without spaces, signs and case. The earlier
# one wins where a file has several.
_HEADERS = {
    "district": (
        "district districtcode districtid districtnumber districtno lea leacode leaid"
        " leanumber districtsourcedid corporation corporationid"
    ),
    "district_name": "districtname leaname corporationname",
    "school": (
        "school schoolcode schoolid schoolnumber schoolno building buildingcode"
        " buildingid campus campuscode campusid site sitecode siteid schoolsourcedid"
    ),
    "school_name": "schoolname buildingname campusname sitename",
    "role": "role usertype persontype roletype",
    "grade": (
        "grade gradelevel grades yearlevel currentgrade studentgrade gradelvl gradecode"
    ),
    "external_id": (
        "studentid staffid studentstaffid studentorstaffid teacherid parentid personid"
        " externalid localid localstudentid studentnumber studentno staffnumber"
        " employeeid employeenumber id identifier sourcedid userid stateid"
        " statestudentid ssid"
    ),
    "given_name": (
        "givenname firstname given first forename studentfirstname studentgivenname"
        " stafffirstname teacherfirstname fname legalfirstname"
    ),
    "family_name": (
        "familyname lastname surname family last studentlastname studentfamilyname"
        " stafflastname teacherlastname lname legallastname"
    ),
    "name": "name fullname studentname staffname teachername displayname",
    "email": (
        "email emailaddress mail studentemail staffemail teacheremail schoolemail"
        " workemail studentemailaddress"
    ),
    "birth_date": (
        "birthdate dateofbirth dob birthday bdate studentbirthdate studentdob"
    ),
    "language": "language surveylanguage preferredlanguage lang languagecode",
    "classroom": (
        "class classroom homeroom homeroomcode section sectioncode sectionid classcode"
        " classname classid classsection homeroomid roomnumber room teachersclass"
        " advisory homeroomname"
    ),
}
ALIASES = {name: headers.split() for name, headers in _HEADERS.items()}
FIELD_OF_HEADER = {
    header: name for name, headers in ALIASES.items() for header in headers
}
REQUIRED = {
    "district": "district",
    "school": "school",
    "external_id": "student or staff ID",
}

# A column that says who somebody is must not become an attribute, since
# attributes stand beside answers.
_IDENTIFIES = re.compile(
    r"name\d*$|email|phone|mobile|telephone|sms$|address|street|zip|postal|ssn|"
    r"socialsecurity|initial$|nickname|username|login|guardian|mother|father|"
    r"contact|photo|birth|dob|(?:id|ids|number|identifier)\d*$"
)
_SECRET = re.compile(r"passw|pwd$|^pin$|passcode|secret")
_VENDOR = re.compile(
    r"^ext_|^metadata\.|^(?:sourcedid|status|datelastmodified|enableduser)$", re.I
)

# Of the column that this project adds to a file of rejected rows.
REASON_HEADER = "Rejected because"
_REASON = "rejectedbecause"

MOST_ATTRIBUTES = 50
LONGEST_HEADER = 64


@dataclass(frozen=True)
class Columns:
    """`fields` and `attributes` give a cell's index by name."""

    header: list[str]
    # The number of the header's row.
    row: int = 1
    fields: dict[str, int] = field(default_factory=dict)
    attributes: dict[str, int] = field(default_factory=dict)
    # Header -> field, where the header was read as a misspelling.
    guessed: dict[str, str] = field(default_factory=dict)
    # Header -> why.
    ignored: dict[str, str] = field(default_factory=dict)

    @property
    def missing(self) -> list[str]:
        return [text for name, text in REQUIRED.items() if name not in self.fields]

    @property
    def is_correction(self) -> bool:
        """A file of rejected rows, which were corrected: nobody else is in it."""
        return any(_squeezed(text) == _REASON for text in self.header)

    def heading(self, name: str) -> str:
        """How the file itself calls this field or attribute."""
        index = self.fields.get(name, self.attributes.get(name))
        return name if index is None else self.header[index]


def columns_of(cells: Sequence[str], row: int = 1) -> Columns:
    """Map a header row; unknown headers become attributes or are ignored."""
    header = [_tidy(cell) for cell in cells]
    columns = Columns(header, row)
    candidates: dict[str, list[tuple[int, int]]] = {}
    for index, text in enumerate(header):
        name = _field_of(text, columns.guessed)
        if name:
            candidates.setdefault(name, []).append((_preference(name, text), index))
    for name, found in candidates.items():
        columns.fields[name] = min(found)[1]
    _drop_full_name(columns)
    _use_names_as_codes(columns)
    taken = set(columns.fields.values())
    for index, text in enumerate(header):
        if index not in taken and text:
            _place_other(columns, index, text)
    for text in [text for text in columns.guessed if columns.ignored.get(text)]:
        del columns.guessed[text]
    return columns


def best_header(rows: Iterable[tuple[int, Sequence[str]]]) -> Columns | None:
    """The row that names the most columns; None where none names any."""
    best, most = None, 0
    for number, cells in rows:
        # Spelt rightly, that is: to look for misspellings in rows of people
        # would cost more than to import them.
        known = {FIELD_OF_HEADER.get(_squeezed(_tidy(cell))) for cell in cells} - {None}
        if len(known) > most:
            best, most = (cells, number), len(known)
    return columns_of(*best) if best else None


def _tidy(header: str) -> str:
    text = unicodedata.normalize("NFKC", header).replace("\ufeff", "")
    return " ".join(text.replace("\x00", "").split())


def _squeezed(header: str) -> str:
    return "".join(symbol for symbol in header.casefold() if symbol.isalnum())


def _field_of(header: str, guessed: dict[str, str]) -> str | None:
    squeezed = _squeezed(header)
    if not squeezed or len(squeezed) > LONGEST_HEADER:
        return None
    if squeezed in FIELD_OF_HEADER:
        return FIELD_OF_HEADER[squeezed]
    # Short words are too near to each other, and a number means a second
    # column of the kind.
    if len(squeezed) < 5 or any(symbol.isdigit() for symbol in squeezed):
        return None
    near = get_close_matches(squeezed, FIELD_OF_HEADER, n=1, cutoff=0.87)
    if not near:
        return None
    guessed[header] = FIELD_OF_HEADER[near[0]]
    return guessed[header]


def _preference(name: str, header: str) -> int:
    squeezed = _squeezed(header)
    known = ALIASES[name]
    return known.index(squeezed) if squeezed in known else len(known)


def _drop_full_name(columns: Columns) -> None:
    if "name" in columns.fields and {"given_name", "family_name"} & set(columns.fields):
        index = columns.fields.pop("name")
        columns.ignored[columns.header[index]] = "given and family name are used"


def _use_names_as_codes(columns: Columns) -> None:
    for code, name in (("district", "district_name"), ("school", "school_name")):
        if code not in columns.fields and name in columns.fields:
            columns.fields[code] = columns.fields[name]


def _place_other(columns: Columns, index: int, text: str) -> None:
    squeezed = _squeezed(text)
    if text in columns.ignored:
        return
    if squeezed == _REASON:
        reason = "says why the row was rejected the last time"
    elif _SECRET.search(squeezed):
        reason = "passwords are never kept"
    elif _VENDOR.search(text.replace(" ", "")):
        reason = "a vendor's own column"
    elif squeezed in FIELD_OF_HEADER or text in columns.guessed:
        reason = "another column says the same"
    elif not squeezed or _IDENTIFIES.search(squeezed):
        reason = "says who a person is, so cannot be a subgroup"
    elif text in columns.attributes:
        reason = "another column has the same header"
    elif len(text) > LONGEST_HEADER:
        reason = f"its header is longer than {LONGEST_HEADER} characters"
    elif len(columns.attributes) >= MOST_ATTRIBUTES:
        reason = f"there are more than {MOST_ATTRIBUTES} subgroup columns"
    else:
        columns.attributes[text] = index
        return
    columns.ignored[text] = reason
