"""Links of an administration to its other pages."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts.permissions import Capability, Permissions
from accounts.tests.conftest import staff  # noqa: F401
from accounts.tests.logging_in import log_in
from survey.models import Administration, RosterUpload
from survey.tests.conftest import enrol

pytestmark = pytest.mark.django_db


def links_from(user, address):
    return log_in(Client(), user).get(address).content.decode()


def test_an_administration_links_to_its_pages(staff, administration):  # noqa: F811
    pk = administration.pk
    pages = {
        f"{reverse('rates_board')}?administration={pk}": "SEE_RATES",
        reverse("people_list", args=[pk]): "SEE_IDENTITIES",
        reverse("cards_list", args=[pk]): "SEE_IDENTITIES",
        reverse("roster_upload", args=[pk]): "MANAGE_ROSTERS",
        f"{reverse('roster_list')}?administration={pk}": "MANAGE_ROSTERS",
        f"{reverse('export_new')}?administrations={pk}": "SEE_RESPONSES",
    }
    for user in (staff.dana, staff.chen, staff.analyst):
        text = links_from(user, reverse("administration_detail", args=[pk]))
        permissions = Permissions(user)
        for address, needed in pages.items():
            has = permissions.has(Capability[needed])
            assert (f'href="{address}"' in text) == has, (user, address)


def test_a_closed_administration_links_to_its_results(staff, administration):  # noqa: F811
    address = reverse("administration_detail", args=[administration.pk])
    link = f'href="{reverse("results_page", args=[administration.pk])}"'
    assert link not in links_from(staff.analyst, address)
    Administration.objects.filter(pk=administration.pk).update(
        closes_at=timezone.now() - timedelta(hours=1)
    )
    assert link in links_from(staff.analyst, address)
    assert link not in links_from(staff.chen, address)


def test_the_button_of_an_administration_leads_to_the_next_step(
    staff,  # noqa: F811
    administration,
):
    address = reverse("administration_detail", args=[administration.pk])

    def button(user) -> str:
        [label] = re.findall(
            'class="button primary" href="[^"]+">([^<]+)<', links_from(user, address)
        )
        return label

    def change(**fields) -> None:
        Administration.objects.filter(pk=administration.pk).update(**fields)

    assert button(staff.dana) == "Upload a roster"
    # An analyst uploads nothing.
    assert button(staff.analyst) == "See response rates"
    enrol(administration, staff.lincoln)
    assert button(staff.dana) == "See response rates"
    change(opens_at=timezone.now() + timedelta(days=1))
    assert button(staff.dana) == "Print login cards"
    change(
        opens_at=timezone.now() - timedelta(days=2),
        closes_at=timezone.now() - timedelta(days=1),
    )
    # Nobody has answered.
    assert button(staff.dana) == "See response rates"
    change(closes_at=timezone.now() + timedelta(days=9), denominator="count")
    assert button(staff.dana) == "Hand out school links"


def test_rosters_can_be_filtered_by_administration(staff, administration):  # noqa: F811
    RosterUpload.objects.create(
        administration=administration, by=staff.dana, name="mine.csv", size=1,
        district=staff.riverside,
    )  # fmt: skip
    address = reverse("roster_list")
    assert "mine.csv" in links_from(staff.dana, address)
    of_it = links_from(staff.dana, f"{address}?administration={administration.pk}")
    assert "mine.csv" in of_it and "Show all rosters" in of_it
    of_another = links_from(staff.dana, f"{address}?administration=999")
    assert "mine.csv" not in of_another and "No roster has been uploaded" in of_another
    # An invalid key is ignored.
    assert "mine.csv" in links_from(staff.dana, f"{address}?administration=x%00")
