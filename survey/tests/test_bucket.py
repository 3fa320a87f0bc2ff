"""Private files in object storage, as files.py gives them to everybody."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

import pytest
from django.core.exceptions import ImproperlyConfigured, SuspiciousFileOperation
from django.core.files.base import ContentFile
from django.core.management import call_command
from django.core.management.base import CommandError
from django.test import RequestFactory

from accounts.console import errors
from settings.bucket import storage_of_bucket
from survey.tests.object_storage import NAME, ObjectStorage, object_storage
from survey.work import bucket as buckets
from survey.work import files as private
from survey.work.files import (
    delete_files,
    delete_folder,
    delete_orphans,
    download,
    exists,
    keep,
    local_copy,
    new_name,
    path_of,
    private_files,
)
from survey.work.files_away import FilesAway

LARGE = 64 << 20


@pytest.fixture(scope="module")
def server() -> Iterator[ObjectStorage]:
    with object_storage() as storage:
        yield storage


@pytest.fixture
def storage(server, settings, tmp_path) -> ObjectStorage:
    use(server, settings, tmp_path)
    for name in server.names():
        server.client().delete_object(Bucket=NAME, Key=name)
    return server


def use(storage, settings, tmp_path) -> None:
    settings.FILES_BUCKET = storage.address
    settings.FILES_FOLDER = str(tmp_path)
    settings.STORAGES = {
        **settings.STORAGES,
        "private": storage_of_bucket(storage.address),
    }


def written(name: str, content: bytes = b"names") -> str:
    path = path_of(name)
    path.write_bytes(content)
    keep(path, name)
    return name


def on_this_disk(tmp_path) -> list[str]:
    return [path.name for path in tmp_path.rglob("*") if path.is_file()]


def test_a_finished_file_goes_into_the_bucket_and_back(storage, tmp_path):
    name = written(new_name("exports", ".csv"))

    assert storage.names() == [name]
    assert on_this_disk(tmp_path) == []
    assert exists(name)
    with local_copy(name) as path:
        assert (path.read_bytes(), path.suffix) == (b"names", ".csv")
    assert on_this_disk(tmp_path) == []
    head = storage.client().head_object(Bucket=NAME, Key=name)
    assert head["ServerSideEncryption"] == "AES256"

    delete_files(name, "")
    assert storage.names() == []
    # A second time, nothing is left to delete.
    delete_files(name)
    assert not exists(name)
    with pytest.raises(FileNotFoundError), local_copy(name):
        pass


def test_an_upload_goes_into_the_bucket(storage):
    stored = private_files().save(new_name("rosters", ".roster"), ContentFile(b"names"))
    assert storage.names() == [stored]


def test_a_download_has_a_folder_of_its_own(storage, tmp_path):
    folder = new_name("feeds", "")
    name = written(f"{folder}/roster.zip")
    assert storage.names() == [name]
    assert not (tmp_path / folder).exists()
    written(f"{folder}-other/roster.zip")
    delete_folder(folder)
    assert storage.names() == [f"{folder}-other/roster.zip"]


def test_names_outside_the_folder_are_refused(storage):
    with pytest.raises(SuspiciousFileOperation):
        path_of("../secrets.json")


def test_large_files_take_little_memory(storage, tmp_path):
    content = tmp_path / "large"
    with content.open("wb") as file:
        for _ in range(LARGE >> 20):
            file.write(bytes(1 << 20))

    def peak(act) -> int:
        tracemalloc.start()
        try:
            act()
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    name = new_name("exports", ".csv")
    place = path_of(name)
    content.rename(place)
    assert peak(place.read_bytes) >= LARGE
    assert peak(lambda: keep(place, name)) < LARGE / 2
    # In eight parts, of which none is seen before all are there.
    etag = storage.client().head_object(Bucket=NAME, Key=name)["ETag"]
    assert etag.strip('"').endswith("-8")

    def read() -> None:
        with local_copy(name) as path:
            assert path.stat().st_size == LARGE

    assert peak(read) < LARGE / 2


def test_nginx_gets_a_signature_of_a_minute_and_the_browser_none(storage, settings):
    settings.FILES_ADDRESS = "/private-files/"
    name = written(new_name("exports", ".csv"))
    response = download(name, as_name="Fall 2027.csv", content_type="text/csv")

    led_to = urlsplit(response["X-Accel-Redirect"])
    assert led_to.path == f"/private-files/{NAME}/{name}"
    signed = parse_qs(led_to.query)
    assert signed["X-Amz-Expires"] == ["60"]
    assert signed["response-content-type"] == ["text/csv"]
    assert response["Content-Disposition"] == 'attachment; filename="Fall 2027.csv"'
    assert response["Cache-Control"] == "private, no-store"
    assert response.content == b""
    # nginx takes this header away. Nothing else names the bucket.
    left = {key: value for key, value in response.items() if key != "X-Accel-Redirect"}
    assert NAME not in str(left)


def test_without_nginx_this_process_sends_the_file(storage):
    name = written(new_name("exports", ".csv"), b"student,answer\n")
    response = download(name, as_name="a.csv", content_type="text/csv")
    assert b"".join(response.streaming_content) == b"student,answer\n"
    response.close()


# Away


@pytest.fixture
def away(storage, monkeypatch) -> Iterator[ObjectStorage]:
    """A server that accepts connections, and answers none."""
    monkeypatch.setattr(buckets, "READ_SECONDS", 0.5)
    monkeypatch.setattr(buckets, "ATTEMPTS", 1)
    storage.suspend()
    yield storage
    storage.resume()


def test_a_file_that_can_not_be_kept_stays_until_it_can(away, tmp_path):
    name = new_name("exports", ".csv")
    path = path_of(name)
    path.write_bytes(b"names")
    with pytest.raises(FilesAway):
        keep(path, name)
    assert path.read_bytes() == b"names"

    away.resume()
    keep(path, name)
    with local_copy(name) as copy:
        assert copy.read_bytes() == b"names"


def test_reading_and_looking_end_in_time(away):
    with pytest.raises(FilesAway):
        exists("exports/a.csv")
    with pytest.raises(FilesAway), local_copy("exports/a.csv"):
        pass
    # Its row is gone, and it is deleted with the orphans.
    delete_files("exports/a.csv")


def test_the_console_says_that_files_are_away():
    request = RequestFactory().get("/console/exports/7/file/")
    try:
        raise FilesAway("Connect timeout on endpoint URL")
    except FilesAway:
        response = errors.server_error(request)
    assert response.status_code == 503
    assert response["Retry-After"] == "15"
    page = response.content.decode()
    assert "The storage of files does not answer" in page
    assert "database" not in page
    assert "endpoint" not in page


def test_a_wrong_secret_is_no_missing_file(storage, settings, tmp_path):
    with object_storage(is_private=True) as strict:
        strict.secret = "another"
        use(strict, settings, tmp_path)
        with pytest.raises(FilesAway):
            exists("exports/a.csv")


# Retention


def test_what_no_row_names_is_deleted_after_a_day(storage, settings, monkeypatch):
    folder = new_name("feeds", "")
    known = [written(new_name("feeds", ".sqlite")), written(f"{folder}/a.zip")]
    orphans = [written(new_name("feeds", ".sqlite")), written("feeds/x/a.zip")]
    roster = written(new_name("rosters", ".roster"))
    part = storage.client().create_multipart_upload(Bucket=NAME, Key="feeds/half")

    delete_orphans("feeds", lambda: {known[0], folder})
    assert set(storage.names()) == {*known, *orphans, roster}
    monkeypatch.setattr(private, "ORPHANED_AFTER", -3600)
    delete_orphans("feeds", lambda: {known[0], folder})
    assert set(storage.names()) == {*known, roster}
    uploads = storage.client().list_multipart_uploads(Bucket=NAME)
    assert part["UploadId"] not in str(uploads.get("Uploads", ""))


# Before a host serves


def test_a_private_bucket_is_accepted(settings, tmp_path, capsys):
    with object_storage(is_private=True) as storage:
        use(storage, settings, tmp_path)
        call_command("check_files")
        assert storage.names() == []
    assert "is private" in capsys.readouterr().out


def test_a_bucket_that_anybody_reads_is_refused(storage):
    with pytest.raises(
        CommandError, match="not private: anybody (reads|lists) its files"
    ):
        call_command("check_files")
    assert storage.names() == []


def test_a_bucket_that_is_missing_or_away_is_refused(storage, settings, monkeypatch):
    missing = storage.address.replace(NAME, "nowhere")
    settings.STORAGES = {**settings.STORAGES, "private": storage_of_bucket(missing)}
    with pytest.raises(CommandError, match="NoSuchBucket|does not exist"):
        call_command("check_files")
    nobody = storage.address.replace(str(storage.port), "9")
    settings.STORAGES = {**settings.STORAGES, "private": storage_of_bucket(nobody)}
    with pytest.raises(CommandError, match="can't be used"):
        call_command("check_files")


def test_without_a_bucket_there_is_nothing_to_check(capsys):
    call_command("check_files")
    assert "in a folder" in capsys.readouterr().out


# Its address


def test_an_address_says_everything():
    address = "s3://me:a%2Fb@minio.example.org:9000/files?region=eu&encryption=none"
    options = storage_of_bucket(address)["OPTIONS"]
    assert options == {
        "access_key": "me",
        "secret_key": "a/b",
        "bucket_name": "files",
        "endpoint_url": "https://minio.example.org:9000",
        "region_name": "eu",
        "object_parameters": {},
    }


@pytest.mark.parametrize(
    "address",
    [
        "https://me:hidden@host/files",
        "s3://me:hidden@host/",
        "s3://me@host/files",
        "s3://me:hidden@host:port/files",
        "s3://me:hidden@host/files?encryption=rot13",
        "s3://me:hidden@host/files?public=yes",
        "s3://me:hidden@10.0.0.9/files?plain=yes",
    ],
)
def test_an_address_that_can_not_be_used_is_refused_without_its_secret(address):
    with pytest.raises(ImproperlyConfigured) as refused:
        storage_of_bucket(address)
    assert "GROUNDSWELL_FILES_BUCKET" in str(refused.value)
    assert "hidden" not in str(refused.value)
