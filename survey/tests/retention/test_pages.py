"""The pages of retention: periods, holds, counting and destroying."""

from __future__ import annotations

import pytest
from django.urls import reverse
from django.utils import timezone

from accounts.models import AuditEntry, PlaceSettings
from accounts.tests.logging_in import log_in
from survey.models import (
    Destruction,
    DestructionCertificate,
    Identity,
    Job,
    LegalHold,
    Retention,
)
from survey.people.retention.hold_changes import lift_hold
from survey.people.retention.orders import order_destruction
from survey.tests.erasing.test_pages import text_of
from survey.tests.retention.conftest import (
    NAMES,
    close,
    destroy,
    hold,
    keep_for,
    run,
)
from survey.work import jobs

pytestmark = pytest.mark.django_db


def address(administration, page="retention") -> str:
    return f"/console/administrations/{administration.pk}/{page}/"


def test_the_state_counts_and_destroys_names(client, staff, filled, maya):
    log_in(client, staff.state)
    page = client.get(address(filled))
    assert "5 days after the closing (set here)" in text_of(page)
    assert "Administrators were warned on" in text_of(page)
    destroys = address(filled, "destroy/identities")
    client.post(destroys, {"count": "1"})
    jobs.run(Job.objects.get(kind="retention.count").pk)
    counted = text_of(client.get(destroys))
    assert "What would be destroyed" in counted and "Name and contact data 2" in counted
    assert "Zaragoza" not in counted

    wrong = client.post(destroys, {"reason": "Contract ended", "confirmed": "x"})
    assert f"type its short name: {filled.name}" in text_of(wrong)
    assert Identity.objects.filter(administration=filled).count() == 2
    client.post(destroys, {"reason": "Contract ended", "confirmed": filled.name})
    destruction = Destruction.objects.get(state="running")
    assert (destruction.by, destruction.reason) == (staff.state, "Contract ended")
    run(destruction)
    done = text_of(client.get(destroys))
    assert "Name and contact data 2" in done and "Destroyed on" in done
    assert destruction.tables["survey_identity"]["digest"] in done
    listed = text_of(client.get("/console/settings/state/retention/"))
    assert filled.title in listed and "Names and access codes" in listed
    workspace = text_of(client.get(f"/console/administrations/{filled.pk}/"))
    assert "Destroyed on" in workspace
    people = f"/console/administrations/{filled.pk}/people/"
    assert client.get(f"{people}{maya.pk}/").status_code == 404
    listed = text_of(client.get(f"{people}?school={staff.lincoln.pk}"))
    assert "were destroyed" in listed and "No name" not in listed


@pytest.mark.parametrize("kind", ["identities", "answers"])
def test_the_page_of_what_was_destroyed_has_its_certificate(
    client, staff, filled, kind
):
    destroys = address(filled, f"destroy/{kind}")
    log_in(client, staff.state)
    assert "Download PDF" not in text_of(client.get(destroys))
    destroy(filled, kind)
    certificate = DestructionCertificate.objects.get()
    page = client.get(destroys)
    assert str(certificate.number) in text_of(page)
    for suffix in ("json", "pdf"):
        link = reverse(f"certificate_{suffix}", args=[certificate.pk])
        assert link in page.content.decode()
        assert client.get(link).status_code == 200
    # The other kind's page has none.
    second = "answers" if kind == "identities" else "identities"
    page = text_of(client.get(address(filled, f"destroy/{second}")))
    assert "Download PDF" not in page


def test_the_page_says_what_an_ordered_destruction_waits_for(client, staff, filled):
    order_destruction(filled, NAMES)
    log_in(client, staff.state)
    destroys = address(filled, "destroy/identities")
    assert "This is being destroyed" in text_of(client.get(destroys))
    placed = hold(filled, staff)
    assert "held by Office of the general" in text_of(client.get(destroys))
    lift_hold(placed, reason="Settled", by=staff.state)
    assert "A hold was lifted" in text_of(client.get(destroys))


def test_without_a_warning_nothing_can_be_destroyed_by_hand(client, staff, filled):
    keep_for(filled, None, identities_days=5)
    log_in(client, staff.state)
    destroys = address(filled, "destroy/identities")
    page = text_of(client.get(destroys))
    assert "have not been warned yet" in page and "can’t be undone" not in page
    data = {"reason": "Contract ended", "confirmed": filled.name}
    assert client.post(destroys, data).status_code == 409
    assert not Destruction.objects.exists()


def test_periods_of_a_round(client, staff, administration):
    PlaceSettings.objects.create(identities_days=90, answers_least_days=365)
    close(administration)
    log_in(client, staff.state)
    page = text_of(client.get(address(administration)))
    assert "90 days after the closing (from the state)" in page
    assert "They are kept: no period was set." in page
    wrong = client.post(address(administration), {"answers_days": "10"})
    assert "The state requires at least 365 days." in text_of(wrong)
    client.post(address(administration), {"answers_days": "400"})
    assert Retention.objects.get().answers_days == 400


def test_a_district_reads_the_dates_of_the_states_round_and_holds_it(
    client, staff, administration
):
    close(administration)
    keep_for(administration, timezone.now(), identities_days=60)
    log_in(client, staff.dana)
    page = client.get(address(administration))
    assert "60 days after the closing" in text_of(page)
    assert "Save periods" not in text_of(page)
    assert client.post(address(administration), {}).status_code == 404
    destroys = address(administration, "destroy/identities")
    assert client.get(destroys).status_code == 404
    workspace = text_of(client.get(f"/console/administrations/{administration.pk}/"))
    assert "60 days after the closing" in workspace
    places = address(administration, "hold")
    client.post(
        places,
        {
            "place": str(staff.riverside.pk),
            "holder": "Counsel of Riverside",
            "reason": "Roe v. Riverside",
        },
    )
    placed = LegalHold.objects.get()
    assert (placed.district, placed.placed_by) == (staff.riverside, staff.dana)
    held = text_of(client.get(address(administration)))
    assert "Counsel of Riverside" in held
    assert "nobody of the district that holds them is erased" in held
    lifts = address(administration, f"holds/{placed.pk}/lift")
    assert "Say why it is lifted." in text_of(client.post(lifts, {}))
    client.post(lifts, {"reason": "Settled"})
    placed.refresh_from_db()
    assert placed.lifted_by == staff.dana
    assert {"place a hold", "lift a hold"} <= set(
        AuditEntry.objects.values_list("action", flat=True)
    )


def test_a_district_does_not_lift_the_states_hold(client, staff, administration):
    placed = hold(administration, staff)
    log_in(client, staff.dana)
    held = text_of(client.get(address(administration)))
    assert "on hold" in held and "nobody of it is erased" in held
    lifts = address(administration, f"holds/{placed.pk}/lift")
    assert client.post(lifts, {"reason": "Settled"}).status_code == 404
    assert LegalHold.objects.current().exists()


@pytest.mark.parametrize("name", ["chen", "analyst", "sam"])
def test_others_have_no_such_page(client, staff, filled, name):
    log_in(client, getattr(staff, name))
    for page in ("retention", "hold", "destroy/answers"):
        assert client.get(address(filled, page)).status_code in (403, 404)
    workspace = client.get(f"/console/administrations/{filled.pk}/")
    assert "Data retention" not in text_of(workspace)


def test_the_settings_of_the_state_and_a_district(client, staff):
    log_in(client, staff.state)
    state = "/console/settings/state/retention/"
    data = {"answers_days": "400", "answers_least_days": "365"}
    wrong = {**data, "answers_most_days": "100"}
    assert "shorter than the shortest" in text_of(client.post(state, wrong))
    client.post(state, data)
    row = PlaceSettings.objects.get()
    assert (row.answers_days, row.answers_least_days) == (400, 365)
    log_in(client, staff.dana)
    assert client.get(state).status_code == 404
    settings = f"/console/settings/districts/{staff.riverside.pk}/retention/"
    refused = text_of(client.post(settings, {"answers_days": "30"}))
    assert "The state requires at least 365 days." in refused
    client.post(settings, {"answers_days": "500"})
    assert PlaceSettings.objects.get(district=staff.riverside).answers_days == 500
    assert "Nothing has been destroyed yet." in text_of(client.get(settings))


def test_a_district_sees_its_own_destructions_alone(client, staff, filled):
    destroy(filled, NAMES)
    log_in(client, staff.dana)
    settings = f"/console/settings/districts/{staff.riverside.pk}/retention/"
    assert filled.title not in text_of(client.get(settings))
    filled.district = staff.riverside
    filled.save(update_fields=["district"])
    assert filled.title in text_of(client.get(settings))
