"""Exports whose files lie in object storage."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse

from accounts.models import AuditEntry
from accounts.tests.logging_in import log_in
from reports.models import Export
from reports.tests.console.exports.test_views import people, submit  # noqa: F401
from survey.tests.object_storage import object_storage
from survey.tests.test_bucket import use
from survey.work.requested_files import delete_file

pytestmark = pytest.mark.django_db


def downloads() -> int:
    return AuditEntry.objects.filter(action="download export").count()


def test_an_export_is_made_in_the_bucket_sent_by_a_signature_and_deleted(
    staff,
    fall,
    people,  # noqa: F811
    submit,  # noqa: F811
    client,
    settings,
    tmp_path,
):
    settings.FILES_ADDRESS = "/private-files/"
    with object_storage() as storage:
        use(storage, settings, tmp_path)
        submit(staff.analyst, fall)

        export = Export.objects.get()
        names = {getattr(export, field) for field in Export.FILE_NAMES}
        assert set(storage.names()) == names
        assert not [path for path in tmp_path.rglob("*") if path.is_file()]

        address = reverse("export_download", args=[export.pk])
        response = client.get(address)
        assert export.file_name in response["X-Accel-Redirect"]
        assert "X-Amz-Signature=" in response["X-Accel-Redirect"]
        assert downloads() == 1
        # Somebody else gets no signature, and leaves no entry.
        stranger = Client()
        log_in(stranger, staff.state)
        response = stranger.get(address)
        assert response.status_code == 404
        assert "X-Accel-Redirect" not in response
        assert downloads() == 1

        storage.process.kill()
        storage.process.wait()
        client.raise_request_exception = False
        response = client.get(address)
        assert response.status_code == 503
        assert "The storage of files does not answer" in response.content.decode()
        assert downloads() == 1
        # Its record says so; the file goes with the orphans.
        delete_file(export, by="delete_old_exports")
    assert Export.objects.get().deleted_at is not None
