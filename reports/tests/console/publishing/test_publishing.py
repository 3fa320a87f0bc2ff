"""Publish results in the console: preview, embargo, the record and withdrawal."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from django.utils.timezone import localtime

from accounts.models import AuditEntry
from accounts.tests.logging_in import log_in
from reports.models import Publication, ResultsRollUp, SchoolRate
from survey.work import jobs

pytestmark = pytest.mark.django_db


@pytest.fixture
def state(client, staff):
    log_in(client, staff.state)
    return client


def results_of(administration):
    return reverse("results_page", args=[administration.pk])


def basis(client, administration):
    page = client.get(reverse("publishing", args=[administration.pk]))
    return page.context["form"]["basis"].value()


def post(client, administration, **data):
    return client.post(reverse("publishing", args=[administration.pk]), data)


class TestPublishing:
    def test_an_administrator_previews_publishes_and_withdraws(
        self, state, staff, fall, django_capture_on_commit_callbacks
    ):
        address = reverse("publishing", args=[fall.pk])
        results = state.get(results_of(fall))
        assert address in results.text
        text = state.get(address).text
        assert "2 schools have reached their threshold" in text
        preview = state.get(
            reverse("publishing_preview", args=[fall.pk]),
            {"school": staff.lincoln.pk},
        )
        assert "Nobody else can see this page" in preview.text
        assert not Publication.objects.exists()

        with django_capture_on_commit_callbacks():
            assert post(state, fall, basis=basis(state, fall)).status_code == 302
        publication = Publication.objects.get()
        assert Client().get(f"/results/{fall.pk}/").status_code == 404
        jobs.run(publication.job_id)
        assert Client().get(f"/results/{fall.pk}/").status_code == 200
        text = state.get(address).text
        assert f'href="/results/{fall.pk}/"' in text
        # An expert's word and number, for those who look for them.
        publication.refresh_from_db()
        before, _methods, methods = text.partition("Methods")
        assert publication.digest[:12] not in before and publication.digest in methods
        assert f'href="{results_of(fall)}#sharing"' in text
        ResultsRollUp.objects.update(shared_at=timezone.now())
        assert "#sharing" not in state.get(address).text

        withdrawal = reverse("publishing_withdraw", args=[fall.pk, publication.pk])
        assert "Within a minute" in state.get(withdrawal).text
        refused = state.post(withdrawal, {"because": ""})
        assert "Say why these are withdrawn." in refused.text
        state.post(withdrawal, {"because": "Wrong wave."})
        assert Client().get(f"/results/{fall.pk}/").status_code == 410
        assert "Wrong wave." in state.get(address).text
        assert state.get(withdrawal).status_code == 404
        actions = set(AuditEntry.objects.values_list("action", flat=True))
        assert {"publish results", "withdraw published results"} <= actions

    def test_the_preview_shows_what_is_published(self, state, staff, fall, publish):
        addresses = (
            ({}, f"/results/{fall.pk}/"),
            (
                {"school": staff.lincoln.pk},
                f"/results/{fall.pk}/schools/{staff.lincoln.pk}/",
            ),
        )
        preview = reverse("publishing_preview", args=[fall.pk])
        shown = [state.get(preview, query).context["page"] for query, _ in addresses]
        publish(fall)
        for page, (_, address) in zip(shown, addresses, strict=True):
            public = Client().get(address).context["page"]
            assert public.place.summary["rate"] == page.place.summary["rate"]
            assert public.place.answers == page.place.answers
            assert [part.sentence for part, _ in public.essentials] == [
                part.sentence for part, _ in page.essentials
            ]

    def test_the_preview_links_to_every_published_place_in_every_language(
        self, state, staff, fall
    ):
        page = state.get(reverse("publishing", args=[fall.pk])).text
        preview = reverse("publishing_preview", args=[fall.pk])
        for code, all_schools in (
            ("en", "All schools"),
            ("es", "Todas las escuelas"),
            ("ar", "جميع المدارس"),
        ):
            assert f'href="{preview}?language={code}"' in page
            text = state.get(preview, {"language": code}).text
            assert f"<bdi>{all_schools}</bdi></h1>" in text
            district = f"{preview}?district={staff.riverside.pk}&amp;language={code}"
            assert f'href="{district}"' in text
            school = f"{preview}?school={staff.lincoln.pk}&amp;language={code}"
            listed = state.get(
                preview, {"district": staff.riverside.pk, "language": code}
            )
            assert f'href="{school}"' in listed.text
            assert "Washington" not in listed.text
            shown = state.get(preview, {"school": staff.lincoln.pk, "language": code})
            assert f'href="{district}"' in shown.text
            # Nothing leads out of the preview to pages that do not exist yet.
            assert f"/results/{fall.pk}/schools/" not in shown.text
        assert "Escuela segura" in state.get(preview, {"language": "es"}).text

    def test_a_preview_finds_schools_by_their_names(self, state, staff, fall):
        preview = reverse("publishing_preview", args=[fall.pk])
        text = state.get(preview, {"q": "linc", "language": "es"}).text
        assert f"{preview}?school={staff.lincoln.pk}&amp;language=es" in text
        nothing = state.get(preview, {"q": "washington"}).text
        assert "No school with a report has this name" in nothing

    def test_a_preview_is_marked_and_kept_by_nobody(self, state, staff, fall):
        preview = reverse("publishing_preview", args=[fall.pk])
        for query in ({}, {"school": staff.lincoln.pk, "language": "ar"}):
            shown = state.get(preview, query)
            assert "<title>Preview: " in shown.text
            assert "Preview. Nobody else can see this page." in shown.text
            assert '<meta name="robots" content="noindex">' in shown.text
            assert shown.headers["Cache-Control"] == "private, no-store"
            assert "ETag" not in shown.headers
        assert Client().get(preview).status_code == 302

    @pytest.mark.parametrize(
        "query",
        [{"school": "x"}, {"school": "٣"}, {"district": "9" * 30}, {"school": "-1"}],
    )
    def test_addresses_of_nothing_have_no_preview(self, state, fall, query):
        preview = reverse("publishing_preview", args=[fall.pk])
        assert state.get(preview, query).status_code == 404

    def test_no_preview_of_a_school_without_a_report(self, state, staff, fall):
        preview = reverse("publishing_preview", args=[fall.pk])
        response = state.get(preview, {"school": staff.washington.pk})
        assert response.status_code == 404

    def test_figures_that_changed_since_the_page_are_refused(self, state, fall):
        refused = post(state, fall, basis="0" * 64)
        assert "have changed since the preview" in refused.text
        assert not Publication.objects.exists()

    def test_an_embargo_lies_ahead(self, state, fall):
        yesterday = localtime(timezone.now() - timedelta(days=1))
        refused = post(
            state,
            fall,
            basis=basis(state, fall),
            embargo_until=f"{yesterday:%Y-%m-%dT%H:%M}",
        )
        assert "This time is over" in refused.text
        refused = post(
            *(state, fall), basis=basis(state, fall), embargo_until="9999-12-31T23:59"
        )
        assert "too far away" in refused.text
        assert not Publication.objects.exists()
        tomorrow = localtime(timezone.now() + timedelta(days=1))
        post(
            state,
            fall,
            basis=basis(state, fall),
            embargo_until=f"{tomorrow:%Y-%m-%dT%H:%M}",
        )
        publication = Publication.objects.get()
        jobs.run(publication.job_id)
        assert "embargoed" in state.get(reverse("publishing", args=[fall.pk])).text
        assert Client().get(f"/results/{fall.pk}/").status_code == 404

    def test_what_is_open_cannot_be_published(self, state, fall):
        fall.closes_at = timezone.now() + timedelta(days=1)
        fall.save()
        fall.results_roll_up.shared_at = timezone.now()
        fall.results_roll_up.save()
        text = state.get(reverse("publishing", args=[fall.pk])).text
        assert "once the survey round has closed" in text
        assert "Publish for everybody" not in text
        preview = reverse("publishing_preview", args=[fall.pk])
        assert state.get(preview).status_code == 404

    def test_a_failed_publication_can_be_repeated(self, state, fall, staff):
        post(state, fall, basis=basis(state, fall))
        publication = Publication.objects.get()
        assert "already" in post(state, fall, basis=basis(state, fall) or "x").text
        publication.job.state = "failed"
        publication.job.ended_at = timezone.now()
        publication.job.save()
        post(state, fall, basis=basis(state, fall))
        jobs.run(Publication.objects.get().job_id)
        assert Publication.objects.get().published_at


class TestPermissions:
    def test_only_administrators_of_the_state_publish(
        self, client, staff, fall, publish
    ):
        publication = publish(fall)
        for user in (staff.dana, staff.analyst, staff.chen, staff.sam):
            log_in(client, user)
            for name, *args in (
                ("publishing",),
                ("publishing_preview",),
                ("publishing_withdraw", publication.pk),
            ):
                address = reverse(name, args=[fall.pk, *args])
                assert client.get(address).status_code == 404
                assert client.post(address, {"because": "x"}).status_code in (404, 405)
            results = client.get(reverse("results_page", args=[fall.pk]))
            assert "Publish results" not in results.text
        publication.refresh_from_db()
        assert publication.withdrawn_at is None


def test_where_nothing_can_be_shown_publishing_is_not_offered(state, fall):
    SchoolRate.objects.update(needed=10_000)
    page = state.get(reverse("publishing", args=[fall.pk]))
    assert "There is nothing to publish." in page.text
    assert "Publish for everybody" not in page.text
    preview = reverse("publishing_preview", args=[fall.pk])
    assert preview not in page.text
    assert state.get(preview).status_code == 404
