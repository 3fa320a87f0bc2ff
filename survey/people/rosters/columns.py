"""Map the header row of a roster to fields, tolerating real-world spellings."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import lru_cache
from itertools import pairwise

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from accounts.csv_injection import unescape_formula

# Field -> headers that mean it, without spaces, punctuation and case. The
# earlier one wins if a file has several, except for IDs.
_HEADERS = {
    "district": (
        "districtcode districtid districtnumber districtno leacode leaid leanumber"
        " districtsourcedid corporationid districtcd distcode distid district lea"
        " corporation distrito"
    ),
    "district_name": "districtname leaname corporationname distname",
    "school": (
        "schoolcode schoolid schoolnumber schoolno buildingcode buildingid campuscode"
        " campusid sitecode siteid schoolsourcedid schoolcd schoolnum schcode schid"
        " schoolsisid buildingnumber school building campus site currentschool"
        " homeschool attendingschool enrolledschool schoolofattendance"
        " schoolofenrollment escuela"
    ),
    "school_name": (
        "schoolname buildingname campusname sitename schname currentschoolname"
        " homeschoolname schooldescription"
    ),
    "role": "role usertype persontype roletype",
    "grade": (
        "grade gradelevel grades yearlevel currentgrade studentgrade gradelvl gradecode"
        " gradelevelcode currentgradelevel enrolledgrade yeargroup grd gr grado"
    ),
    "external_id": (
        "studentid staffid studentstaffid studentorstaffid teacherid parentid personid"
        " externalid localid localstudentid studentnumber studentno staffnumber"
        " employeeid employeenumber id identifier sourcedid userid stateid"
        " statestudentid ssid sisid studentidnumber idnumber idno permid permnumber"
        " lasid sasid studentkey iddelestudiante idestudiante numerodeestudiante"
    ),
    "previous_id": (
        "previousid previousstudentid previousstaffid previousparentid formerid"
        " formerstudentid oldid oldstudentid"
    ),
    "given_name": (
        "givenname firstname given first forename studentfirstname studentgivenname"
        " stafffirstname teacherfirstname fname legalfirstname namefirst givennames"
        " forenames firstnm studentfirst preferredfirstname nombre"
    ),
    "family_name": (
        "familyname lastname surname family last studentlastname studentfamilyname"
        " stafflastname teacherlastname lname legallastname namelast familynames"
        " surnames lastnm studentlast preferredlastname apellido apellidos"
    ),
    "name": (
        "name fullname studentname staffname teachername displayname lastfirst"
        " lastnamefirstname lastnamefirst lastfirstmiddle lastfirstmi lastfirstname"
        " lastnamefirstnamemi"
        " lastnamefirstnamemiddlename firstlast firstnamelastname namelastfirst"
        " namefirstlast studentlastfirst nombrecompleto"
    ),
    "email": (
        "email emailaddress mail studentemail staffemail teacheremail schoolemail"
        " workemail studentemailaddress primaryemail districtemail"
        " schoolemailaddress correoelectronico"
    ),
    "birth_date": (
        "birthdate dateofbirth dob birthday bdate studentbirthdate studentdob birthdt"
        " fechadenacimiento"
    ),
    "language": (
        "language surveylanguage preferredlanguage lang languagecode homelanguage"
        " homelang homelanguagecode primarylanguage nativelanguage"
        " correspondencelanguage languagespokenathome idioma"
    ),
    "classroom": (
        "class classroom homeroom homeroomcode section sectioncode sectionid classcode"
        " classname classid classsection homeroomid roomnumber room teachersclass"
        " advisory homeroomname homerm hr"
    ),
    "status": (
        "status enrollstatus enrollmentstatus enrolmentstatus studentstatus"
        " staffstatus recordstatus active isactive activeflag inactive enrolled"
        " isenrolled currentlyenrolled currentstatus schoolstatus employmentstatus"
        " entrystatus activeinactive"
    ),
    "exit_date": (
        "exitdate withdrawaldate withdrawdate withdrawndate leavedate leavingdate"
        " dateleft schoolexitdate enrollmentexitdate exitedon enrollmentenddate enddate"
        " datewithdrawn dateexited dropdate"
    ),
}
ALIASES = {name: headers.split() for name, headers in _HEADERS.items()}
FIELD_OF_HEADER = {
    header: name for name, headers in ALIASES.items() for header in headers
}
REQUIRED = {
    "district": gettext_noop("district"),
    "school": gettext_noop("school"),
    "external_id": gettext_noop("student or staff ID"),
}
# Field -> what sentences call it.
FIELD_NAMES = {
    **REQUIRED,
    "district_name": gettext_noop("district name"),
    "school_name": gettext_noop("school name"),
    "role": gettext_noop("role"),
    "grade": gettext_noop("grade"),
    "previous_id": gettext_noop("previous ID"),
    "given_name": gettext_noop("given name"),
    "family_name": gettext_noop("family name"),
    "name": gettext_noop("full name"),
    "email": gettext_noop("e-mail"),
    "birth_date": gettext_noop("birth date"),
    "language": gettext_noop("language"),
    "classroom": gettext_noop("class"),
    "status": gettext_noop("status"),
    "exit_date": gettext_noop("exit date"),
}
# Headers under which files have a code or a name. Next to a column of codes they
# are the name; alone they can be either.
_CODE_OR_NAME = frozenset(
    ["district", "lea", "corporation", "school", "building", "campus", "site"]
)
# Fields that a misspelt header never means: each decides who is invited.
_SPELT_EXACTLY = frozenset({"status", "exit_date", "previous_id"})

# A remark of the system that wrote the file, such as "[Required]", "(MM/DD/YYYY)", the
# number of a repeated header, or "3." before the third one.
_REMARK = re.compile(r"^\d{1,3}[.)] |\[[^\[\]]*\]|\([^()]*\)|<[^<>]*>|\{[^{}]*\}")
# Of a repeated header, by `clean_headers`.
_NUMBER = re.compile(r" \(\d+\)$")
# In brackets or not, these headers are about somebody else.
_OF_OTHERS = re.compile(
    r"parent|guardian|mother|father|contact|teacher|counsel|emergency|sibling|spouse",
    re.IGNORECASE,
)
# "Stu Home Lang", "Pupil: Forename": before a header that means a field.
_OF_PERSON = re.compile(r"^(?:students?|stu|pupils?|learner|staff|employee)(?=.)")

# Columns that cannot be declared as a subgroup, since subgroups are stored and
# exported next to answers.
_IDENTIFIES = re.compile(
    r"name\d*$|email|phone|mobile|telephone|sms$|address|street|zip|postal|ssn|"
    r"socialsecurity|initial$|nickname|username|login|guardian|mother|father|"
    r"contact|photo|birth|dob|(?:id|ids|number|identifier)\d*$"
)
_SECRET = re.compile(r"passw|pwd$|^pin$|passcode|secret")
_TAX_NUMBER = re.compile(r"ssn$|socialsecurity|socialinsurance")
_VENDOR = re.compile(
    r"^ext_|^metadata\.|^(?:sourcedid|datelastmodified|enableduser)$", re.I
)

# Before the name of a subgroup in the fields of a layout.
SUBGROUP = "subgroup:"

# Header of the first column in a file of rejected rows.
REASON_HEADER = "Rejected because"
_REASON = "rejectedbecause"

NOT_DECLARED = gettext_noop("it is not one of this survey round's subgroups")
LONGEST_HEADER = 64
# A text with a comma in it is no table.
FEWEST_UNKNOWN_HEADERS = 3
# Cells of a title or a comment are cut here before anything is done with them:
# thousands of cells may refer to one text of a hundred thousand letters.
MOST_READ_OF_A_HEADER = 2 * LONGEST_HEADER


@dataclass(frozen=True)
class RosterColumns:
    """The columns of a roster: `fields` and `attributes` map names to indexes."""

    header: list[str]
    # The number of the header's row.
    row: int = 1
    fields: dict[str, int] = field(default_factory=dict)
    attributes: dict[str, int] = field(default_factory=dict)
    # Header -> field, where the header was read as a misspelling.
    guessed: dict[str, str] = field(default_factory=dict)
    # Header -> reason.
    ignored: dict[str, str] = field(default_factory=dict)
    # What messages call the columns without which a list cannot be read. What a roster
    # needs depends on the place that it is uploaded for: see `layouts.missing_fields`.
    missing: list[str] = field(default_factory=list)

    @property
    def dropped(self) -> list[str]:
        """Return the headers of the columns that are not kept."""
        used = {*self.fields.values(), *self.attributes.values()}
        return [
            text for index, text in enumerate(self.header) if text and index not in used
        ]

    @property
    def is_correction(self) -> bool:
        """Tell whether this is a corrected file of rejected rows.

        Such a file names only these people, so nobody else is missing from it.
        """
        return any(squeeze(text) == _REASON for text in self.header)

    def with_subgroups(self, declared: Iterable[str]) -> RosterColumns:
        """Keep declared attributes, by their declared names; ignore the others."""
        names = {key(name): name for key in (bare_key, squeeze) for name in declared}
        # A declared column can be a field as well, such as "home language".
        attributes = {
            names[squeeze(text)]: index
            for index, text in enumerate(self.header)
            if index in self.fields.values() and squeeze(text) in names
        }
        ignored = dict(self.ignored)
        for text, index in self.attributes.items():
            name = names.get(squeeze(text)) or names.get(bare_key(text))
            if name is None:
                ignored[text] = _(NOT_DECLARED)
            elif name in attributes:
                ignored[text] = _("another column holds the same")
            else:
                attributes[name] = index
        return replace(self, attributes=attributes, ignored=ignored)

    def heading(self, name: str) -> str:
        """Return the file's own header for a field or attribute."""
        index = self.fields.get(name, self.attributes.get(name))
        return name if index is None else self.header[index]

    def text(self, cells: Sequence[str], name: str) -> str:
        """Return a row's cell on one line; nothing for a field without a column."""
        index = self.fields.get(name)
        text = "" if index is None else unescape_formula(cells[index])
        return " ".join(text.split())


def columns_of(
    cells: Sequence[str], row: int = 1, fields: Mapping[str, str] | None = None
) -> RosterColumns:
    """Map a header row by a layout's `fields` (field -> header), or by the headers.

    Without `fields` the ID is left out if several columns could be it. Other
    columns become attributes or are ignored.
    """
    header = clean_headers(cells)
    columns = RosterColumns(header, row)
    texts_of = headers_by_field(header, columns.guessed)
    if fields is None:
        chosen = {name: texts[0] for name, texts in texts_of.items()}
        if len(texts_of.get("external_id", ())) > 1:
            del chosen["external_id"]
        if "name" in chosen and ("given_name" in chosen or "family_name" in chosen):
            text = chosen.pop("name")
            columns.ignored[text] = _("given and family name are used instead")
    else:
        named = {*header} - {""}
        chosen = {name: text for name, text in fields.items() if text in named}
    # In the order of the file: PostgreSQL keeps no order of a stored layout.
    for name, text in sorted(chosen.items(), key=lambda item: header.index(item[1])):
        if name.startswith(SUBGROUP):
            columns.attributes[name.removeprefix(SUBGROUP)] = header.index(text)
        else:
            columns.fields[name] = header.index(text)
    # A name can be used as a code.
    for code, name in (("district", "district_name"), ("school", "school_name")):
        if code not in columns.fields and name in columns.fields:
            columns.fields[code] = columns.fields[name]

    field_of = {text: name for name, texts in texts_of.items() for text in texts}
    used = {*columns.fields.values(), *columns.attributes.values()}
    # A layout names a subgroup without a column if a person left it out.
    unchosen = {
        squeeze(name.removeprefix(SUBGROUP))
        for name, text in (fields or {}).items()
        if name.startswith(SUBGROUP) and not text
    }
    for index, text in enumerate(header):
        if index in used or not text or text in columns.ignored:
            continue
        if field_of.get(text) in chosen:
            columns.ignored[text] = _("another column was chosen")
        elif text in field_of or squeeze(text) in unchosen:
            columns.ignored[text] = _("it was not chosen")
        elif reason := _reason_to_ignore(columns, text):
            columns.ignored[text] = reason
        else:
            columns.attributes[text] = index
    # What a misspelling might mean is no news where the column holds something else.
    for text, name in [*columns.guessed.items()]:
        if columns.fields.get(name) != header.index(text):
            del columns.guessed[text]
    return columns


def headers_by_field(
    header: Sequence[str], guessed: dict[str, str] | None = None
) -> dict[str, list[str]]:
    """Return the headers that mean each field, the most usual first.

    Misspelt ones count where no header is spelt right, and are noted in `guessed`.
    """
    ranked: dict[str, list[tuple[int, int, str]]] = {}
    misspelt: dict[str, str] = {} if guessed is None else guessed
    for index, text in enumerate(header):
        if name := _match_field(text, misspelt):
            aliases, key = ALIASES[name], field_key(text)
            rank = aliases.index(key) if key in aliases else len(aliases)
            ranked.setdefault(name, []).append((rank, index, text))
    texts_of = {
        name: list(dict.fromkeys(text for _, _, text in sorted(some)))
        for name, some in ranked.items()
    }
    for name, texts in texts_of.items():
        if right := [text for text in texts if text not in misspelt]:
            texts_of[name] = right
    for code, name in (("district", "district_name"), ("school", "school_name")):
        codes = texts_of.get(code, [])
        bare = [text for text in codes if field_key(text) in _CODE_OR_NAME]
        if bare and len(bare) < len(codes):
            texts_of[code] = [text for text in codes if text not in bare]
            texts_of.setdefault(name, []).extend(bare)
    return texts_of


_STUDENT = ("student", "pupil")
_STAFF = ("staff", "teacher", "employee")
_PARENT = ("parent", "guardian")
_OTHERS = {
    "student": (*_STAFF, *_PARENT),
    "teacher": (*_STUDENT, *_PARENT),
    "parent": (*_STUDENT, *_STAFF),
}


def ids_of_role(headers: Sequence[str], role: str) -> list[str]:
    """Leave out the IDs of other people: a student's row can name a teacher's ID."""
    words = _OTHERS.get(role, ())
    ids = [text for text in headers if not any(word in squeeze(text) for word in words)]
    return ids or list(headers)


def best_header(
    rows: Iterable[tuple[int, Sequence[str]]],
    also_known: AbstractSet[str] = frozenset(),
) -> RosterColumns | None:
    """Return the row that names the most columns, or None if no row names any.

    `also_known` are squeezed headers of presets.
    """
    best, most = None, 0
    for number, cells in rows:
        # Exact spellings only: looking for misspellings in rows of people
        # would cost more than importing them.
        headers = {clean_header(cell) for cell in cells} - {""}
        known = {FIELD_OF_HEADER.get(field_key(text)) for text in headers} - {None}
        score = max(len(known), len({*map(bare_key, headers)} & also_known))
        if score > most:
            best, most = (cells, number), score
    return columns_of(*best) if best else None


def likely_header(rows: Iterable[tuple[int, Sequence[str]]]) -> RosterColumns | None:
    """Return the first of the widest rows that could be a header, or None.

    For files without any header that means a field. No cell of a header is a number,
    and the next row is as wide.
    """
    candidates = [(number, list(map(clean_header, cells))) for number, cells in rows]
    best, most = None, FEWEST_UNKNOWN_HEADERS - 1
    for (number, cells), (_number, below) in pairwise(candidates):
        texts = list(filter(None, cells))
        is_header = len({*texts}) == len(texts) and not any(
            squeeze(text).isdecimal() for text in texts
        )
        if is_header and len(below) >= len(texts) > most:
            best, most = columns_of(cells, number), len(texts)
    return best


def clean_headers(cells: Iterable[str]) -> list[str]:
    """Clean a header row, and number headers that it repeats: "Name", "Name (2)"."""
    header: list[str] = []
    used, numbers = {""}, Counter[str]()
    for text in map(clean_header, cells):
        numbered = text
        while numbered in used and text:
            numbers[text] += 1
            numbered = f"{text} ({numbers[text] + 1})"
        used.add(numbered)
        header.append(numbered)
    return header


def without_number(header: str) -> str:
    """Return a header of `clean_headers` as the file has it."""
    return _NUMBER.sub("", header)


def clean_header(header: str) -> str:
    return _clean_cut_header(header[:MOST_READ_OF_A_HEADER])


# Of a workbook of 70 KB, 700,000 cells may refer to texts that NFKC makes 18 times
# as long.
@lru_cache(maxsize=10_000)
def _clean_cut_header(cut: str) -> str:
    text = unicodedata.normalize("NFKC", cut).replace("\ufeff", "")
    return " ".join(text.replace("\x00", "").split())[:MOST_READ_OF_A_HEADER]


@lru_cache(maxsize=10_000)
def squeeze(header: str) -> str:
    """Return a header without spaces, punctuation and case."""
    return "".join(symbol for symbol in header.casefold() if symbol.isalnum())


@lru_cache(maxsize=10_000)
def bare_key(header: str) -> str:
    """Return a squeezed header without accents and what stands in brackets."""
    if len(header) > LONGEST_HEADER:
        return squeeze(header)
    decomposed = unicodedata.normalize("NFD", without_remarks(header))
    return squeeze(decomposed) or squeeze(header)


def without_remarks(header: str) -> str:
    """Return a header without what stands in brackets.

    "E-mail (parent)" keeps it, since it is the address of somebody else.
    """
    return " ".join(
        _REMARK.sub(
            lambda remark: remark[0] if _OF_OTHERS.search(remark[0]) else " ", header
        ).split()
    )


@lru_cache(maxsize=10_000)
def field_key(header: str) -> str:
    """Return the form of a header that may be in `FIELD_OF_HEADER`."""
    squeezed, bare = squeeze(header), bare_key(header)
    # "Student District ID" is an ID that the district has given.
    of_person = [
        key
        for key in (_OF_PERSON.sub("", squeezed), _OF_PERSON.sub("", bare))
        if not FIELD_OF_HEADER.get(key, "").startswith(("district", "school"))
    ]
    keys = (squeezed, bare, *of_person)
    return next((key for key in keys if key in FIELD_OF_HEADER), bare)


def _match_field(header: str, guessed: dict[str, str]) -> str | None:
    """Return the field that a header means; note misspellings in `guessed`."""
    squeezed = field_key(header)
    if not squeezed or len(squeezed) > LONGEST_HEADER:
        return None
    if squeezed in FIELD_OF_HEADER:
        return FIELD_OF_HEADER[squeezed]
    # Short words resemble each other too much, and a number means a second
    # column of the same kind.
    if len(squeezed) < 5 or any(symbol.isdigit() for symbol in squeezed):
        return None
    similar = get_close_matches(squeezed, FIELD_OF_HEADER, n=1, cutoff=0.87)
    if not similar or FIELD_OF_HEADER[similar[0]] in _SPELT_EXACTLY:
        return None
    # "New Primary Email" has a word more, and is no misspelling.
    if abs(len(squeezed) - len(similar[0])) > 2:
        return None
    guessed[header] = FIELD_OF_HEADER[similar[0]]
    return guessed[header]


def _reason_to_ignore(columns: RosterColumns, text: str) -> str:
    """Return why a column cannot be an attribute, or an empty string."""
    if squeeze(text) == _REASON:
        return _("the reason of an earlier rejection")
    if text in columns.guessed:
        return _("another column holds the same")
    if without_number(text) in columns.attributes:
        return _("another column has the same header")
    if len(text) > LONGEST_HEADER:
        return _("its header is longer than %(longest_header)s characters") % {
            "longest_header": LONGEST_HEADER
        }
    return reason_not_a_subgroup(text)


def holds_secrets(text: str) -> bool:
    """Tell whether a column has values that nobody should see, such as passwords."""
    return bool(_SECRET.search(squeeze(text)) or _TAX_NUMBER.search(squeeze(text)))


def reason_not_a_subgroup(text: str) -> str:
    """Return why no administration may declare this header, or an empty string."""
    squeezed = squeeze(text)
    if _SECRET.search(squeezed):
        return _("passwords are never kept")
    if _VENDOR.search(text.replace(" ", "")):
        return _("a vendor's own column")
    if squeezed in FIELD_OF_HEADER:
        return _("another column holds the same")
    if not squeezed or _IDENTIFIES.search(squeezed):
        return _("it identifies people")
    return ""
