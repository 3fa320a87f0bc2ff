"""Private files: names, permissions and downloads."""

from __future__ import annotations

import stat

import pytest
from django.core.files.base import ContentFile
from django.core.files.uploadedfile import TemporaryUploadedFile

from survey.work.files import download, new_name, path_of, private_files


@pytest.fixture
def files(settings, tmp_path):
    private = settings.STORAGES["private"]
    options = {**private["OPTIONS"], "location": str(tmp_path / "files")}
    settings.STORAGES = {
        **settings.STORAGES,
        "private": {**private, "OPTIONS": options},
    }
    return tmp_path / "files"


def mode(path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_files_are_downloaded_as_attachments(files, settings):
    name = new_name("exports", ".csv")
    path_of(name).write_text("student,answer\n1,3\n")

    response = download(name, as_name="Año 2027.csv", content_type="text/csv")

    assert b"".join(response.streaming_content) == b"student,answer\n1,3\n"
    assert "filename*=utf-8''A%C3%B1o%202027.csv" in response["Content-Disposition"]
    assert response["Content-Disposition"].startswith("attachment")
    assert response["Cache-Control"] == "private, no-store"
    response.file_to_stream.close()


def test_nginx_sends_the_file_where_it_is_configured(files, settings):
    settings.FILES_ADDRESS = "/private-files/"
    name = new_name("exports", ".xlsx")

    response = download(name, as_name='a"b\r\nc.xlsx', content_type="application/x")

    assert response["X-Accel-Redirect"] == f"/private-files/{name}"
    assert response["Content-Type"] == "application/x"
    assert response["Cache-Control"] == "private, no-store"
    assert "\n" not in response["Content-Disposition"]
    assert response.content == b""


def test_names_cannot_be_guessed():
    names = {new_name("rosters", ".csv") for _ in range(100)}
    assert len(names) == 100
    for name in names:
        folder, _, rest = name.partition("/")
        assert (folder, rest[-4:]) == ("rosters", ".csv")
        assert len(rest) >= 32 + 4
        # Safe in a header and in an address of nginx.
        assert rest.replace("-", "").replace("_", "").removesuffix(".csv").isalnum()


def test_files_and_folders_are_readable_only_by_their_owner(files):
    stored = private_files().save("rosters/a.csv", ContentFile(b"names"))
    assert mode(files / stored) == 0o600
    assert mode(files / "rosters") == 0o700
    assert mode(path_of("exports/b.csv").parent) == 0o700


def test_large_uploads_are_moved_not_copied(files, settings):
    (files / "incoming").mkdir(parents=True)
    settings.FILE_UPLOAD_TEMP_DIR = str(files / "incoming")
    upload = TemporaryUploadedFile("roster.csv", "text/csv", 5, None)
    upload.write(b"names")
    upload.seek(0)
    number = (files / upload.temporary_file_path()).stat().st_ino

    stored = files / private_files().save(new_name("rosters", ".csv"), upload)

    assert (stored.stat().st_ino, stored.read_bytes()) == (number, b"names")
    assert mode(stored) == 0o600
    assert list((files / "incoming").iterdir()) == []
    upload.close()


@pytest.mark.parametrize("name", ["../secrets.json", "/etc/passwd", "a/../../b"])
def test_names_outside_the_folder_are_refused(files, name):
    from django.core.exceptions import SuspiciousFileOperation

    with pytest.raises(SuspiciousFileOperation):
        path_of(name)
