from __future__ import annotations

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from reports.models import Export, PanelProject

pytestmark = pytest.mark.django_db


def create(staff, **fields):
    with transaction.atomic():
        return Export.objects.create(by=staff.dana, format="wide", **fields)


def test_names_are_exported_for_a_reason(staff):
    create(staff, identities=True, reason="by order")
    with pytest.raises(IntegrityError, match="names_are_exported_for_a_reason"):
        create(staff, identities=True)


def test_a_file_has_a_checksum_and_an_expiry_date(staff):
    now = timezone.now()
    whole = {
        "file_name": "exports/x.csv",
        "sha256": "0" * 64,
        "made_at": now,
        "expires_at": now,
    }
    create(staff, **whole)
    for missing in ("sha256", "made_at", "expires_at"):
        blank = {**whole, missing: "" if missing == "sha256" else None}
        with pytest.raises(IntegrityError, match="checksum_and_an_end"):
            create(staff, **blank)
    with pytest.raises(IntegrityError, match="checksum_and_an_end"):
        create(staff, **whole, deleted_at=now)


def test_status_of_an_export_without_a_job(staff):
    assert create(staff).status == "not finished"
    assert create(staff, deleted_at=timezone.now()).status == "deleted"


def test_a_panel_has_no_names(staff):
    create(staff, is_panel=True)
    with pytest.raises(IntegrityError, match="a_panel_has_no_names"):
        create(staff, is_panel=True, identities=True, reason="by order")


def test_only_a_panel_has_a_project(staff):
    project = PanelProject.objects.create(name="Study", by=staff.dana)
    create(staff, is_panel=True, project=project)
    with pytest.raises(
        IntegrityError, match="only_a_panel_or_a_key_table_has_a_project"
    ):
        create(staff, project=project)


def test_project_names_of_a_user_are_unique(staff):
    first = PanelProject.objects.create(name="Study", by=staff.dana)
    second = PanelProject.objects.create(name="Study", by=staff.chen)
    assert bytes(first.key) != bytes(second.key)
    with pytest.raises(IntegrityError, match="one_panel_project_per_name"):
        PanelProject.objects.create(name="STUDY", by=staff.dana)
