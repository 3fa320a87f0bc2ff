"""Engineers edit the public address and contact of a school."""

from __future__ import annotations

import pytest
from django.urls import reverse

from accounts.models import AuditEntry, SchoolListing, User
from accounts.tests.logging_in import log_in

pytestmark = pytest.mark.django_db


def test_an_engineer_edits_the_public_contact_of_a_school(staff, client):
    engineer = User.objects.create_superuser("engineer@example.org", "x")
    log_in(client, engineer)
    address = reverse("admin:accounts_schoollisting_change", args=[staff.lincoln.pk])
    assert "contact_phone" in client.get(address).text
    listing = {
        "city": "Springfield",
        "contact_name": "School office",
        "contact_phone": "217 555 0134",
        "contact_email": "office@lincoln.example",
    }
    reply = client.post(address, listing)
    assert reply.status_code == 302, reply.text
    row = SchoolListing.objects.get(pk=staff.lincoln.pk)
    assert (row.contact_phone, row.search) == (
        "217 555 0134",
        " lincoln springfield",
    )
    entry = AuditEntry.objects.get(action="change school listing")
    assert entry.by == engineer.email
    assert entry.after["contact_email"] == "office@lincoln.example"
    refused = client.post(address, {**listing, "contact_email": "nobody"})
    assert "Enter a valid email address" in refused.text
    # Listings come and go with their schools.
    for act in ("add", f"{staff.lincoln.pk}/delete"):
        path = f"/engineers/accounts/schoollisting/{act}/"
        assert client.post(path, {"post": "yes"}).status_code == 403
