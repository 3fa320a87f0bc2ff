"""Look for traces of people in each store of this installation.

Reads everything that is stored, so it takes as long as a backup does.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import re
import shutil
import socket
import ssl
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import redis
from django.conf import settings
from django.core.files.storage import Storage
from django.db import connections, transaction

from survey.people.erasing.file_texts import (
    texts_of_dta,
    texts_of_parquet,
    texts_of_pdf,
    texts_of_sav,
    texts_of_workbook,
    texts_of_xls,
)
from survey.people.erasing.traces import Marks, Searched, text_of
from survey.work.files import private_files
from survey.work.files_away import FilesAway

ROWS = 2000
# Of a file, searched at a time; a mark across two parts is seen in their overlap.
PART, OVERLAP = 1 << 20, 1 << 10
# Of what is unpacked, so much is in memory.
IN_MEMORY = 16 << 20
# How often a file may be packed: a workbook, in an archive, in another one, is thrice.
DEEPEST = 8
# How files begin that are unpacked.
ZIPS, ZIP_ENCRYPTED = (b"PK\3\4", b"PK\5\6"), 1
PACKED: tuple[tuple[bytes, Callable[[Any], Any]], ...] = (
    (b"\x1f\x8b", gzip.open),
    (b"BZh", bz2.open),
    (b"\xfd7zX", lzma.open),
)
WORKBOOK = "xl/workbook.xml"
# How files begin whose rows or lines are read.
READERS: tuple[tuple[bytes, Callable[[Any], Iterator[str]]], ...] = (
    (b"PAR1", texts_of_parquet),
    (b"%PDF", texts_of_pdf),
    (b"$FL2", texts_of_sav),
    (b"$FL3", texts_of_sav),
    (b"<stata_dta>", texts_of_dta),
    (b"\xd0\xcf\x11\xe0", texts_of_xls),
)
# By age, for a district; also as text.
ENCRYPTED = (b"age-encryption.org/", b"-----BEGIN AGE")
# Files of these kinds are compressed inside, and nothing here reads them: Zstandard,
# 7-Zip, and what has one of these names, but begins otherwise.
UNREADABLE = (b"\x28\xb5\x2f\xfd", b"7z\xbc\xaf")
UNREADABLE_NAMES = (".pdf", ".sav", ".zsav", ".dta", ".xls")
DAMAGED = (OSError, EOFError, ValueError, NotImplementedError) + (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
)
SECONDS = 10.0
# A partitioned table is one, with its partitions.
TABLES = """
SELECT c.oid::regclass::text FROM pg_class c
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p')
  AND NOT c.relispartition
ORDER BY 1
"""


def search_database(marks: Marks, alias: str) -> Searched:
    """Read every row of every table, also of those that no model describes."""
    searched = Searched()
    connection = connections[alias]
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(TABLES)
            tables = [name for (name,) in cursor.fetchall()]
        else:
            names = connection.introspection.table_names(cursor)
            tables = [connection.ops.quote_name(name) for name in sorted(names)]
    for table in tables:
        searched.read += 1
        with transaction.atomic(using=alias), connection.cursor() as cursor:
            if connection.vendor == "postgresql":
                cursor.execute("SET LOCAL statement_timeout = 0")
            for columns, row in _suspicious_rows(cursor, table, marks):
                _note_row(marks, searched, table.strip('"'), columns, row)
    return searched


def _suspicious_rows(
    cursor: Any, table: str, marks: Marks
) -> Iterator[tuple[list[str], tuple[Any, ...]]]:
    """Yield rows that may have a mark: PostgreSQL sorts out most of the others."""
    statement, values = f"SELECT * FROM {table}", []  # noqa: S608
    if cursor.db.vendor == "postgresql":
        statement = (
            f"SELECT t.* FROM {table} AS t"  # noqa: S608
            " WHERE lower(t::text) LIKE ANY (%s)"
        )
        values = [sorted({pattern_of(word) for word in marks.words})]
    cursor.execute(statement, values)
    columns = [column[0] for column in cursor.description]
    while rows := cursor.fetchmany(ROWS):
        for row in rows:
            yield columns, row


def pattern_of(word: str) -> str:
    """Return what to look for in a row as PostgreSQL writes it.

    Quotes and backslashes are doubled there, and `casefold` has letters that `lower`
    has not.
    """
    plain = max(re.split(r'["\\]|ss', word), key=len)
    return "%" + re.sub(r"([%_])", r"\\\1", plain) + "%"


def _note_row(
    marks: Marks,
    searched: Searched,
    table: str,
    columns: list[str],
    row: tuple[Any, ...],
) -> None:
    """Count the marks of each column, and those that only the whole row has."""
    in_columns: set[str] = set()
    for column, value in zip(columns, row, strict=True):
        kinds = marks.kinds_in(text_of([value]))
        in_columns |= kinds
        for kind in kinds:
            searched.traces[f"{table}.{column}: {kind}"] += 1
    for kind in marks.kinds_in(text_of(row)) - in_columns:
        searched.traces[f"{table}: {kind}"] += 1


def search_files(marks: Marks) -> Searched:
    """Read all private files, of the folder or the bucket; also inside archives."""
    searched = Searched()
    storage = private_files()
    try:
        for name in _names(storage, ""):
            searched.read += 1
            marks.note(searched, name, name)
            _search_file(marks, searched, name, partial(storage.open, name))
    except FileNotFoundError:
        # Of an installation that has never stored a file.
        return searched
    except (OSError, FilesAway) as error:
        searched.unread.append(f"files: {error}")
    return searched


def search_folder(marks: Marks, folder: Path) -> Searched:
    """Read all files of a folder, such as that of logs; also compressed ones."""
    searched = Searched()
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            searched.read += 1
            _search_file(marks, searched, str(path), partial(path.open, "rb"))
    return searched


def _names(storage: Storage, folder: str) -> Iterator[str]:
    folders, files = storage.listdir(folder)
    prefix = f"{folder}/" if folder else ""
    for name in sorted(files):
        yield prefix + name
    for name in sorted(folders):
        yield from _names(storage, prefix + name)


def _search_file(
    marks: Marks, searched: Searched, name: str, opened: Callable[[], Any]
) -> None:
    try:
        with opened() as file:
            _search_content(marks, searched, name, file)
    except DAMAGED as error:
        searched.unread.append(f"{name}: {error}")


def _search_content(
    marks: Marks, searched: Searched, name: str, file: Any, depth: int = 0
) -> None:
    """Read a file by what it is: its name may say something else."""
    head = file.read(64)
    file.seek(0)
    for start, texts_of in READERS:
        if head.startswith(start):
            _search_texts(marks, searched, name, texts_of(file))
            return
    for start, unpacked in PACKED:
        if head.startswith(start):
            with unpacked(file) as content:
                _search_packed(marks, searched, name, content, depth)
            return
    if head.lstrip().startswith(ENCRYPTED):
        searched.unread.append(f"{name}: encrypted")
    elif head.startswith(ZIPS):
        _search_archive(marks, searched, name, file, depth)
    elif head.startswith(UNREADABLE) or name.endswith(UNREADABLE_NAMES):
        searched.unread.append(f"{name}: compressed inside")
    else:
        _search_stream(marks, searched, name, file)
        # Such as one that unpacks itself: a program, and then the archive.
        if zipfile.is_zipfile(file):
            _search_archive(marks, searched, name, file, depth)


def _search_archive(
    marks: Marks, searched: Searched, name: str, file: Any, depth: int
) -> None:
    """Read the members of a ZIP file, such as a workbook, and what is packed there."""
    with zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        for member in members:
            place = f"{name}/{member.filename}"
            marks.note(searched, place, member.filename)
            if member.flag_bits & ZIP_ENCRYPTED:
                searched.unread.append(f"{place}: encrypted")
                continue
            with archive.open(member) as content:
                _search_packed(marks, searched, place, content, depth)
    if any(member.filename == WORKBOOK for member in members):
        _search_texts(marks, searched, name, texts_of_workbook(file))


def _search_packed(
    marks: Marks, searched: Searched, name: str, content: Any, depth: int
) -> None:
    """Unpack first: what is packed once more is read from its end.

    Half of the free place is left to others. What needs more is not read.
    """
    if depth == DEEPEST:
        searched.unread.append(f"{name}: packed more than {DEEPEST} times")
        return
    largest = shutil.disk_usage(tempfile.gettempdir()).free // 2
    with tempfile.SpooledTemporaryFile(max_size=IN_MEMORY) as unpacked:
        while part := content.read(PART):
            if unpacked.tell() + len(part) > largest:
                searched.unread.append(f"{name}: too large to unpack here")
                return
            unpacked.write(part)
        unpacked.seek(0)
        _search_content(marks, searched, name, unpacked, depth + 1)


def _search_texts(
    marks: Marks, searched: Searched, name: str, texts: Iterator[str]
) -> None:
    """Look for marks in each row or line of a file."""
    kinds: set[str] = set()
    try:
        for text in texts:
            kinds |= marks.kinds_in(text)
    except Exception as error:
        # Files that others have made fail in many ways, and may say what a cell has.
        searched.unread.append(f"{name}: rows cannot be read: {type(error).__name__}")
    for kind in kinds:
        searched.traces[f"{name}: {kind}"] += 1


def _search_stream(marks: Marks, searched: Searched, name: str, file: Any) -> None:
    kinds: set[str] = set()
    before = b""
    while part := file.read(PART):
        # Both words of a name may be in a line by chance, which a person then sees.
        text = (before + part).decode("utf-8", "replace")
        for line in text.splitlines():
            kinds |= marks.kinds_in(line)
        before = part[-OVERLAP:]
    for kind in kinds:
        searched.traces[f"{name}: {kind}"] += 1


def search_redis(marks: Marks, location: str) -> Searched:
    """Read all keys and values of one database of Redis."""
    searched = Searched()
    with closing(redis.Redis.from_url(location, socket_timeout=SECONDS)) as client:
        try:
            for key in client.scan_iter(count=1000):
                searched.read += 1
                name = key.decode("utf-8", "replace")
                text = text_of([key, *_values(client, key)])
                # A key may itself be somebody's; its beginning says what it is for.
                marks.note(searched, re.split(r"[:/]", name)[0], text)
        except redis.RedisError as error:
            searched.unread.append(f"Redis: {error}")
    return searched


def _values(client: Any, key: bytes) -> list[bytes]:
    kind = client.type(key)
    if kind == b"string":
        return [client.get(key) or b""]
    if kind == b"hash":
        return [part for pair in client.hgetall(key).items() for part in pair]
    if kind == b"list":
        return list(client.lrange(key, 0, -1))
    if kind == b"set":
        return list(client.smembers(key))
    if kind == b"zset":
        return list(client.zrange(key, 0, -1))
    if kind == b"stream":
        return [
            part
            for _, fields in client.xrange(key)
            for pair in fields.items()
            for part in pair
        ]
    return []


def search_memcached(
    marks: Marks, location: str, tls: ssl.SSLContext | None = None
) -> Searched:
    """Read all entries that Memcached lists (`lru_crawler metadump`)."""
    searched = Searched()
    try:
        with _memcached(location, tls) as file:
            file.write(b"lru_crawler metadump all\r\n")
            file.flush()
            keys = []
            for line in iter(file.readline, b"END\r\n"):
                if not line.startswith(b"key="):
                    raise OSError(f"Memcached lists nothing: {line!r}")
                keys.append(unquote(line.split()[0].removeprefix(b"key=").decode()))
            for key in keys:
                searched.read += 1
                marks.note(
                    searched, key.split(":")[0], text_of([key, _entry(file, key)])
                )
    except OSError as error:
        searched.unread.append(f"Memcached: {error}")
    return searched


@contextmanager
def _memcached(location: str, tls: ssl.SSLContext | None) -> Iterator[Any]:
    if location.startswith(("unix:", "/")):
        client = socket.socket(socket.AF_UNIX)
        address: Any = location.removeprefix("unix:")
    else:
        client = socket.socket()
        host, _, port = location.rpartition(":")
        address = (host, int(port))
    with client:
        client.settimeout(SECONDS)
        client.connect(address)
        if tls is not None:
            client = tls.wrap_socket(client, server_hostname=address[0])
        with client.makefile("rwb") as file:
            yield file


def _entry(file: Any, key: str) -> bytes:
    file.write(f"get {key}\r\n".encode())
    file.flush()
    head = file.readline()
    if not head.startswith(b"VALUE "):
        # It has expired since it was listed.
        return b""
    value: bytes = file.read(int(head.split()[3]))
    for line in iter(file.readline, b"END\r\n"):
        if line not in (b"\r\n", b""):
            raise OSError(f"unexpected answer: {line!r}")
    return value


def search_everything(marks: Marks, logs: list[Path]) -> dict[str, Searched]:
    """Search every store that the settings name, and folders of logs."""
    stores = {}
    for alias in ("default", "replica"):
        if alias in settings.DATABASES:
            stores[f"database {alias}"] = search_database(marks, alias)
    stores["files"] = search_files(marks)
    for number, location in enumerate(_locations("Redis"), start=1):
        stores[f"Redis {number}"] = search_redis(marks, location)
    for number, (location, options) in enumerate(
        _locations("Memcached").items(), start=1
    ):
        tls = options.get("tls_context")
        stores[f"Memcached {number}"] = search_memcached(marks, location, tls)
    for folder in logs:
        stores[f"logs {folder}"] = search_folder(marks, folder)
    return stores


def _locations(kind: str) -> dict[str, dict[str, Any]]:
    """Return the servers of caches of a kind, each once, with its options."""
    servers: dict[str, dict[str, Any]] = {}
    for cache in settings.CACHES.values():
        if kind in cache["BACKEND"]:
            given = cache["LOCATION"]
            for location in [given] if isinstance(given, str) else given:
                servers.setdefault(location, cache.get("OPTIONS", {}))
    return servers
