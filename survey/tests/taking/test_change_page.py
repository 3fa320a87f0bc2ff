"""POST /take/pages/<n>/: ordinary, invalid and hostile requests."""

from __future__ import annotations

import json

import pytest
from django.db import InterfaceError, OperationalError, connection
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from survey.models import Administration, Respondent, Response
from survey.taking import page_save, unavailable
from survey.taking.refusals import refusal
from survey.tests.conftest import FIRST_PAGE, SECOND_PAGE, Browser, code_of

pytestmark = pytest.mark.django_db


def answers_of(respondent, published):
    names = {
        item["id"]: name
        for name, item in json.loads(published.definition)["items"].items()
    }
    rows = Response.objects.filter(respondent_id=respondent.pk)
    return {
        names[item]: (state, value)
        for item, state, value in rows.values_list("item_id", "state", "value")
    }


@pytest.fixture
def at_page_one(browser, maya):
    browser.log_in(maya)
    browser.base = browser.bootstrap()["revision"]
    return browser


def test_a_page_is_saved_and_the_reply_names_its_revision(
    at_page_one, maya, administration
):
    base = at_page_one.base
    response = at_page_one.save(1, FIRST_PAGE, base)

    assert response.status_code == 200
    reply = response.json()
    assert (reply["saved"], reply["revision"]) == (5, base)
    assert answers_of(maya, administration.published) == {
        "safe": ("a", "3"),
        "subjects": ("a", "art sport"),
        "age": ("a", "12"),
        "why_art": ("a", "colours"),
        "comment": ("s", None),
    }


def test_sending_a_page_again_gives_the_same_reply(at_page_one):
    first = at_page_one.save(1, FIRST_PAGE, at_page_one.base)
    assert at_page_one.save(1, FIRST_PAGE, at_page_one.base).json() == first.json()
    assert Response.objects.count() == 5


def test_required_never_refuses_a_save(at_page_one, maya, administration):
    blank = dict.fromkeys(FIRST_PAGE)
    assert at_page_one.save(1, blank, at_page_one.base).status_code == 200
    states = answers_of(maya, administration.published)
    assert states["safe"] == ("s", None)


def test_an_irrelevant_item_is_stored_as_hidden_not_skipped(
    at_page_one, maya, administration
):
    given = {**FIRST_PAGE, "subjects": ["sport"], "why_art": "left over"}
    assert at_page_one.save(1, given, at_page_one.base).status_code == 200
    states = answers_of(maya, administration.published)
    assert states["why_art"] == ("h", None)
    assert states["comment"] == ("s", None)


def test_a_rule_that_reads_another_page_never_refuses_a_save(
    at_page_one, maya, administration
):
    """`teen` depends on `age`, whose page may arrive later."""
    given = {**SECOND_PAGE, "teen": "2"}
    assert at_page_one.save(2, given, at_page_one.base).status_code == 200
    assert answers_of(maya, administration.published)["teen"] == ("a", "2")


def test_pages_may_arrive_in_any_order(at_page_one, maya, administration):
    base = at_page_one.base
    assert at_page_one.save(2, SECOND_PAGE, base + 1).status_code == 200
    assert at_page_one.save(1, FIRST_PAGE, base).status_code == 200
    assert len(answers_of(maya, administration.published)) == 9


def test_an_invalid_answer_is_named_and_nothing_is_saved(at_page_one):
    invalid = [
        ("safe", "4", "not_an_option"),
        ("safe", 3, "not_text"),
        ("safe", ["3"], "not_text"),
        ("safe", {"a": 1}, "not_text"),
        ("safe", True, "not_text"),
        ("subjects", "art", "not_text"),
        ("subjects", ["art", "art"], "not_an_option"),
        ("subjects", ["art sport"], "not_an_option"),
        ("subjects", ["art", 3], "not_text"),
        ("subjects", [["art"]], "not_text"),
        ("age", "twelve", "not_a_number"),
        ("age", "12.5", "not_whole"),
        ("age", "1e3", "not_a_number"),
        ("age", "١٢", "not_a_number"),
        ("age", "9" * 400, "not_a_number"),
        ("age", "12\n", "not_a_number"),
        ("age", "99", "constraint"),
        ("comment", "x" * 5001, "too_long"),
        ("comment", "a\0b", "not_text"),
        ("comment", "\ud800", "not_text"),
        ("comment", 1.5, "not_text"),
    ]
    for name, value, reason in invalid:
        response = at_page_one.save(1, {**FIRST_PAGE, name: value}, at_page_one.base)
        assert response.status_code == 422, (name, value)
        assert response.json() == refusal("answers", items={name: reason}), value
    assert Response.objects.count() == 0


def test_dates_ranges_and_acknowledgements_are_checked(at_page_one):
    invalid = [
        ("born", "2015-02-29", "not_a_date"),
        ("born", "20150228", "not_a_date"),
        ("born", "2015-02-28T10:00", "not_a_date"),
        ("born", "0015-02-28", "year_incomplete"),
        ("bus", "61", "out_of_range"),
        ("bus", "-5", "out_of_range"),
        ("bus", "7", "out_of_range"),
        ("bus", "NaN", "not_a_number"),
        ("promise", "yes", "not_an_option"),
    ]
    for name, value, reason in invalid:
        response = at_page_one.save(2, {**SECOND_PAGE, name: value}, at_page_one.base)
        assert response.json() == refusal("answers", items={name: reason}), value


def test_a_save_names_no_item_of_another_page(at_page_one):
    given = {**FIRST_PAGE, "welcome": "x", "nowhere": None}
    response = at_page_one.save(1, given, at_page_one.base)
    assert response.json()["items"] == {
        "welcome": "unknown_item",
        "nowhere": "unknown_item",
    }


def test_an_item_that_is_absent_gets_no_row_and_keeps_its_row(at_page_one):
    base = at_page_one.base
    assert at_page_one.save(1, {"age": "12"}, base).json()["saved"] == 1
    assert [row.value for row in Response.objects.all()] == ["12"]
    assert at_page_one.save(1, {"safe": "3"}, base + 1).status_code == 200
    assert {row.value for row in Response.objects.all()} == {"12", "3"}


def save_as_tab(browser, n, answers):
    """Save with what the page that was just loaded has shown, as a tab does."""
    shell = browser.bootstrap()
    revision, seen = shell["revision"], shell["seen"][n - 1]
    body = {"revision": revision, "seen": seen, "answers": answers}
    body["shown"] = shell["shown"][n - 1]
    return browser.send(n, json.dumps(body))


def test_two_devices_that_answered_different_questions_leave_no_dead_end(
    at_page_one, maya
):
    """The rows of a page may have several revisions; a third device saw them all."""
    phone = Browser().log_in(maya)
    first, second = at_page_one.bootstrap(), phone.bootstrap()
    for device, shell, answers in (
        (at_page_one, first, {"age": "12"}),
        (phone, second, {"comment": "from the phone"}),
    ):
        revision = shell["revision"]
        body = {"revision": revision, "seen": 0, "answers": answers}
        assert device.send(1, json.dumps(body)).status_code == 200
    assert len(set(Response.objects.values_list("revision", flat=True))) == 2
    tablet = Browser().log_in(maya)
    assert tablet.bootstrap()["shown"][0] == [first["revision"], second["revision"]]
    everything = {**FIRST_PAGE, "comment": "from the tablet"}
    assert save_as_tab(tablet, 1, everything).status_code == 200
    values = set(Response.objects.values_list("value", flat=True))
    assert {"from the tablet", "12"} <= values


def test_ten_thousand_unknown_items_get_a_short_reply(at_page_one):
    given = {**FIRST_PAGE, **{f"k{n}": "x" for n in range(10_000)}}
    response = at_page_one.save(1, given, at_page_one.base)
    assert response.status_code == 422
    assert len(response.content) < 5000


def test_a_body_that_is_not_a_save_is_refused(at_page_one):
    bodies = [
        b"{",
        b"null",
        b"[]",
        b'"x"',
        b"\xff\xfe",
        b'{"revision": 1}',
        b'{"revision": 1, "answers": []}',
        b'{"revision": 1, "answers": {}, "more": 1}',
        b'{"revision": NaN, "answers": {}}',
        b'{"revision": 1e400, "answers": {}}',
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b'{"revision": ' + b"9" * 5000 + b', "answers": {}}',
    ]
    for body in bodies:
        assert at_page_one.send(1, body).status_code == 422, body[:20]


def refused_for_its_revision(browser, **sent):
    body = {"revision": browser.base, "answers": FIRST_PAGE, **sent}
    response = browser.send(1, json.dumps(body))
    return (response.status_code, response.json().get("error")) == (422, "revision")


def test_an_implausible_revision_is_refused(at_page_one):
    for revision in (None, True, "1", 1.5, 0, -1, 2**63, 2**62, [], {}):
        assert refused_for_its_revision(at_page_one, revision=revision), revision


def test_a_body_of_a_megabyte_is_refused_unread(at_page_one):
    comment = {**FIRST_PAGE, "comment": "x" * 1_000_000}
    assert at_page_one.save(1, comment, at_page_one.base).status_code == 413


def test_an_implausible_seen_is_refused(at_page_one):
    for number in (None, True, "1", 1.5, -1, 2**63, [], {}):
        assert refused_for_its_revision(at_page_one, seen=number), number


def test_an_implausible_list_of_shown_revisions_is_refused(at_page_one):
    lists = (None, 1, {}, "12", [None], [True], ["1"], [1.5], [-1], [2**63], [[1]])
    for shown in lists:
        assert refused_for_its_revision(at_page_one, shown=shown), shown


def test_a_list_of_shown_revisions_has_a_limit(at_page_one):
    for count, status in ((1001, 422), (0, 200), (1000, 200)):
        shown = list(range(count))
        body = {"revision": at_page_one.base, "answers": FIRST_PAGE, "shown": shown}
        assert at_page_one.send(1, json.dumps(body)).status_code == status, count


def test_an_old_open_tab_does_not_undo_a_newer_tabs_save(browser, maya):
    """The phone logged in before the laptop loaded, and continues."""
    Administration.objects.update(replays_answers=True)
    phone = Browser().log_in(maya)
    phone_base = phone.bootstrap()["revision"]
    laptop = browser.log_in(maya).bootstrap()
    assert phone.save(1, FIRST_PAGE, phone_base).status_code == 200

    def from_laptop(shell):
        body = {"revision": shell["revision"], "seen": shell["seen"][0]}
        body["answers"] = dict.fromkeys(FIRST_PAGE)
        return browser.send(1, json.dumps(body))

    response = from_laptop(laptop)
    assert (response.status_code, response.json()["error"]) == (409, "superseded")
    assert browser.bootstrap()["answers"]["age"] == "12"
    # After renewing its data, it may save.
    assert from_laptop(browser.bootstrap()).status_code == 200


def test_a_page_that_arrives_late_does_not_count_as_seen(browser, maya):
    """The phone's first page arrives after its second is saved."""
    Administration.objects.update(replays_answers=True)
    phone = Browser().log_in(maya)
    base = phone.bootstrap()["revision"]
    assert phone.save(2, SECOND_PAGE, base + 1).status_code == 200
    laptop = browser.log_in(maya).bootstrap()
    assert phone.save(1, FIRST_PAGE, base).status_code == 200

    body = {"revision": laptop["revision"], "seen": laptop["seen"][0]}
    body["answers"] = dict.fromkeys(FIRST_PAGE)
    assert laptop["seen"] == [0, base + 1, 0]
    assert browser.send(1, json.dumps(body)).status_code == 409
    assert browser.bootstrap()["answers"]["age"] == "12"


def test_a_page_that_does_not_exist_is_not_found(at_page_one):
    for n in (0, 4, 10**9):
        assert at_page_one.save(n, {}, at_page_one.base).status_code == 404, n


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(exclude_categories=()), max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=12,
)


@settings(
    max_examples=80,
    suppress_health_check=[
        HealthCheck.function_scoped_fixture,
        HealthCheck.too_slow,
    ],
)
@given(
    answers=st.dictionaries(st.sampled_from(sorted(FIRST_PAGE)), json_values),
    revision=json_values,
    whole=json_values,
)
def test_no_json_a_client_sends_is_a_server_error(
    at_page_one, answers, revision, whole
):
    complete = {**FIRST_PAGE, **answers}
    assert at_page_one.save(1, complete, at_page_one.base).status_code in (
        200,
        409,
        422,
    )
    assert at_page_one.save(1, FIRST_PAGE, revision).status_code < 500
    assert at_page_one.send(1, json.dumps(whole)).status_code == 422


@settings(
    max_examples=60,
    suppress_health_check=[
        HealthCheck.function_scoped_fixture,
        HealthCheck.too_slow,
    ],
)
@given(st.binary(min_size=1, max_size=200))
def test_no_bytes_a_client_sends_are_a_server_error(at_page_one, body):
    assert at_page_one.send(1, body).status_code == 422


# Origin, session and respondent


def test_a_page_of_another_site_cannot_save(at_page_one):
    foreign = [
        {"Origin": "https://evil.example"},
        {"Origin": ""},
        {"Origin": "null"},
        {"Origin": "http://testserver.evil.example"},
        {"Sec-Fetch-Site": "cross-site"},
    ]
    body = json.dumps({"revision": at_page_one.base, "answers": FIRST_PAGE})
    for headers in foreign:
        response = at_page_one.send(1, body, **headers)
        assert response.status_code == 403, headers
        assert response.json()["error"] == "origin"
    assert Response.objects.count() == 0


def test_a_form_cannot_save(at_page_one):
    response = at_page_one.post(
        "/take/pages/1/",
        {"revision": "1"},
        headers={"Origin": "http://testserver", "X-Groundswell-Respondent": "x"},
    )
    assert response.status_code == 415


def test_a_save_without_a_session_is_401(browser, maya):
    response = browser.save(1, FIRST_PAGE, 5, tag="anything")
    assert (response.status_code, response.json()["error"]) == (401, "session")


def test_a_waiting_page_is_never_saved_for_another_respondent(browser, maya, noor):
    """Noor logs in while Maya's tab is open in the same browser."""
    browser.log_in(maya)
    mine = browser.bootstrap()
    browser.log_in(noor)

    response = browser.save(1, FIRST_PAGE, mine["revision"], tag=mine["tag"])

    assert (response.status_code, response.json()["error"]) == (403, "person")
    assert Response.objects.count() == 0


def test_without_the_tag_check_another_respondent_would_get_the_page(
    browser, maya, noor
):
    """The session alone would save Maya's page for Noor."""
    browser.log_in(maya)
    mine = browser.bootstrap()
    browser.log_in(noor)
    browser.save(1, FIRST_PAGE, mine["revision"], tag=browser.bootstrap()["tag"])
    assert set(Response.objects.values_list("respondent_id", flat=True)) == {noor.pk}


def test_only_post_requests_save(at_page_one):
    for method in ("get", "put", "delete", "patch"):
        assert getattr(at_page_one, method)("/take/pages/1/").status_code == 405


# Concurrent changes


def test_a_newer_device_wins_and_the_older_gets_superseded(browser, maya):
    browser.log_in(maya)
    old = browser.bootstrap()["revision"]
    phone = Browser().log_in(maya)
    new = phone.bootstrap()["revision"]
    assert new > old

    assert phone.save(1, {**FIRST_PAGE, "safe": "1"}, new).status_code == 200
    response = browser.save(1, FIRST_PAGE, old)

    assert (response.status_code, response.json()["error"]) == (409, "superseded")
    assert Response.objects.filter(value="1").exists()


def test_continue_here_works_with_a_new_base(browser, maya):
    browser.log_in(maya)
    old = browser.bootstrap()["revision"]
    Browser().log_in(maya).save(1, FIRST_PAGE, old + 50)
    assert browser.save(1, FIRST_PAGE, old).status_code == 409
    base = browser.bootstrap()["revision"]
    assert browser.save(1, FIRST_PAGE, base).status_code == 200


@pytest.mark.parametrize(
    ("change", "status", "error"),
    [
        ({"withdrawn_at": timezone.now()}, 409, "withdrawn"),
        (
            {"started_at": timezone.now(), "completed_at": timezone.now()},
            409,
            "finished",
        ),
        ({"issue": 2}, 401, "reissued"),
    ],
)
def test_a_refused_save_names_the_reason(at_page_one, maya, change, status, error):
    Respondent.objects.filter(pk=maya.pk).update(**change)
    response = at_page_one.save(1, FIRST_PAGE, at_page_one.base)
    assert (response.status_code, response.json()["error"]) == (status, error)


@pytest.mark.parametrize("failure", [OperationalError, InterfaceError])
def test_a_database_that_is_down_gives_503(at_page_one, monkeypatch, failure):
    def fail(**_):
        raise failure("server closed the connection unexpectedly")

    monkeypatch.setattr(page_save, "save_page", fail)
    response = at_page_one.save(1, FIRST_PAGE, at_page_one.base)
    assert response.status_code == 503
    assert 1 <= int(response["Retry-After"]) <= 5


def test_the_access_code_is_not_in_the_session(browser, maya):
    browser.log_in(maya)
    assert code_of(maya) not in json.dumps(dict(browser.session))


if connection.vendor == "postgresql":

    @pytest.mark.django_db(transaction=True)
    def test_a_kept_connection_that_was_lost_is_replaced_without_a_word(
        browser, maya, administration
    ):
        """Simulate a restart of the pool; SQLite has no connection to lose."""
        browser.log_in(maya)
        base = browser.bootstrap()["revision"]
        tag = browser.session["taking"]["tag"]
        connection.connection.close()
        assert browser.save(1, FIRST_PAGE, base, tag=tag).status_code == 200
        assert len(answers_of(maya, administration.published)) == 5

    @pytest.mark.django_db(transaction=True)
    def test_without_the_retry_a_lost_connection_would_be_an_error(
        browser, maya, monkeypatch
    ):
        monkeypatch.setattr(unavailable, "_connection_was_lost", lambda: False)
        browser.log_in(maya)
        base = browser.bootstrap()["revision"]
        tag = browser.session["taking"]["tag"]
        connection.connection.close()
        assert browser.save(1, FIRST_PAGE, base, tag=tag).status_code == 503
        connection.close()
