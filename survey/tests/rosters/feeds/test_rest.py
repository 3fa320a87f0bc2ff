from __future__ import annotations

import io
import json
import logging
import stat
import subprocess
import sys
import zipfile
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count
from types import SimpleNamespace

import pytest

from survey.people.rosters.feeds import rest, rest_auth
from survey.people.rosters.feeds.downloads import (
    Download,
    DownloadFailed,
    FeedSource,
    download,
    load_into,
)
from survey.people.rosters.feeds.http_client import HttpClient
from survey.people.rosters.feeds.rest_ignored import MOST_NAMES
from survey.people.rosters.feeds.rest_pages import MOST_ROLES, as_row, role_rows
from survey.people.rosters.oneroster.store import OneRosterInvalid, OneRosterStore
from survey.simulation.oneroster_server import District, serve
from survey.tests.rosters.feeds.oneroster_objects import read_archive
from survey.tests.rosters.feeds.servers import raw_server
from survey.tests.rosters.oneroster.archives import (
    CLASS_FILES,
    DEMOGRAPHICS,
    ROLES,
    TODAY,
    VERSION_11,
    VERSION_12,
    archive,
)
from survey.tests.test_jobs import environment

SECRET = "correct-horse-battery-staple"
LONG_AGO = "2020-01-01T00:00:00.000Z"
NEW = "2026-11-20T00:00:00.000Z"
NIGHT = datetime(2026, 11, 19, 2, tzinfo=UTC)
VERSIONS = {"1.1": VERSION_11, "1.2": VERSION_12}


def zip_of(version: str) -> bytes:
    files = VERSIONS[version] | CLASS_FILES | {"demographics": DEMOGRAPHICS}
    return archive(files, version=version).read()


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "downloads"
    folder.mkdir()
    return folder


@pytest.fixture
def north():
    """A district whose ZIP and REST server list the same people."""
    return district_of("1.1")


def district_of(version: str) -> District:
    content = zip_of(version)
    district = District(
        read_archive(io.BytesIO(content)), content, authorization="bearer"
    )
    for objects in district.collections.values():
        for row in objects:
            row["dateLastModified"] = LONG_AGO
    return district


@pytest.fixture
def server(north, monkeypatch):
    soon = replace(rest.DELAYS, first=timedelta(milliseconds=5))
    monkeypatch.setattr(rest, "DELAYS", soon)
    with serve({"north": north}) as server:
        yield server


@pytest.fixture
def source(server):
    return FeedSource(
        "rest",
        server.address(),
        credentials={"token": "token"},
        options={"version": "1.1", "authorization": "bearer", "page_size": 2},
    )


def fetch(source: FeedSource, folder) -> Download:
    return download(source, folder, on_bytes=lambda size: None)


def with_options(source: FeedSource, **options) -> FeedSource:
    return replace(source, options={**source.options, **options})


def people_of(store: OneRosterStore) -> list[list[str]]:
    rows = store.rows(roles=ROLES, identity="identifier", today=TODAY)
    return [store.header(), *sorted(rows)]


def people_by_rest(source: FeedSource, folder, name: str = "rest") -> list[list[str]]:
    store = OneRosterStore(folder / name)
    load_into(store, fetch(source, folder))
    return people_of(store)


def people_by_zip(version: str, folder) -> list[list[str]]:
    store = OneRosterStore(folder / f"zip {version}")
    store.load_zip(io.BytesIO(zip_of(version)))
    return people_of(store)


@pytest.mark.parametrize("version", ["1.1", "1.2"])
def test_rest_and_zip_give_the_same_people(folder, version):
    with serve({"north": district_of(version)}) as server:
        source = FeedSource(
            "rest",
            server.address(),
            credentials={"token": "token"},
            options={"version": version, "authorization": "bearer", "page_size": 2},
        )
        people = people_by_rest(source, folder)
        assert people == people_by_zip(version, folder)
        assert len(people) > 3
        path = {"1.1": "v1p1", "1.2": "rostering/v1p2"}[version]
        requests = server.districts["north"].requests
        assert f"GET /ims/oneroster/{path}/users?limit=2&offset=2" in requests


def test_the_download_is_a_private_file_without_passwords(source, folder, north):
    north.collections["users"][0]["password"] = "hunter2"
    north.collections["users"][0]["metadata"] = {"lunch": "free"}
    sizes = []
    got = download(source, folder, on_bytes=sizes.append)
    assert got.path is not None
    assert stat.S_IMODE(got.path.stat().st_mode) == 0o600
    assert sum(sizes) > 1000
    assert got.size == got.path.stat().st_size
    with zipfile.ZipFile(got.path) as content:
        text = content.read("users.jsonl")
    assert b"Maya" in text
    assert b"hunter2" not in text
    assert b"lunch" not in text


@pytest.mark.parametrize("ending", ["", "/", "/ims/oneroster/v1p1", "/ims/oneroster/"])
def test_the_address_may_hold_the_standard_part(source, folder, ending):
    people = people_by_rest(replace(source, address=source.address + ending), folder)
    assert people == people_by_zip("1.1", folder)


def test_the_same_people_in_another_order_are_unchanged(source, folder, north):
    first = fetch(source, folder)
    known = replace(source, digest=first.digest)
    north.collections["users"].reverse()
    for user in north.collections["users"]:
        user["dateLastModified"] = NEW
    got = fetch(known, folder)
    assert (got.path, got.is_unchanged, got.digest) == (None, True, first.digest)
    north.collections["users"][0]["familyName"] = "Lopez-Ruiz"
    got = fetch(known, folder)
    assert not got.is_unchanged
    assert got.path is not None


# Paging


@pytest.mark.parametrize(
    ("faults", "message"),
    [
        ({"ends_early_after": 2}, "users ended after 2 of 3|orgs ended after 2 of 3"),
        ({"repeats_first_page": True}, "orgs repeats o-district"),
        ({"total_changes_after": 2}, "total of orgs changed .* from 3 to 2"),
        ({"total_added": 1}, "ended after 3 of 4"),
        ({"total_added": -1}, "total of 2"),
        ({"total_text": "many"}, "total of orgs is no number"),
    ],
)
def test_pages_that_contradict_each_other_fail_the_download(
    source, folder, north, faults, message
):
    for name, value in faults.items():
        setattr(north.faults, name, value)
    with pytest.raises(DownloadFailed, match=message) as failed:
        fetch(source, folder)
    assert failed.value.may_retry
    assert list(folder.iterdir()) == []


def test_the_twin_that_trusts_the_end_loses_people(source, folder, north, monkeypatch):
    """Without the comparison with the total, people would seem to have left."""
    north.faults.ends_early_after = 2
    monkeypatch.setattr(rest, "_total", lambda text, endpoint: None)
    people = people_by_rest(source, folder)
    assert len(people) < len(people_by_zip("1.1", folder))


@pytest.mark.parametrize(
    "faults",
    [
        {"most_per_page": 1},
        {"refuses_pages_above": 100},
        {"has_total": False},
        {"has_total": False, "has_next_link": True},
        {"total_text": "3.0", "not_offered": ()},
    ],
)
def test_servers_that_page_in_other_ways_are_read(source, folder, north, faults):
    for name, value in faults.items():
        setattr(north.faults, name, value)
    if "total_text" in faults:
        # The same total for each collection: keep three objects of each.
        for name in ("academicSessions", "classes", "enrollments"):
            assert len(north.collections[name]) == 3
        north.faults.not_offered = ("demographics",)
    people = people_by_rest(with_options(source, page_size=1000), folder)
    names = [row[3:] for row in people[1:]]
    assert len(names) == len(people_by_zip("1.1", folder)) - 1


@pytest.mark.parametrize("has_total", [True, False])
def test_a_server_with_cursors_is_read(source, folder, north, has_total):
    north.faults.has_cursors, north.faults.has_total = True, has_total
    assert people_by_rest(source, folder) == people_by_zip("1.1", folder)
    path = "/ims/oneroster/v1p1/users"
    asked = [request for request in north.requests if path in request]
    assert asked[:2] == [f"GET {path}?limit=2&offset=0", f"GET {path}?cursor=2&limit=2"]


def test_a_cursor_that_leads_back_fails(source, folder, north):
    north.faults.has_cursors = north.faults.repeats_cursor = True
    with pytest.raises(DownloadFailed, match="repeats|has no end|lists more"):
        fetch(source, folder)


def test_a_server_with_cursors_would_be_read_in_part(
    source, folder, north, monkeypatch
):
    """Each page would be the first one."""
    monkeypatch.setattr(rest, "_cursor", lambda link: "")
    north.faults.has_cursors, north.faults.has_total = True, False
    with pytest.raises(DownloadFailed, match="repeats"):
        fetch(source, folder)


@pytest.mark.parametrize(
    "faults",
    [
        {"status_beyond_end": 404},
        {"status_beyond_end": 416},
        {"has_null_pages": True},
        {"has_null_pages": True, "has_total": True},
    ],
)
def test_an_end_without_an_empty_page_is_an_end(source, folder, north, faults):
    for name, value in ({"has_total": False} | faults).items():
        setattr(north.faults, name, value)
    assert people_by_rest(source, folder) == people_by_zip("1.1", folder)


def test_a_page_that_is_gone_in_the_middle_fails_the_download(source, folder, north):
    """Without a total and after a full page, it could be any page."""
    north.faults.has_total, north.faults.status_beyond_end = False, 404
    north.faults.ends_early_after = 2
    with pytest.raises(DownloadFailed, match="nothing at this address"):
        fetch(source, folder)
    assert list(folder.iterdir()) == []


def test_a_server_that_sends_everything_at_once_is_read(source, folder, north):
    north.faults.ignores_offset = True
    whole = with_options(source, page_size=1000)
    assert people_by_rest(whole, folder) == people_by_zip("1.1", folder)
    # Unless it sends only a part at once.
    with pytest.raises(DownloadFailed, match="orgs lists more|orgs repeats"):
        fetch(source, folder)


def test_a_total_that_is_the_size_of_a_page_fails(source, folder, north):
    north.faults.most_per_page, north.faults.total_is_size_of_page = 2, True
    with pytest.raises(DownloadFailed, match="total of orgs changed"):
        fetch(with_options(source, page_size=1000), folder)


def test_a_server_without_people_fails(source, folder, north):
    north.collections["users"] = []
    with pytest.raises(DownloadFailed, match="lists no users"):
        fetch(source, folder)
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("collection", ["demographics", "academicSessions"])
def test_some_endpoints_need_not_be_offered(source, folder, north, collection):
    north.faults.not_offered = (collection,)
    assert fetch(source, folder).path is not None
    north.faults.not_offered = ("enrollments",)
    with pytest.raises(DownloadFailed, match="nothing at this address"):
        fetch(source, folder)


def test_demographics_may_name_the_user(source, folder, north):
    for row in north.collections["demographics"]:
        row["userSourcedId"] = row.pop("sourcedId")
    assert people_by_rest(source, folder) == people_by_zip("1.1", folder)


# Errors that pass


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_passing_errors_are_waited_for(source, folder, north, status):
    north.faults.statuses = [status, status]
    assert people_by_rest(source, folder) == people_by_zip("1.1", folder)


def test_a_server_says_how_long_to_wait(source, folder, north, monkeypatch):
    waited = []
    # Only there: other threads of this process wait in loops.
    monkeypatch.setattr(rest, "time", SimpleNamespace(sleep=waited.append))
    north.faults.statuses, north.faults.retry_after = [429], "7"
    fetch(source, folder)
    assert 7 in [round(seconds, 3) for seconds in waited]


def test_waiting_has_an_end(source, folder, north):
    north.faults.statuses = [503] * 100
    with pytest.raises(DownloadFailed, match="status 503") as failed:
        fetch(source, folder)
    assert failed.value.may_retry
    assert len(north.requests) == rest.DELAYS.attempts


def test_a_server_that_asks_for_an_hour_is_left_to_the_next_scan(source, folder, north):
    north.faults.statuses, north.faults.retry_after = [429], "3600"
    with pytest.raises(DownloadFailed, match="no more requests"):
        fetch(source, folder)
    assert len(north.requests) == 1


def test_an_answer_that_breaks_off_is_fetched_again(source, folder, north):
    north.faults.breaks_off = 2
    assert people_by_rest(source, folder) == people_by_zip("1.1", folder)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(7, "7"), (0, ""), (0, "soon"), (0, "Wed, 18 Nov 2020 02:00:00 GMT")],
)
def test_retry_after_is_a_number_or_a_time(seconds, text):
    assert rest._retry_after(text) == seconds
    when = datetime.now(UTC) + timedelta(minutes=2)
    shown = when.strftime("%a, %d %b %Y %H:%M:%S GMT")
    assert 100 < rest._retry_after(shown) <= 120


# Deltas


def test_a_delta_fetches_what_changed(source, folder, north):
    store = OneRosterStore(folder / "store")
    first = fetch(source, folder)
    load_into(store, first)
    before = people_of(store)

    users = north.collections["users"]
    users[0] |= {"familyName": "Ruiz", "dateLastModified": NEW}
    delta = replace(source, digest=first.digest, changed_since=NIGHT)
    got = fetch(delta, folder)
    assert got.is_delta
    assert not got.is_unchanged
    load_into(store, got)
    after = people_of(store)
    assert len(after) == len(before)
    changed = [row for row in after if row not in before]
    assert changed
    assert all("Ruiz" in row for row in changed)
    # The next full download is not taken for unchanged.
    assert got.digest == ""
    asked = [request for request in north.requests if "filter=" in request]
    assert "2026-11-19T02%3A00%3A00.000Z" in asked[0]


def test_a_delta_without_changes_is_unchanged(source, folder):
    first = fetch(source, folder)
    got = fetch(replace(source, digest=first.digest, changed_since=NIGHT), folder)
    assert (got.path, got.is_unchanged, got.digest) == (None, True, first.digest)


def test_a_person_who_left_is_in_the_delta(source, folder, north):
    store = OneRosterStore(folder / "store")
    load_into(store, fetch(source, folder))
    maya = north.collections["users"][0]
    maya |= {"status": "tobedeleted", "dateLastModified": NEW}
    load_into(store, fetch(replace(source, changed_since=NIGHT), folder))
    assert [
        "left" in row for row in people_of(store) if "Maya" in row and "student" in row
    ] == [True]
    assert "left" not in str(people_by_zip("1.1", folder))


@pytest.mark.parametrize("fault", ["ignores_filter", "refuses_filter"])
def test_a_server_without_filters_gives_the_same_people(source, folder, north, fault):
    store = OneRosterStore(folder / "store")
    load_into(store, fetch(source, folder))
    setattr(north.faults, fault, True)
    got = fetch(replace(source, changed_since=NIGHT), folder)
    assert got.is_delta is (fault == "ignores_filter")
    load_into(store, got)
    assert people_of(store) == people_by_zip("1.1", folder)


def test_roles_that_end_are_deleted_by_a_delta(folder):
    north = district_of("1.2")
    with serve({"north": north}) as server:
        source = FeedSource(
            "rest",
            server.address(),
            credentials={"token": "token"},
            options={"version": "1.2", "authorization": "bearer"},
        )
        store = OneRosterStore(folder / "store")
        load_into(store, fetch(source, folder))
        ortiz = next(
            user for user in north.collections["users"] if user["givenName"] == "Luis"
        )
        assert len(ortiz["roles"]) == 3
        ortiz |= {"roles": ortiz["roles"][:1], "dateLastModified": NEW}
        load_into(store, fetch(replace(source, changed_since=NIGHT), folder))
        whole = OneRosterStore(folder / "whole")
        load_into(whole, fetch(source, folder))
        parents = [row for row in people_of(store) if "Luis" in row]
        assert parents
        # Roles that were deleted are listed as having ended.
        left = [row for row in parents if "left" not in row]
        assert left == [row for row in people_of(whole) if "Luis" in row]


# School by school


def test_schools_are_fetched_one_by_one(source, folder, north):
    north.faults.only_per_school = True
    with pytest.raises(DownloadFailed, match="nothing at this address"):
        fetch(source, folder)
    header, *rows = people_by_rest(with_options(source, per_school=True), folder)
    # Mr Ortiz works at two schools, and parents are listed by no school.
    assert sum("Luis" in row for row in rows) == 1
    assert sum("Maya" in row for row in rows) == 1
    whole = people_by_zip("1.1", folder)
    assert [row for row in whole if "Ana" not in row] == [header, *rows]


def test_a_delta_knows_schools_that_did_not_change(source, folder, north):
    north.faults.only_per_school = True
    north.collections["users"][0] |= {"familyName": "Ruiz", "dateLastModified": NEW}
    delta = replace(with_options(source, per_school=True), changed_since=NIGHT)
    got = fetch(delta, folder)
    assert got.is_delta
    assert not got.is_unchanged


# Authorization


@pytest.fixture
def oauth2(source, server, north):
    north.authorization, north.client_secret = "oauth2", SECRET
    options = {"authorization": "oauth2", "token_url": server.token_address()}
    return replace(
        with_options(source, **options),
        credentials={"client_id": "client", "client_secret": SECRET},
    )


def test_a_token_is_fetched_once(oauth2, folder, north):
    people = people_by_rest(oauth2, folder)
    assert people == people_by_zip("1.1", folder)
    assert sum(request == "POST /token" for request in north.requests) == 1


@pytest.mark.parametrize("place", ["basic", "body"])
def test_the_secret_is_sent_where_the_server_wants_it(oauth2, folder, north, place):
    north.faults.client_auth = place
    assert fetch(oauth2, folder).path is not None


def test_scopes_that_are_refused_are_asked_for_otherwise(oauth2, folder, north):
    north.faults.refused_scopes = tuple(
        rest_auth.SCOPE_PREFIX["1.1"] + scope for scope in rest_auth.SCOPES
    )
    assert fetch(oauth2, folder).path is not None
    north.faults.refused_scopes += rest_auth.SCOPES
    assert fetch(oauth2, folder).path is not None
    with pytest.raises(DownloadFailed, match="invalid_scope"):
        fetch(with_options(oauth2, scope=rest_auth.SCOPES[0]), folder)


def test_a_token_is_replaced_before_its_end(oauth2, folder, north, monkeypatch):
    clock = count(step=1000)
    monkeypatch.setattr(
        rest_auth, "time", SimpleNamespace(monotonic=lambda: next(clock))
    )
    people = people_by_rest(oauth2, folder)
    assert people == people_by_zip("1.1", folder)
    assert sum(request == "POST /token" for request in north.requests) > 1
    # A minute before its end, a token is not sent any more.
    authorization = rest_auth.OAuth2(oauth2, None)
    authorization._keep("token", "3600")
    assert authorization._ends == next(clock) - 1000 + 3540


def test_a_token_that_ends_too_early_is_replaced(oauth2, folder, north):
    north.faults.token_uses = 3
    assert people_by_rest(oauth2, folder) == people_by_zip("1.1", folder)
    assert len(north.tokens) > 2


def test_a_server_that_refuses_its_own_tokens_fails(oauth2, folder, north):
    north.faults.token_seconds = -1
    with pytest.raises(DownloadFailed, match="refused the credentials") as failed:
        fetch(oauth2, folder)
    assert not failed.value.may_retry
    assert len(north.requests) < 10


def test_a_wrong_secret_is_named(oauth2, folder, north):
    north.client_secret = "another one"
    with pytest.raises(DownloadFailed, match="no token .invalid_client.") as failed:
        fetch(oauth2, folder)
    assert not failed.value.may_retry
    assert "/ims/" not in str(north.requests)


def test_a_token_server_that_repeats_the_secret_is_not_quoted(oauth2, folder):
    body = json.dumps({"error": f"no client has {SECRET}"}).encode()
    head = b"HTTP/1.1 400 Bad Request\r\nContent-Length: %d\r\n\r\n" % len(body)

    def refuse(connection):
        received = b""
        while part := connection.recv(9999):
            received += part
            if b"grant_type" in received:
                received = b""
                connection.sendall(head + body)

    with raw_server(refuse) as port:
        elsewhere = with_options(oauth2, token_url=f"http://127.0.0.1:{port}/")
        with pytest.raises(DownloadFailed, match="no token .status 400.") as failed:
            fetch(elsewhere, folder)
    assert SECRET not in failed.value.message


def test_without_a_token_address_nothing_is_sent(oauth2, folder, north):
    with pytest.raises(DownloadFailed, match="address of the token is missing"):
        fetch(with_options(oauth2, token_url=""), folder)
    assert north.requests == []


@pytest.mark.parametrize("signature", ["", "HMAC-SHA1", "HMAC-SHA256"])
def test_requests_are_signed_with_oauth_1(source, folder, north, signature):
    north.authorization, north.client_secret = "oauth1", SECRET
    signed = replace(
        with_options(source, authorization="oauth1", signature=signature),
        credentials={"client_id": "client", "client_secret": SECRET},
    )
    assert people_by_rest(signed, folder) == people_by_zip("1.1", folder)
    delta = replace(signed, changed_since=NIGHT)
    assert fetch(delta, folder).is_delta
    wrong = replace(signed, credentials={"client_id": "client", "client_secret": "x"})
    with pytest.raises(DownloadFailed, match="refused the credentials"):
        fetch(wrong, folder)


def test_a_wrong_bearer_token_is_named(source, folder):
    with pytest.raises(DownloadFailed, match="refused the credentials"):
        fetch(replace(source, credentials={"token": "another"}), folder)


@pytest.mark.parametrize("authorization", ["bearer", "oauth1", "oauth2"])
@pytest.mark.parametrize("works", [True, False])
def test_no_secret_is_logged_or_shown(
    source, server, folder, north, caplog, authorization, works
):
    north.authorization = authorization
    north.client_secret = SECRET if works else "another one"
    north.token = SECRET if works else "another one"
    given = replace(
        with_options(
            source, authorization=authorization, token_url=server.token_address()
        ),
        credentials={"client_id": "client", "client_secret": SECRET, "token": SECRET},
    )
    shown = repr(given)
    with caplog.at_level(logging.DEBUG):
        try:
            fetch(given, folder)
            assert works
        except DownloadFailed as failed:
            assert not works
            error: BaseException | None = failed
            while error is not None:
                shown += repr(error)
                error = error.__cause__ or error.__context__
    assert SECRET not in shown + caplog.text
    assert not any(token in caplog.text for token in north.tokens)


# JSON


def test_odd_json_is_read(source, folder, north):
    people = people_by_zip("1.1", folder)
    maya = next(u for u in north.collections["users"] if u["givenName"] == "Maya")
    maya |= {
        "grades": "07",
        "middleName": None,
        "enabledUser": True,
        "orgs": [{"sourcedId": "o-lincoln", "href": None}],
        "metadata": {"ext": 1},
    }
    del maya["username"]
    for row in north.collections["demographics"]:
        row["birthdate"] = row.pop("birthDate") + "T00:00:00Z"
        row["asian"] = True
        row["americanIndianOrAlaskaNative"] = False
    assert people_by_rest(source, folder) == people


@pytest.mark.parametrize(
    ("item", "row"),
    [
        ({"grades": ["07", "08"]}, {"grades": "07,08"}),
        ({"grade": "07"}, {"grades": "07"}),
        ({"identifier": 123}, {"identifier": "123"}),
        ({"identifier": None}, {"identifier": ""}),
        ({"metadata": {"a": 1}}, {}),
        ({"parent": None}, {"parentSourcedId": ""}),
        ({"org": {"href": "https://x/orgs/7/"}}, {"orgSourcedId": "7"}),
        ({"school": "7"}, {"schoolSourcedId": "7"}),
        ({"orgs": {"sourcedId": "7"}}, {"orgSourcedIds": "7"}),
        (
            {"userIds": [{"type": "SIS", "identifier": "9"}, {"type": "x"}, None]},
            {"userIds": "{SIS:9}"},
        ),
        ({"givenname": "Maya"}, {"givenName": "Maya"}),
        ({"birthdate": "2014-03-04T00:00:00Z"}, {"birthDate": "2014-03-04"}),
        ({"asian": True, "white": "false"}, {"asian": "true", "white": "false"}),
        ({"password": "x", "username": "y"}, {}),
    ],
)
def test_objects_become_rows(item, row):
    assert as_row(item) == row


def test_the_role_of_version_1_1_is_not_replaced():
    user = {"sourcedId": "1", "role": "student", "status": "active"}
    assert list(role_rows(user, is_delta=True)) == []


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"<html>", "no valid JSON"),
        (b'{"orgs": [', "no valid JSON"),
        (b"[" * 100_000, "no valid JSON"),
        (b'{"orgs": {}}', "no list of orgs"),
        (b'{"orgs": ["a"]}', "no list of orgs"),
        (b'{"a": [], "b": []}', "no list of orgs"),
        (b"null", "no list of orgs"),
    ],
)
def test_unusable_answers_are_named(body, message):
    with pytest.raises(DownloadFailed, match=message):
        rest._objects(body, "orgs", "orgs")


@pytest.mark.parametrize(
    "body", [b'{"orgs": []}', b'{"Orgs": [], "x": []}', b'{"data": []}', b"[]"]
)
def test_usual_envelopes_are_read(body):
    assert rest._objects(body, "orgs", "orgs") == []


UNSTORABLE = ["\x00", "\ud83d", "\ude00"]


@pytest.mark.parametrize("sign", UNSTORABLE)
def test_a_character_that_cannot_be_stored_is_named_with_its_record(
    source, folder, north, sign
):
    store = OneRosterStore(folder / "store")
    load_into(store, fetch(source, folder))
    before = people_of(store)
    maya = next(u for u in north.collections["users"] if u["givenName"] == "Maya")
    maya |= {"givenName": f"Ma{sign}ya", "unused": sign}
    message = f"users, sourcedId '{maya['sourcedId']}': givenName has a character"
    with pytest.raises(OneRosterInvalid, match=message):
        load_into(store, fetch(source, folder))
    assert people_of(store) == before

    # A field that is not read harms nobody, and neither does a whole emoji.
    maya["givenName"] = "Maya 😀"
    load_into(store, fetch(source, folder))
    assert "Maya 😀" in str(people_of(store))


@pytest.mark.parametrize("sign", UNSTORABLE)
@pytest.mark.parametrize("per_school", [True, False])
def test_an_id_that_cannot_be_stored_is_named(source, folder, north, sign, per_school):
    north.collections["orgs"][1]["sourcedId"] += sign
    message = "orgs, sourcedId 'o-[a-z]+': sourcedId has a character"
    since = NIGHT if per_school else None
    asked = replace(with_options(source, per_school=per_school), changed_since=since)
    with pytest.raises(DownloadFailed, match=message) as failed:
        fetch(asked, folder)
    # A server can store and send the message.
    assert failed.value.message.isprintable()
    assert failed.value.message.isascii()
    assert list(folder.iterdir()) == []


def test_a_user_with_too_many_roles_is_named():
    user = {"sourcedId": "u-1", "roles": [{"role": "teacher"}] * (MOST_ROLES + 1)}
    with pytest.raises(OneRosterInvalid, match="users, sourcedId 'u-1': more than 16"):
        list(role_rows(user, is_delta=False))


# 64 MB in one page; the memory of the process is limited, so that it fails quickly.
LARGE_PAGE = """
import gc, resource, sys, django
django.setup()
from survey.people.rosters.feeds import rest
if sys.argv[2] == "unlimited":
    rest.MOST_SIGNS = rest.PAGE_BYTES
record = sys.argv[1].encode()
page = b"[" + record * (rest.PAGE_BYTES // len(record) - 2) + record[:-1] + b"]"
resource.setrlimit(resource.RLIMIT_AS, (2**30, 2**30))
# It would look for garbage among millions of objects, and find none.
gc.disable()
try:
    rest._objects(page, "users", "users")
except rest.UnusableAnswer as error:
    print(error.message)
"""


def read_large_page(record, limit):
    return subprocess.run(
        [sys.executable, "-c", LARGE_PAGE, record, limit],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("record", ["{},", '{"a":[{}]},'])
def test_a_page_that_would_fill_the_memory_is_refused(record):
    assert "users sent too much in one page" in read_large_page(record, "").stdout
    # The twin: without the limit, the process has no memory left.
    assert "MemoryError" in read_large_page(record, "unlimited").stderr


def test_one_page_is_in_memory_at_a_time(source, north):
    with HttpClient([source.address]) as client:
        pages = rest.RestServer(source, client).pages("users", "users", None)
        sizes = [(len(page), page) for page in pages]
    assert sum(size for size, _ in sizes) == len(north.collections["users"]) > 2
    assert [page for _, page in sizes] == [[] for _ in sizes]


def test_a_server_that_ignores_the_limit_may_send_many_times_as_much():
    """What systems send for one user, with all fields of the standard."""
    user = {
        "sourcedId": "f8a2c1d0-5b1e-4f3c-9f57-3f0c8f5c7a10",
        "status": "active",
        "dateLastModified": LONG_AGO,
        "username": "maya.lopez@riverside.example.org",
        "userIds": [{"type": "SIS", "identifier": "00123"}],
        "enabledUser": "true",
        "givenName": "Maya",
        "familyName": "Lopez",
        "middleName": "",
        "role": "student",
        "identifier": "00123",
        "email": "maya.lopez@riverside.example.org",
        "sms": "",
        "phone": "",
        "agents": [],
        "orgs": [{"href": "https://sis/orgs/1", "sourcedId": "1", "type": "org"}],
        "grades": ["07"],
    }
    page = json.dumps([user] * (50 * rest.PAGE_SIZE)).encode()
    assert len(rest._objects(page, "users", "users")) == 50 * rest.PAGE_SIZE
    with pytest.raises(DownloadFailed, match="too much in one page"):
        rest._objects(b" " * rest.PAGE_BYTES, "users", "users")


def test_an_object_without_an_id_fails(source, folder, north):
    north.collections["users"][1]["sourcedId"] = ""
    with pytest.raises(DownloadFailed, match="without a sourcedId"):
        fetch(source, folder)


def test_loading_is_all_or_nothing(source, folder, north):
    store = OneRosterStore(folder / "store")
    load_into(store, fetch(source, folder))
    before = people_of(store)
    north.collections["users"][0]["familyName"] = "Ruiz"
    # Found in the last collection, when the users are loaded already.
    north.collections["demographics"][0]["status"] = "unknown"
    with pytest.raises(OneRosterInvalid):
        load_into(store, fetch(source, folder))
    assert people_of(store) == before


# What is ignored


def test_ignored_fields_are_named_without_their_values(source, folder, north):
    maya = next(u for u in north.collections["users"] if u["givenName"] == "Maya")
    maya |= {
        "lunch": "free lunch",
        "PASSWORD": "hunter2",
        "metadata": {"homeroomTeacher": "Luis Ortiz", "Luis Ortiz": True},
        # Of the standard, or in another case.
        "resources": [],
        "FamilyName": "Lopez",
    }
    north.collections["orgs"][0]["metadata"] = {"region": "North"}
    for row in north.collections["demographics"]:
        row["birthdate"] = row.pop("birthDate")
    assert load_into(OneRosterStore(folder / "store"), fetch(source, folder)) == [
        "orgs: field 'metadata.region' was ignored: a vendor's own field",
        "users: field 'PASSWORD' was ignored: passwords are never kept",
        "users: field 'lunch' was ignored: it is no field of OneRoster",
        "users: field 'metadata.homeroomTeacher' was ignored: a vendor's own field",
        "users: field 'password' was ignored: passwords are never kept",
        "users: fields with an unusual name were ignored",
    ]


def test_fields_of_the_standard_are_not_listed_as_ignored(folder):
    for version in VERSIONS:
        with serve({"north": district_of(version)}) as server:
            source = FeedSource(
                "rest",
                server.address(),
                credentials={"token": "token"},
                options={"version": version, "authorization": "bearer"},
            )
            store = OneRosterStore(folder / f"store {version}")
            notes = load_into(store, fetch(source, folder))
        # The exports that the server was made from have this column.
        assert set(notes) <= {
            "users: field 'password' was ignored: passwords are never kept"
        }


def test_collections_that_are_not_offered_are_named(source, folder, north):
    north.faults.not_offered = ("demographics",)
    [note, *_] = load_into(OneRosterStore(folder / "store"), fetch(source, folder))
    assert note == "demographics: not read, because the server does not offer it"


def test_values_that_were_left_blank_are_named_as_those_of_a_zip(source, folder, north):
    [first, second, *_] = north.collections["enrollments"]
    first["beginDate"], second["beginDate"] = "03/04/2026", "soon"
    north.collections["demographics"][0]["asian"] = "Y"
    notes = load_into(OneRosterStore(folder / "store"), fetch(source, folder))
    blanked = [note for note in notes if "left blank" in note]
    assert blanked == [
        "enrollments: beginDate: values that are not dates in the form 2026-08-31 were"
        " left blank (2)",
        "demographics: asian: values other than true and false were left blank (1)",
    ]


def test_the_list_of_ignored_fields_has_an_end(source, folder, north):
    users = north.collections["users"]
    users[0] |= {f"field{n}": n for n in range(100_000)}
    users[1] |= {"x" * 1_000_000: 1}
    notes = load_into(OneRosterStore(folder / "store"), fetch(source, folder))
    assert len(notes) == MOST_NAMES + 1
    assert notes[-1] == "more than 80 fields were ignored"
    assert max(map(len, notes)) < 200


def test_preferred_names_are_read_under_their_names_of_both_bindings():
    row = as_row({"preferredFirstName": "May", "preferredLastName": "Ruiz"})
    assert row == {"preferredGivenName": "May", "preferredFamilyName": "Ruiz"}
    assert as_row({"preferredGivenName": "May"}) == {"preferredGivenName": "May"}
