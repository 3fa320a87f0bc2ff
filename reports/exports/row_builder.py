"""Turn lines of the stream into rows, some thousand respondents at a time.

Respondents who answered the same items are grouped and processed column by
column: each distinct answer to an item is encoded and counted once, so nearly
all of the work happens inside the interpreter's C code.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, tzinfo

from reports.answers.answer_mask import AnswerMask
from reports.answers.snapshot import FIELDS, MASKED, NOT_APPLICABLE, SKIPPED
from reports.answers.versions import SurveyVersion
from reports.exports.cells import (
    NUMERIC_CODE,
    PLAIN_NUMBER,
    Cell,
    Date,
    Piece,
    Row,
    Writer,
    number_or_text,
)
from reports.exports.columns import AnswerTally, ItemColumns, Variable
from reports.exports.local_days import LocalDays
from reports.exports.minimum_group import STEPS
from reports.exports.missing_codes import MissingCodes
from reports.exports.offered_versions import OfferedVersions
from reports.exports.panel_groups import PanelGroups
from reports.exports.release_mask import COARSENED
from reports.exports.released_rows import ReleasedRows
from survey.instrument.definitions.schema import (
    CHOICES,
    MOMENTS,
    NUMBERS,
    ItemDefinition,
)
from survey.models import Administration

# Encoded answers that are kept for each item.
MOST_CACHED = 5_000

IDENTITY = ("external_id", "given_name", "family_name", "email", "birth_date", "class")
PLACE = ("district_code", "district_name", "school_code", "school_name")


def shows(step: str, shown: int) -> bool:
    return STEPS.index(step) < shown


class MalformedLine(Exception):
    """A line of the stream does not have the expected fields."""


@dataclass(frozen=True)
class ExportPlan:
    """The contents of a file, the same for every format."""

    columns: ItemColumns
    administrations: Mapping[int, Administration]
    # Place -> code and name of its district, code and name of the school.
    places: Mapping[str, Sequence[str]]
    # Names of the further columns of the rosters.
    attributes: Sequence[str]
    missing: MissingCodes
    # Types of values that are blank without an answer, instead of a code.
    blank: Collection[str]
    language: str
    labels: bool
    zone: tzinfo
    # By administration.
    offered: Mapping[int, OfferedVersions]
    # By administration; empty for a file with names.
    releases: Mapping[int, ReleasedRows]
    # Of a panel: the groups of all waves together.
    panel: PanelGroups | None = None
    joined_people: int | None = None
    people: int | None = None
    # Returns IDENTITY cells by respondent; None for exports without names.
    identities: Callable[[Sequence[int]], Mapping[int, Sequence[str]]] | None = None

    def has_codes(self, value_type: str) -> bool:
        return value_type not in self.blank

    def respondent_columns(self) -> list[str]:
        return self.columns.distinct_from_items(self.plain_respondent_columns())

    def plain_respondent_columns(self) -> list[str]:
        """Return the names that the columns have if no item has the same name."""
        return [
            "panel_id" if self.panel else "research_id",
            *(IDENTITY if self.identities else ()),
            "administration",
            *(("wave",) if self.panel else ()),
            "survey_version",
            *PLACE,
            "role",
            "grade",
            "language",
            "response_language",
            *self.attributes,
            "started",
            "finished",
            # Nobody in a release is withdrawn.
            *(("withdrawn",) if self.identities else ()),
        ]


@dataclass(slots=True)
class RespondentLine:
    """The fields of a line of the stream; see `snapshot`."""

    research_id: str
    administration: str
    key: int
    # The key of a school, or of what a release shows of it.
    place: str
    started: str
    completed: str
    withdrawn: str
    about: str
    items: str
    answers: list[str]
    saved: str
    # Of a panel: how many steps of STEPS the row shows.
    shown: int | None = None

    @property
    def shows_school(self) -> bool:
        shown = len(STEPS) if self.shown is None else self.shown
        return self.place.isdecimal() and shows("school", shown)

    @classmethod
    def parse(cls, line: bytes) -> RespondentLine:
        fields = line[:-1].decode().split("\t")
        # The id comes before the fields of the database; in a panel, a number follows.
        if len(fields) not in (FIELDS + 1, FIELDS + 2):
            raise MalformedLine(f"{len(fields)} fields")
        return cls(
            research_id=fields[0],
            administration=fields[1],
            key=int(fields[2]),
            place=fields[3],
            started=fields[4],
            completed=fields[5],
            withdrawn=fields[6],
            about=fields[7],
            items=fields[8],
            answers=fields[9].split("\x1f")[1:],
            saved=fields[10],
            shown=int(fields[11]) if fields[11:] else None,
        )


@dataclass
class ItemEncoder:
    """Encodes and counts the answers to one item in one version."""

    item: ItemDefinition
    version: SurveyVersion
    variable: Variable
    tally: AnswerTally
    encode: Callable[[ItemEncoder, str], Piece]
    is_json: bool = False
    # Left out where a row does not show its school.
    has_typed_text: bool = False
    # Left out with any of these items.
    sources: frozenset[str] = frozenset()
    _cache: dict[str, Piece] = field(default_factory=dict)

    def encode_all(
        self, answers: Sequence[str], *, leaves_out_text: bool, is_masked: bool
    ) -> list[Piece]:
        if is_masked:
            # Of skipped ones as well: all others would have answered.
            answers = [MASKED] * len(answers)
        elif leaves_out_text and self.has_typed_text:
            masked = json.dumps(COARSENED) if self.is_json else COARSENED
            answers = [
                answer if answer in (SKIPPED, NOT_APPLICABLE) else masked
                for answer in answers
            ]
        # Counting in C finds the few distinct answers of a column.
        counts = Counter(answers)
        cache = self._cache
        # Free text hardly ever repeats.
        if self.is_json or len(cache) > MOST_CACHED:
            cache = {}
        for answer in counts.keys() - cache.keys():
            cache[answer] = self.encode(self, answer)
        skipped, hidden = counts[SKIPPED], counts[NOT_APPLICABLE]
        self.tally.skipped += skipped
        self.tally.not_applicable += hidden
        if is_masked:
            self.tally.masked += len(answers)
        else:
            self.tally.answered += len(answers) - skipped - hidden
        if self.item["kind"] in CHOICES and not is_masked:
            self.tally.values.update(counts)
        return [cache[answer] for answer in answers]

    def value(self, answer: str) -> str:
        if self.is_json:
            text: str = json.loads(answer)
            return text
        return answer

    def label(self, value: str, language: str) -> str:
        for option in self.version.options(self.item):
            if option["value"] == value:
                return self.version.in_language(option["label"], language) or value
        return value


@dataclass
class VersionEncoder:
    """Encodes the answers to one version of the survey."""

    version: SurveyVersion
    mask: AnswerMask
    # By primary key of the item.
    items: Mapping[int, ItemEncoder]
    _patterns: dict[str, list[ItemEncoder]] = field(default_factory=dict)

    def encoders_of(self, items: str) -> list[ItemEncoder]:
        """Return the encoders of "{12,13,…}"."""
        known = self._patterns.get(items)
        if known is None:
            if len(self._patterns) >= MOST_CACHED:
                self._patterns.clear()
            known = [self.items[key] for key in parse_array(items)]
            self._patterns[items] = known
        return known


def parse_array(items: str) -> list[int]:
    inside = items[1:-1]
    return [int(key) for key in inside.split(",")] if inside else []


@dataclass(slots=True)
class RespondentGroup:
    """Respondents of a batch with answers to the same items of the same version."""

    encoder: VersionEncoder
    items: str
    # Whether what people typed is left out.
    leaves_out_text: bool
    masked_items: frozenset[str]
    # Positions in the batch, and the answers of each respondent.
    positions: list[int] = field(default_factory=list)
    answers: list[list[str]] = field(default_factory=list)

    def encoded_columns(self) -> list[tuple[ItemEncoder, list[Piece]]]:
        """Return each item with its encoded answers, one for each respondent."""
        encoders = self.encoder.encoders_of(self.items)
        if not encoders:
            return []
        columns = zip(*self.answers, strict=True)
        return [
            (
                encoder,
                encoder.encode_all(
                    answers,
                    leaves_out_text=self.leaves_out_text,
                    is_masked=self.masks(encoder),
                ),
            )
            for encoder, answers in zip(encoders, columns, strict=True)
        ]

    def count_unanswered(self) -> list[ItemEncoder]:
        """Count these people at the items without a stored answer, and return these."""
        answered = set(map(id, self.encoder.encoders_of(self.items)))
        unanswered = [
            encoder
            for encoder in self.encoder.items.values()
            if id(encoder) not in answered
        ]
        for encoder in unanswered:
            if self.masks(encoder):
                encoder.tally.masked += len(self.positions)
            else:
                encoder.tally.not_reached += len(self.positions)
        return unanswered

    def masks(self, encoder: ItemEncoder) -> bool:
        return not self.masked_items.isdisjoint(encoder.sources)


class RowBuilder(ABC):
    """Base of both kinds of files: one row per respondent, or per answer."""

    def __init__(self, plan: ExportPlan, writer: Writer) -> None:
        self.plan = plan
        self.writer = writer
        # Totals of what was written, to be compared with the database.
        self.respondents = 0
        self.responses = 0
        self.rows = 0
        self.versions = {
            version.digest: self._version_encoder(version)
            for version in plan.columns.versions.values()
        }
        self._version_of = {
            str(key): self.versions[administration.published_id]
            for key, administration in plan.administrations.items()
        }
        self.days = LocalDays(plan.zone)
        self._shared: dict[tuple[str, ...], Piece] = {}
        self._masked: dict[tuple[str, str], frozenset[str]] = {}

    def _version_encoder(self, version: SurveyVersion) -> VersionEncoder:
        variables = self.plan.columns.variables_of(version.digest)
        encoders = {
            int(version.items[name]["id"]): ItemEncoder(
                item=version.items[name],
                version=version,
                variable=variables[name],
                tally=AnswerTally(),
                encode=self.encode,
                is_json=version.comes_as_json(version.items[name]),
                has_typed_text=version.has_typed_text(name),
                sources=version.sources(name),
            )
            for name in version.exported()
        }
        return VersionEncoder(version, AnswerMask(version, self.plan.zone), encoders)

    @classmethod
    @abstractmethod
    def headers_of(cls, plan: ExportPlan) -> list[str]:
        """Return one header for each cell of a row."""

    @abstractmethod
    def encode(self, encoder: ItemEncoder, answer: str) -> Piece:
        """Return an answer as it is in the file."""

    @abstractmethod
    def rows_of(self, people: Sequence[RespondentLine]) -> list[Row]:
        """Return the rows of these respondents, in their order."""

    def write(self, lines: Sequence[bytes]) -> None:
        people = [RespondentLine.parse(line) for line in lines]
        rows = self.rows_of(people)
        self.writer.write(rows)
        self.respondents += len(people)
        self.rows += len(rows)

    def groups(self, people: Sequence[RespondentLine]) -> Iterator[RespondentGroup]:
        """Group respondents by version and answered items, masking their answers."""
        groups: dict[tuple[str, str, bool, frozenset[str]], RespondentGroup] = {}
        for position, person in enumerate(people):
            encoder = self._version_of[person.administration]
            items, answers = person.items, person.answers
            # Before masking, which adds and removes answers.
            self.responses += len(answers)
            if encoder.mask.concerned:
                keys, answers = encoder.mask.applied(
                    parse_array(person.items),
                    person.answers,
                    finished=bool(person.completed),
                    # Rules with today() see the day the survey was finished.
                    at=int(person.completed or person.started),
                    language=json.loads(person.about)[1][0]
                    or encoder.version.definition["languages"][0]["code"],
                )
                items = f"{{{','.join(map(str, keys))}}}"
            leaves_out_text = not person.shows_school
            masked = self._masked_items(person)
            key = (person.administration, items, leaves_out_text, masked)
            group = groups.get(key)
            if group is None:
                group = groups[key] = RespondentGroup(
                    encoder, items, leaves_out_text, masked
                )
            group.positions.append(position)
            group.answers.append(answers)
        yield from groups.values()

    def _masked_items(self, person: RespondentLine) -> frozenset[str]:
        """Return the items that are left out of this row, as of its whole class."""
        if not self.plan.releases:
            return frozenset()
        key = (person.administration, person.about)
        masked = self._masked.get(key)
        if masked is None:
            if len(self._masked) > 20 * MOST_CACHED:
                self._masked.clear()
            release = self.plan.releases[int(person.administration)]
            masked = release.masked_items[json.loads(person.about)[-1]]
            self._masked[key] = masked
        return masked

    def offered(self, person: RespondentLine) -> OfferedVersions:
        return self.plan.offered[int(person.administration)]

    def identity_pieces(self, people: Sequence[RespondentLine]) -> list[Piece]:
        """Return the research id of each respondent, with names if planned."""
        if not self.plan.identities:
            return [self.piece(person.research_id) for person in people]
        identities = self.plan.identities([person.key for person in people])
        # An identity may have been erased since.
        blank = ("",) * len(IDENTITY)
        return [
            self.piece(person.research_id, *identities.get(person.key, blank))
            for person in people
        ]

    def piece(self, *cells: Cell) -> Piece:
        return self.writer.piece(cells)

    def shared_piece(self, kind: str, *key: str, make: Callable[[], Piece]) -> Piece:
        """Return a piece that many respondents share, made once."""
        known = self._shared.get((kind, *key))
        if known is None:
            if len(self._shared) > 20 * MOST_CACHED:
                self._shared.clear()
            known = self._shared[kind, *key] = make()
        return known

    def day(self, seconds: str) -> str:
        """Return the day of a Unix time, or a blank."""
        return self.days.at(int(seconds)) if seconds else ""

    def moment(self, seconds: str) -> Date:
        """Return the date and time of a Unix time, for exports with names."""
        if not seconds:
            return Date()
        moment = datetime.fromtimestamp(int(seconds), self.plan.zone)
        return Date(moment.isoformat(sep=" ")[:19])


def value_cell(kind: str, value: str) -> Cell:
    """Return the cell of a value or option code."""
    if kind in CHOICES:
        return number_or_text(value, NUMERIC_CODE)
    if kind in NUMBERS:
        return number_or_text(value)
    if kind in ("calculate", "hidden"):
        return number_or_text(value, PLAIN_NUMBER)
    return Date(value) if kind in MOMENTS else value
