import pytest
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpResponse
from django.test import Client
from django.urls import path

from accounts import access
from accounts.access import ANYONE, SIGNED_IN, AccessMiddleware, needs, under
from accounts.models import AuditEntry, District, School, User
from accounts.permissions import Capability
from accounts.tests.logging_in import log_in

pytestmark = pytest.mark.django_db


def page(request):
    return HttpResponse("seen")


def asked(rf, view, user):
    request = rf.get("/console/somewhere/")
    request.user, request.session = user, {}
    middleware = AccessMiddleware(lambda request: view(request))
    refused = []

    def answer(request):
        refused.append(middleware.process_view(request, view, (), {}))
        return refused[0] or view(request)

    middleware.get_response = answer
    return middleware(request)


def test_staff_log_in_with_password_and_second_factor(staff, client: Client):
    response = log_in(client, staff.dana).get("/console/")

    assert response.status_code == 200
    assert "district administrator, Riverside" in response.content.decode()


def test_anonymous_users_are_sent_to_the_login_page(staff, client):
    response = client.get("/console/?q=1")

    assert response.status_code == 302
    assert response["Location"] == "/console/account/login/?next=/console/%3Fq%3D1"


def test_a_role_that_sees_identities_sets_up_a_second_factor_first(staff, client):
    response = log_in(client, staff.chen, second_factor=False).get("/console/")

    assert response["Location"].startswith("/console/second-factor/")


def test_dismissed_staff_get_404(staff, client):
    staff.dana.memberships.all().delete()

    assert log_in(client, staff.dana).get("/console/").status_code == 404


def test_a_view_without_a_rule_raises_an_error(staff, rf):
    with pytest.raises(ImproperlyConfigured, match="has no rule"):
        asked(rf, lambda request: page(request), staff.state)


def test_a_page_is_404_without_its_capability(staff, rf, monkeypatch):
    from django.http import Http404

    monkeypatch.setattr("accounts.access.has_second_factor", lambda request: True)
    answers = needs(Capability.SEE_RESPONSES)(lambda request: page(request))

    assert asked(rf, answers, staff.analyst).content == b"seen"
    with pytest.raises(Http404):
        asked(rf, answers, staff.chen)


def test_the_admin_is_404_for_other_staff(staff, client):
    assert log_in(client, staff.state).get("/engineers/").status_code == 404


def test_changes_by_engineers_are_recorded(staff, client):
    engineer = User.objects.create_superuser("e@example.org", "calm-harbour-42")
    log_in(client, engineer)
    schools, districts = (
        f"/engineers/accounts/{model}/" for model in ("school", "district")
    )
    hill = {"code": "hill", "name": "Hill", "district": staff.riverside.pk}
    client.post(f"{schools}add/", hill)
    school = School.objects.get(code="hill")
    # Its people are the district's: it stays there.
    moved = {**hill, "name": "Hilltop", "district": staff.lakeside.pk}
    client.post(f"{schools}{school.pk}/change/", moved)
    school.refresh_from_db()
    assert (school.name, school.district) == ("Hilltop", staff.riverside)
    client.post(
        schools,
        {"action": "delete_selected", "_selected_action": school.pk, "post": "yes"},
    )
    client.post(f"{districts}add/", {"code": "bay", "name": "Bay"})
    bay = District.objects.get(code="bay")
    client.post(f"{districts}{bay.pk}/delete/", {"post": "yes"})

    assert not School.objects.filter(pk=school.pk).exists()
    assert not District.objects.filter(pk=bay.pk).exists()
    entries = AuditEntry.objects.filter(by="e@example.org").order_by("pk")
    assert [(entry.action, entry.subject) for entry in entries] == [
        ("add school", "Hill"),
        ("change school", "Hilltop"),
        ("delete school", "Hilltop"),
        ("add district", "Bay"),
        ("delete district", "Bay"),
    ]
    assert (entries[1].before, entries[1].after) == (
        {"name": "Hill"},
        {"name": "Hilltop"},
    )


def test_personal_pages_are_not_cached_by_browsers(staff, client):
    log_in(client, staff.dana)
    for address in ("staff/", "audit/", "audit/entries.csv", "me/", "rosters/"):
        response = client.get(f"/console/{address}", follow=True)
        assert response.status_code == 200, address
        assert "no-store" in response["Cache-Control"], address


def test_an_engineer_needs_a_second_factor(client):
    engineer = User.objects.create_superuser("e@example.org", "calm-harbour-42")

    response = log_in(client, engineer, second_factor=False).get("/engineers/")
    both = log_in(client, engineer).get("/engineers/")

    assert response["Location"].startswith("/console/second-factor/")
    assert both.status_code == 200


def test_a_demonstration_lets_staff_in_by_password_alone(staff, client, settings):
    log_in(client, staff.chen, second_factor=False)
    settings.SECOND_FACTOR_REQUIRED = False
    # The twin: anywhere else the switch does nothing.
    assert client.get("/console/").status_code == 302

    settings.EMBEDDED = True
    assert client.get("/console/").status_code == 200
    assert client.get("/engineers/").status_code == 404


def test_all_routes_of_a_package_share_one_rule():
    class Site:
        def page(self, request):
            return HttpResponse()

    [route] = under(ANYONE, [path("a/", Site().page)])

    assert route.callback.access_rule is ANYONE
    assert under(SIGNED_IN, [route])[0].callback.access_rule is ANYONE


def test_a_respondents_login_leaves_the_consoles_session_alone(staff, client):
    log_in(client, staff.dana)
    client.cookies["sessionid"] = "a respondent's"

    response = client.get("/console/")

    assert response.status_code == 200
    assert "sessionid" not in response.cookies


def test_a_staff_session_does_not_open_a_survey(staff, client):
    log_in(client, staff.dana)
    mine = client.cookies.pop("staff_sessionid").value
    client.cookies["sessionid"] = mine

    assert client.get("/console/").status_code == 302


def test_pages_of_staff_take_forms_and_no_other_methods(staff, client, monkeypatch):
    log_in(client, staff.dana)

    refused = client.put("/console/staff/invite/")

    assert refused.status_code == 405
    assert refused["Allow"] == "GET, HEAD, POST"
    # Users whom the rule refuses are not told which methods there are.
    assert Client().put("/console/staff/invite/").status_code == 302
    # Without the refusal, a view would take it.
    monkeypatch.setattr(access, "METHODS", (*access.METHODS, "PUT"))
    assert client.put("/console/staff/invite/").status_code == 200
