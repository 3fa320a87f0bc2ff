"""Look for an erased person in each store, and find what was left there."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import stat
import zipfile
from io import BytesIO, StringIO
from types import SimpleNamespace
from urllib.parse import urlsplit

import pyarrow as pa
import pytest
import pyzipper
import redis
from django.conf import settings
from django.core.cache import caches
from django.core.files.base import ContentFile
from django.core.management import CommandError, call_command
from pyarrow.parquet import write_table
from weasyprint import HTML

from survey.fieldwork.login_cards.pdf import CardSheet, LoginCard, draw_cards
from survey.models import Wave
from survey.people.access_codes import code_of, format_code
from survey.people.erasing import trace_stores
from survey.people.erasing.file_texts import texts_of_pdf
from survey.people.erasing.trace_stores import WORKBOOK
from survey.people.erasing.traces import Mark, Marks
from survey.tests.erasing.conftest import erased
from survey.tests.erasing.test_erase import fill
from survey.tests.people import invite
from survey.tests.workbooks import as_excel_writes_it, workbook
from survey.work.files import private_files

pytestmark = pytest.mark.django_db


def search(path, *logs) -> tuple[int, dict]:
    printed, status = StringIO(), 0
    options = [f"--logs={folder}" for folder in logs]
    try:
        call_command("search_traces", f"--search={path}", *options, stdout=printed)
    except SystemExit as end:
        status = int(end.code or 0)
    return status, json.loads(printed.getvalue())


def save_sample(administration, path, count=20) -> None:
    call_command(
        "search_traces",
        f"--sample={count}",
        f"--administration={administration.pk}",
        f"--save={path}",
        stdout=StringIO(),
    )


@pytest.fixture(autouse=True)
def files(settings, tmp_path):
    """A folder without what other tests have left: all of it would be searched."""
    folder = str(tmp_path / "files")
    private = settings.STORAGES["private"]
    options = {**private["OPTIONS"], "location": folder}
    settings.FILES_FOLDER = folder
    settings.STORAGES = {
        **settings.STORAGES,
        "private": {**private, "OPTIONS": options},
    }


@pytest.fixture
def sample(administration, staff, maya, tmp_path):
    """Maya's marks, in a file that only its owner reads."""
    fill(maya, staff.dana)
    path = tmp_path / "marks.json"
    save_sample(administration, path)
    return path


@pytest.mark.sqlite
def test_nothing_is_left_of_an_erased_person(staff, maya, sample, tmp_path):
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "access.log").write_text("GET /survey/ 200\n")
    assert stat.S_IMODE(sample.stat().st_mode) == 0o600
    # The twin: before, there is something to find.
    status, before = search(sample, logs)
    assert status == 1
    assert before["stores"]["database default"]["traces"][
        "survey_identity.external_id: ID"
    ]
    # A name is in two columns of one row.
    assert before["stores"]["database default"]["traces"]["survey_rosterchange: name"]
    erased(maya, by=staff.dana)
    status, after = search(sample, logs)
    assert (status, after["traces"], after["unread"]) == (0, 0, 0), after
    assert after["stores"]["database default"]["read"] > 50
    assert after["stores"][f"logs {logs}"]["read"] == 1


@pytest.mark.sqlite
def test_traces_in_files_and_logs_are_reported(staff, maya, sample, tmp_path):
    code = format_code(code_of(maya))
    erased(maya, by=staff.dana)
    logs = tmp_path / "logs"
    (logs / "old").mkdir(parents=True)
    (logs / "now.log").write_text(f"typed {code}\n")
    (logs / "old" / "1.gz").write_bytes(gzip.compress(b"to maya@zaragoza.org\n"))
    packed = BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("sheet.xml", "<c>ZARAGOZA</c><c>Maya</c>")
    names = [
        private_files().save("exports/plain.csv", ContentFile(b"1;Maya;Zaragoza\n")),
        private_files().save("exports/workbook.xlsx", ContentFile(packed.getvalue())),
        private_files().save("exports/drawn.pdf", ContentFile(b"%PDF-1.7")),
    ]
    try:
        status, result = search(sample, logs)
    finally:
        for name in names:
            private_files().delete(name)
    assert status == 1
    assert result["stores"]["files"]["traces"] == {
        f"{names[0]}: name": 1,
        f"{names[1]}/sheet.xml: name": 1,
    }
    assert result["stores"]["files"]["unread"] == [
        f"{names[2]}: rows cannot be read: EOFError"
    ]
    assert result["stores"][f"logs {logs}"]["traces"] == {
        f"{logs}/now.log: access code": 1,
        f"{logs}/old/1.gz: e-mail address": 1,
        # The address has both words.
        f"{logs}/old/1.gz: name": 1,
    }
    # Where, and not what.
    assert "zaragoza" not in json.dumps(result).casefold()


def zipped(**members: bytes) -> bytes:
    file = BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


def nested(times: int) -> bytes:
    content = b"Maya Zaragoza"
    for _ in range(times):
        content = zipped(**{"in": content})
    return content


def with_damaged_lzma() -> bytes:
    """Return an archive of a kind that zipfile reads with another library."""
    file = BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("people", b"Maya Zaragoza" * 99)
        start = archive.getinfo("people").header_offset
    content = bytearray(file.getvalue())
    # Behind the header, the name and the settings of the compression.
    compressed = start + 30 + len("people") + 9
    content[compressed : compressed + 8] = b"\xff" * 8
    return bytes(content)


def parquet(**columns: list[str]) -> bytes:
    file = BytesIO()
    write_table(pa.table(columns), file, compression="zstd")
    return file.getvalue()


def with_password(content: bytes) -> bytes:
    file = BytesIO()
    with pyzipper.AESZipFile(
        file, "w", encryption=pyzipper.WZ_AES, compression=zipfile.ZIP_DEFLATED
    ) as archive:
        archive.setpassword(b"secret")
        archive.writestr("people.csv", content)
    return file.getvalue()


def large_workbook() -> bytes:
    """Return a workbook whose table of texts has the two names far apart."""
    fillers = [[f"{number}" * 30_000] for number in range(10, 100)]
    rows = [
        ["Maya", "Ng"],
        *fillers,
        ["Ali", "Zaragoza"],
        ["1", "Maya", "", "Zaragoza"],
    ]
    return as_excel_writes_it(workbook({"people": rows}))


def cards(name: str) -> bytes:
    """Return login cards of three people; the second one has this name."""
    sheet = CardSheet(
        title="Our school",
        address="https://survey.example",
        first_language="en",
        titles={"en": "Our school"},
        windows={"en": "Until May"},
    )
    given, _, family = name.partition(" ")
    people = (("Ali", "Diaz"), (given, family), ("Noor", "Wu"))
    drawn = [
        LoginCard("Class 6a", "Lincoln", *names, f"ABCD-EFGH-JKL{number}", "en")
        for number, names in enumerate(people)
    ]
    return bytes(draw_cards(drawn, sheet, lambda _: None))


@pytest.fixture
def stored_files():
    names = []

    def store(name: str, content: bytes) -> str:
        names.append(private_files().save(f"exports/{name}", ContentFile(content)))
        return names[-1]

    yield store
    for name in names:
        private_files().delete(name)


@pytest.mark.sqlite
def test_packed_files_are_unpacked_by_what_they_are(staff, maya, sample, stored_files):
    erased(maya, by=staff.dana)
    line = b"1;Maya;Zaragoza\n"
    rows = parquet(given=["Ali", "Maya"], family=["Diaz", "Zaragoza"])
    # Compressed, so that no file has the name as it is.
    assert b"Zaragoza" not in zipped(workbook=zipped(sheet=line * 9))
    packed = {
        "twice.zip": zipped(workbook=zipped(sheet=line)),
        "unnamed": zipped(log=gzip.compress(line)),
        "rows.parquet": rows,
        "rows.zip": zipped(rows=rows),
        "lines.csv.gz": gzip.compress(line),
        "lines.csv.xz": lzma.compress(line),
        "lines.csv.bz2": bz2.compress(line),
        "ali.zip": zipped(rows=parquet(given=["Ali"], family=["Zaragoza"])),
    }
    names = {name: stored_files(name, content) for name, content in packed.items()}
    status, result = search(sample)
    assert (status, result["unread"]) == (1, 0)
    assert result["stores"]["files"]["traces"] == {
        f"{names['twice.zip']}/workbook/sheet: name": 1,
        f"{names['unnamed']}/log: name": 1,
        f"{names['rows.parquet']}: name": 1,
        f"{names['rows.zip']}/rows: name": 1,
        f"{names['lines.csv.gz']}: name": 1,
        f"{names['lines.csv.xz']}: name": 1,
        f"{names['lines.csv.bz2']}: name": 1,
    }


@pytest.mark.sqlite
def test_a_large_workbook_is_read_by_rows(
    staff, maya, sample, stored_files, monkeypatch
):
    erased(maya, by=staff.dana)
    large = large_workbook()
    with zipfile.ZipFile(BytesIO(large)) as archive:
        texts = archive.read("xl/sharedStrings.xml")
    assert texts.index(b"Zaragoza") - texts.index(b"Maya") > 2 * trace_stores.PART
    name = stored_files("people.xlsx", large)
    assert search(sample)[1]["stores"]["files"]["traces"][f"{name}: name"] == 1
    # The twin: read as XML, it seems clean.
    monkeypatch.setattr(trace_stores, "texts_of_workbook", lambda _: iter(()))
    assert name not in str(search(sample)[1]["stores"]["files"])


@pytest.mark.sqlite
def test_pdf_files_are_read(staff, maya, sample, stored_files, monkeypatch):
    erased(maya, by=staff.dana)
    # In two lines, because it is long; and letters that are not Latin.
    long = f"{'Maya' * 9} Zaragoza"
    page = "<title>{}</title><p>{}</p><p>Zaragoza-Lopez, <b>Maya</b></p>"
    content = {
        "cards.pdf": cards("Maya Zaragoza"),
        "long.zip": zipped(long=cards("Maya ZARAGOZA Zaragoza" + "a" * 40)),
        "report.pdf": HTML(string=page.format("Report", "")).write_pdf(),
        "titled.pdf": HTML(string=page.format("maya@zaragoza.org", "")).write_pdf(),
        "others.pdf": cards("Maya Diaz"),
        "longer.pdf": cards(long),
    }
    assert not any(b"Zaragoza" in each for each in content.values())
    names = {name: stored_files(name, each) for name, each in content.items()}
    status, result = search(sample)
    assert (status, result["unread"]) == (1, 0)
    assert result["stores"]["files"]["traces"] == {
        f"{names['cards.pdf']}: name": 1,
        f"{names['long.zip']}/long: name": 1,
        f"{names['report.pdf']}: name": 1,
        f"{names['titled.pdf']}: name": 1,
        f"{names['titled.pdf']}: e-mail address": 1,
    }


@pytest.mark.sqlite
@pytest.mark.parametrize("name", ("Jürgen O'Neill (Ng)", "Jose\\ Łuć", "مريم يوسف"))
def test_letters_of_pdf_files_are_those_of_the_name(name):
    given, _, family = name.partition(" ")
    marks = Marks([Mark("name", (given, family))])
    texts = list(texts_of_pdf(BytesIO(cards(name))))
    assert any(marks.kinds_in(text) for text in texts)
    without = texts_of_pdf(BytesIO(cards("Ali Diaz")))
    assert not any(marks.kinds_in(text) for text in without)
    report = HTML(string=f"<p>{name}</p>").write_pdf()
    assert any(marks.kinds_in(text) for text in texts_of_pdf(BytesIO(report)))


@pytest.mark.sqlite
def test_what_cannot_be_unpacked_is_named(staff, maya, sample, stored_files):
    erased(maya, by=staff.dana)
    for name, content, reason in (
        ("cards.zip", zipped(card=b"%PDF-1.7"), "/card: rows cannot be read: "),
        ("cut.pdf", cards("Maya Zaragoza")[:-20_000], ": rows cannot be read: "),
        ("cut.sav", b"$FL2@(#) SPSS", ": rows cannot be read: "),
        ("cut.dta", b"<stata_dta><header>", ": rows cannot be read: "),
        ("old.dta", b"s\1\1\0", ": compressed inside"),
        ("old.xls", b"\xd0\xcf\x11\xe0", ": rows cannot be read: "),
        ("locked.zip", with_password(b"Maya Zaragoza"), "/people.csv: encrypted"),
        ("returned.age", b"age-encryption.org/v1\n", ": encrypted"),
        ("mailed.age", b"-----BEGIN AGE ENCRYPTED FILE-----\n", ": encrypted"),
        ("old.log.zst", b"\x28\xb5\x2f\xfd", ": compressed inside"),
        ("odd.zip", with_damaged_lzma(), ": "),
        ("deep.zip", nested(9), "/in" * 9 + ": packed more than 8 times"),
        ("odd.xlsx", zipped(**{WORKBOOK: b"<x"}), ": rows cannot be read: "),
        ("broken.zip", zipped(people=b"Maya Zaragoza")[:-9], ": "),
        ("broken.gz", gzip.compress(b"Maya Zaragoza")[:-9], ": "),
        ("broken.parquet", b"PAR1 Maya PAR1", ": "),
    ):
        stored = stored_files(name, content)
        status, result = search(sample)
        [unread] = result["stores"]["files"]["unread"]
        assert status == 1 and unread.startswith(stored + reason), unread
        private_files().delete(stored)


@pytest.mark.sqlite
def test_a_bomb_does_not_fill_the_disk(staff, maya, sample, stored_files, monkeypatch):
    erased(maya, by=staff.dana)
    bomb = zipped(zeros=bytes(9_000_000) + b"Maya Zaragoza")
    name = stored_files("bomb.zip", bomb)
    assert search(sample)[1]["stores"]["files"]["traces"] == {f"{name}/zeros: name": 1}
    usage = SimpleNamespace(free=16_000_000)
    monkeypatch.setattr(trace_stores.shutil, "disk_usage", lambda _folder: usage)
    status, result = search(sample)
    assert (status, result["traces"]) == (1, 0)
    assert result["stores"]["files"]["unread"] == [
        f"{name}/zeros: too large to unpack here"
    ]


@pytest.mark.sqlite
def test_an_archive_behind_a_program_is_unpacked(staff, maya, sample, stored_files):
    erased(maya, by=staff.dana)
    name = stored_files("setup.exe", b"MZ a program" + zipped(people=b"Maya Zaragoza"))
    traces = search(sample)[1]["stores"]["files"]["traces"]
    assert traces == {f"{name}/people: name": 1}


@pytest.mark.sqlite
def test_traces_in_a_table_are_reported(staff, maya, sample):
    erased(maya, by=staff.dana)
    Wave.objects.create(name="Maya Zaragoza moved")
    status, result = search(sample)
    assert status == 1
    assert result["stores"]["database default"]["traces"] == {
        "survey_wave.name: name": 1
    }


@pytest.mark.skipif(not settings.SERVERS, reason="Redis and Memcached are servers")
def test_traces_in_redis_and_memcached_are_reported(staff, maya, sample):
    erased(maya, by=staff.dana)
    assert search(sample)[1]["traces"] == 0
    by_name = {
        urlsplit(cache["LOCATION"]).query: cache["LOCATION"]
        for cache in settings.CACHES.values()
        if "Redis" in cache["BACKEND"]
    }
    clients = [redis.Redis.from_url(location) for location in by_name.values()]
    assert len(clients) == 2
    for client in clients:
        client.set("a:text", '{"name": "Maya Zaragoza"}')
        client.hset("b:hash", "name", "Maya Zaragoza")
        client.rpush("c:list", "Maya", "maya@zaragoza.org")
        client.sadd("d:set", "Maya Zaragoza")
        client.zadd("e:sorted", {"Maya Zaragoza": 1.0})
        client.set("f:zaragoza maya", "1")
    caches["default"].set("people", {"email": "maya@zaragoza.org"})
    caches["lists"].set("names", ["Maya Zaragoza"])
    try:
        status, result = search(sample)
    finally:
        for client in clients:
            client.delete(
                *("a:text", "b:hash", "c:list", "d:set", "e:sorted", "f:zaragoza maya")
            )
        caches["default"].delete("people")
        caches["lists"].delete("names")
    assert status == 1
    for store in ("Redis 1", "Redis 2"):
        assert set(result["stores"][store]["traces"]) == {
            *("a: name", "b: name", "d: name", "e: name", "f: name"),
            # The address has both words.
            *("c: e-mail address", "c: name"),
        }
    traces = result["stores"]["Memcached 1"]["traces"]
    assert {place.split(": ")[1] for place in traces} == {"e-mail address", "name"}
    assert search(sample)[1]["traces"] == 0


@pytest.mark.skipif(not settings.SERVERS, reason="Redis and Memcached are servers")
def test_a_store_that_is_down_is_no_store_without_traces(sample, maya, staff, settings):
    erased(maya, by=staff.dana)
    caches_without = {
        **settings.CACHES,
        "session": {
            "BACKEND": "settings.infrastructure.cache_backends.KeepAliveRedis",
            "LOCATION": "redis://127.0.0.1:1/0",
        },
        "default": {
            "BACKEND": "settings.infrastructure.cache_backends.KeepAliveMemcached",
            "LOCATION": ["127.0.0.1:1"],
            "OPTIONS": {},
        },
    }
    settings.CACHES = caches_without
    status, result = search(sample)
    assert (status, result["traces"]) == (1, 0)
    assert result["unread"] == 2


@pytest.mark.sqlite
def test_what_others_have_too_is_no_mark(administration, staff, maya, tmp_path):
    """Else each Maya Zaragoza would be a trace of every other one."""
    invite(administration, staff.roosevelt, "00123", "Maya Zaragoza")
    path = tmp_path / "marks.json"
    call_command(
        *("search_traces", "--respondent", str(maya.pk), f"--save={path}"),
        stdout=StringIO(),
    )
    kinds = {mark["kind"] for mark in json.loads(path.read_text())}
    assert kinds == {"access code", "digest of the code", "e-mail address"}


@pytest.mark.sqlite
@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("10045", {"ID"}),
        ("id=10045;", {"ID"}),
        ("2100457", set()),
        ("10045a", set()),
        ("Maya\nZaragoza", {"name"}),
        ("zaragoza, maya", {"name"}),
        ("Maya", set()),
        ("Mayas Zaragoza", set()),
        ('{"n": "van der Meer J\\u00fcrgen"}', {"name"}),
        ("<c>J&#xFC;rgen</c><c>van der Meer</c>", {"name"}),
    ],
)
def test_whole_words_are_marks(text, kinds):
    marks = Marks(
        [
            Mark("ID", ("10045",)),
            Mark("name", ("Maya", "Zaragoza")),
            Mark("name", ("Jürgen", "van der Meer")),
        ]
    )
    assert marks.kinds_in(text) == kinds


@pytest.mark.sqlite
def test_wrong_files_and_options_are_refused(administration, tmp_path, maya):
    path = tmp_path / "marks.json"
    for options, reason in (
        (["--sample=2"], "--save FILE"),
        (["--sample=2", f"--save={path}"], "--administration NUMBER"),
        (["--respondent", "0", f"--save={path}"], "None of these people"),
        ([f"--search={path}"], "has no marks of people"),
    ):
        with pytest.raises(CommandError, match=reason):
            call_command("search_traces", *options, stdout=StringIO())
    assert not path.exists()
    save_sample(administration, path)
    with pytest.raises(CommandError, match="cannot be made"):
        save_sample(administration, path)
    with pytest.raises(CommandError, match="There is no folder"):
        call_command("search_traces", f"--search={path}", "--logs=/none/here")
