"""Find the CSV files of a OneRoster ZIP, and refuse archives that are traps."""

from __future__ import annotations

import io
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import PurePosixPath
from typing import IO, BinaryIO

from django.utils.translation import gettext as _

from survey.instrument.spreadsheets.file_kinds import UNPACK
from survey.instrument.spreadsheets.workbook_guard import (
    HIGHEST_RATIO,
    MIB,
    ROSTER,
    directory_size,
)
from survey.people.rosters.oneroster.schema import (
    COLLECTIONS,
    NOT_NEEDED,
    OneRosterInvalid,
)
from survey.people.rosters.text_reader import LONGEST_LINE

MANIFEST = "manifest"
MOST_ENTRIES = 500
# An entry of the archive's directory has 46 bytes and three short texts.
LARGEST_DIRECTORY = MOST_ENTRIES * 512
# The files of a state with two million people have 2 GB.
MOST_UNPACKED = 4096 * MIB
_WORKBOOK_PARTS = {"[Content_Types].xml", "mimetype", "xl/workbook.bin"}
_KNOWN = {
    name.casefold(): name for name in (MANIFEST, *COLLECTIONS, *sorted(NOT_NEEDED))
}


class OneRosterArchive:
    """The CSV files of a ZIP by collection, whatever their case and folder."""

    def __init__(self, file: BinaryIO) -> None:
        self._archive = _open_zip(file)
        self.entries: dict[str, zipfile.ZipInfo] = {}
        self.notes: list[str] = []
        self._check(self._archive.infolist())
        nested = [entry for entry in self._files() if not self._add(entry)]
        if not self.entries.keys() & COLLECTIONS.keys():
            inner = next((n for n in nested if n.casefold().endswith(".zip")), None)
            if inner is not None:
                raise OneRosterInvalid(
                    _(
                        "The ZIP contains another ZIP (%(shown)s). Unpack it, and"
                        " use the inner one."
                    )
                    % {"shown": _shown(inner)}
                )
            raise OneRosterInvalid(
                _(
                    "The ZIP contains none of the files of OneRoster (orgs.csv,"
                    " users.csv, …)."
                )
                + " "
                + _(UNPACK)
            )
        self.notes += [
            _("%(shown)s was ignored: it is no file of OneRoster")
            % {"shown": _shown(name)}
            for name in nested
        ]

    def _files(self) -> Iterator[str]:
        for entry in self._archive.infolist():
            parts = _path(entry).parts
            # macOS adds a folder, and files whose names begin with a dot.
            if entry.is_dir() or "__MACOSX" in parts or parts[-1].startswith("."):
                continue
            yield entry.filename

    def _add(self, name: str) -> bool:
        """Remember a file of OneRoster; return whether it is one."""
        entry = self._archive.getinfo(name)
        path = _path(entry)
        known = _KNOWN.get(path.stem.casefold())
        if path.suffix.casefold() != ".csv" or known is None:
            return False
        if known in self.entries:
            raise OneRosterInvalid(
                _("The ZIP contains %(known)s.csv twice: %(shown)s and %(shown_2)s.")
                % {
                    "known": known,
                    "shown": _shown(self.entries[known].filename),
                    "shown_2": _shown(name),
                }
            )
        self.entries[known] = entry
        return True

    def _check(self, entries: list[zipfile.ZipInfo]) -> None:
        """Refuse what the archive declares; `open` refuses declarations that lie."""
        if len(entries) > MOST_ENTRIES:
            raise OneRosterInvalid(
                _("The ZIP has more than %(most_entries)s files.")
                % {"most_entries": MOST_ENTRIES}
            )
        seen: set[str] = set()
        for entry in entries:
            name, path = _shown(entry.filename), _path(entry)
            if not path.parts or path.is_absolute() or ".." in path.parts:
                raise OneRosterInvalid(
                    _("The ZIP's file %(name)s has a forbidden name.") % {"name": name}
                )
            if str(path) in seen:
                raise OneRosterInvalid(
                    _("The ZIP contains %(name)s twice.") % {"name": name}
                )
            seen.add(str(path))
            if stat.S_ISLNK(entry.external_attr >> 16):
                raise OneRosterInvalid(
                    _("The ZIP's file %(name)s is a link.") % {"name": name}
                )
            if entry.flag_bits & 1:
                raise OneRosterInvalid(
                    _("The ZIP is encrypted. Save it without a password.")
                )
            # zipfile unpacks all other kinds without any bound.
            if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise OneRosterInvalid(
                    _(
                        "The ZIP's file %(name)s is compressed in an unusual way."
                        " Save it as an ordinary ZIP."
                    )
                    % {"name": name}
                )
        unpacked = sum(entry.file_size for entry in entries)
        packed = sum(entry.compress_size for entry in entries)
        if unpacked > MOST_UNPACKED:
            raise OneRosterInvalid(
                _("The ZIP is larger than %(most_unpacked)s MB when unpacked.")
                % {"most_unpacked": MOST_UNPACKED // MIB}
            )
        if unpacked > max(ROSTER.harmless, HIGHEST_RATIO * packed):
            raise OneRosterInvalid(
                _(
                    "The ZIP unpacks to more than %(highest_ratio)s times its"
                    " size, which no real one does."
                )
                % {"highest_ratio": HIGHEST_RATIO}
            )

    @contextmanager
    def open(self, name: str) -> Iterator[IO[bytes]]:
        """Unpack one collection's file as it is read, in lines of bounded length."""
        entry = self.entries[name]
        with _reporting_damage(), self._archive.open(entry) as file:
            yield io.BufferedReader(_BoundedLines(file, f"{name}.csv"), 2**17)


def is_archive(file: BinaryIO) -> bool:
    """Tell whether a file is a ZIP for `OneRosterArchive`, and no workbook."""
    file.seek(0)
    is_zip = file.read(2) == b"PK"
    if is_zip:
        try:
            names = set(_open_zip(file).namelist())
        except OneRosterInvalid:
            is_zip = False
    file.seek(0)
    return (
        is_zip
        and not names & _WORKBOOK_PARTS
        and any(name.casefold().endswith((".csv", ".zip")) for name in names)
    )


def _open_zip(file: BinaryIO) -> zipfile.ZipFile:
    with _reporting_damage():
        file.seek(0)
        # zipfile reads the whole directory before anything can be counted.
        if directory_size(file) > LARGEST_DIRECTORY:
            raise OneRosterInvalid(
                _("The ZIP has more than %(most_entries)s files.")
                % {"most_entries": MOST_ENTRIES}
            )
        return zipfile.ZipFile(file)


class _BoundedLines(io.RawIOBase):
    """Pass bytes on until a line is longer than any row of people."""

    def __init__(self, file: IO[bytes], name: str) -> None:
        self._file, self._name = file, name
        self._line, self._length = 1, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        with _reporting_damage():
            piece = self._file.read(len(buffer))
        end = max(piece.rfind(b"\n"), piece.rfind(b"\r"))
        self._length = len(piece) - end - 1 if end >= 0 else self._length + len(piece)
        self._line += piece.count(b"\n")
        if self._length > LONGEST_LINE:
            raise OneRosterInvalid(
                _(
                    "%(name)s, line %(line)s: the line is longer than"
                    " %(longest_line)s characters."
                )
                % {
                    "name": self._name,
                    "line": self._line,
                    "longest_line": f"{LONGEST_LINE:,}",
                }
            )
        buffer[: len(piece)] = piece
        return len(piece)


def _path(entry: zipfile.ZipInfo) -> PurePosixPath:
    # Some programs for Windows write backslashes.
    return PurePosixPath(entry.filename.replace("\\", "/"))


def _shown(name: str) -> str:
    return ascii(name[:80])


@contextmanager
def _reporting_damage() -> Iterator[None]:
    """Turn the errors that a damaged ZIP causes into OneRosterInvalid."""
    try:
        yield
    except (zipfile.BadZipFile, EOFError, NotImplementedError, OSError) as error:
        raise OneRosterInvalid(
            _("The ZIP is damaged (%(name)s). Create it again.")
            % {"name": type(error).__name__}
        ) from error
    except (zlib.error, struct.error) as error:
        raise OneRosterInvalid(_("The ZIP is damaged. Create it again.")) from error
