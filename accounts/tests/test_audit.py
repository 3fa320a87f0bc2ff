"""Entries are recorded with each change, and can't be changed."""

from __future__ import annotations

import pytest
from django.db import DatabaseError, IntegrityError, connection, transaction
from django.test import RequestFactory

from accounts import audit
from accounts.models import AuditEntry
from accounts.permissions import Permissions

pytestmark = pytest.mark.django_db


def test_an_entry_records_user_time_address_and_changes(staff):
    request = RequestFactory(REMOTE_ADDR="203.0.113.7").get("/")
    audit.record(
        "rename school",
        by=staff.dana,
        request=request,
        subject=staff.lincoln,
        school=staff.lincoln,
        before={"name": "Lincoln"},
        after={"name": "Lincoln High"},
    )
    [entry] = AuditEntry.objects.all()
    assert (entry.by, entry.user_id) == ("dana@example.org", staff.dana.pk)
    assert entry.address == "203.0.113.7"
    assert (entry.kind, entry.subject_id) == ("accounts.school", staff.lincoln.pk)
    assert (entry.subject, entry.before["name"]) == ("Lincoln", "Lincoln")
    assert entry.after == {"name": "Lincoln High"}
    assert (entry.district_id, entry.school_id) == (
        staff.riverside.pk,
        staff.lincoln.pk,
    )


@pytest.mark.parametrize(
    ("peer", "address"), [("", "203.0.113.7"), ("198.51.100.1", "198.51.100.1")]
)
def test_clients_cannot_forge_the_recorded_address(peer, address):
    """The header is trusted on nginx's socket only; elsewhere any client may set it."""
    claimed = {"X-Forwarded-For": "203.0.113.7"}
    request = RequestFactory(REMOTE_ADDR=peer).get("/", headers=claimed)
    assert audit.address_of(request) == address


def test_commands_are_recorded_by_name():
    audit.record("import roster", by="import_roster")
    [entry] = AuditEntry.objects.all()
    assert (entry.by, entry.user_id, entry.address) == ("import_roster", None, "")


def test_a_rolled_back_change_leaves_no_entry(staff):
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        audit.record("open administration", by=staff.dana)
        raise ZeroDivisionError
    assert not AuditEntry.objects.exists()


@pytest.mark.parametrize(
    "rewrite",
    [
        "UPDATE accounts_auditentry SET \"by\" = 'nobody'",
        "DELETE FROM accounts_auditentry",
        "TRUNCATE accounts_auditentry",
    ],
)
def test_entries_cannot_be_changed_even_in_sql(staff, rewrite):
    if rewrite.startswith("TRUNCATE") and connection.vendor == "sqlite":
        pytest.skip("SQLite has no TRUNCATE")
    audit.record("reissue code", by=staff.chen)
    with (
        pytest.raises((IntegrityError, DatabaseError), match="never changed"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(rewrite)
    [entry] = AuditEntry.objects.all()
    assert entry.by == "chen@example.org"


def test_without_the_trigger_entries_could_be_changed(staff):
    audit.record("reissue code", by=staff.chen)
    on = " ON accounts_auditentry" if connection.vendor == "postgresql" else ""
    name = "append_only" if on else "append_only_update"
    with connection.cursor() as cursor:
        cursor.execute(f"DROP TRIGGER {name}{on}")
    AuditEntry.objects.update(by="nobody")
    assert AuditEntry.objects.get().by == "nobody"


def test_districts_read_their_own_entries_and_the_state_reads_all(staff):
    audit.record("import roster", by=staff.chen, school=staff.lincoln)
    audit.record("import roster", by=staff.sam, school=staff.roosevelt)
    audit.record("open wave", by=staff.state)
    audit.record("rename district", by=staff.dana, district=staff.riverside)

    def read_by(user) -> set[str]:
        return {entry.by for entry in audit.entries_for(Permissions(user))}

    assert read_by(staff.dana) == {"chen@example.org", "dana@example.org"}
    assert len(audit.entries_for(Permissions(staff.state))) == 4
    for nobody in (staff.chen, staff.analyst, staff.sam):
        assert not audit.entries_for(Permissions(nobody)).exists()
