"""A survey that is reloaded without a network, and what remains of it later."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import BrowserContext, Error, Page, expect

from settings.tests.patience import eventually
from settings.tests.proxy import Proxy
from survey.tests.browser.live_server import Server, free_port
from survey.tests.browser.person import press_next
from survey.tests.browser.test_tab import (
    answers_of,
    begin,  # noqa: F401
    choose,
    has_status,
    is_on,
    keeps_answers,
)
from survey.tests.browser.test_two_people import log_in
from survey.tests.conftest import code_of

# What is stored does not depend on the database.
pytestmark = pytest.mark.django_db(transaction=True)

SECRET = "nobody at home listens"
# Resolves once the worker is active, and the tab has kept what it knows.
READY = """async () => {
  await navigator.serviceWorker.ready;
  const kept = async () => (await (await caches.open("groundswell-tabs")).keys()).length;
  while (!(await kept())) await new Promise((resolve) => setTimeout(resolve, 20));
}"""
LEFT = """async () => {
  const registrations = await navigator.serviceWorker.getRegistrations();
  const names = await caches.keys();
  const key = sessionStorage.getItem("groundswell tab key");
  return { workers: registrations.length, caches: names.sort(), hasKey: key !== null };
}"""
NOTHING = {"workers": 0, "caches": [], "hasKey": False}
# All that the caches hold, as text.
KEPT = """async () => {
  const texts = [];
  for (const name of await caches.keys()) {
    const cache = await caches.open(name);
    for (const request of await cache.keys()) {
      texts.push(request.url, await (await cache.match(request)).text());
    }
  }
  return texts.join("\\n");
}"""
ONLINE = "() => dispatchEvent(new Event('online'))"


class DistantServer:
    """The shared server, and a connection to it that is cut at once.

    `set_offline` would not reach service workers, and a server that is killed takes a
    second of processor time to start again.
    """

    def __init__(self, server: Server) -> None:
        self.server = server
        # The same after each cut: what the browser keeps belongs to an address.
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.proxy: Proxy | None = None

    def connect(self) -> None:
        self.proxy = Proxy(("127.0.0.1", self.port), ("127.0.0.1", self.server.port))
        self.proxy.start()

    def disconnect(self) -> None:
        if self.proxy is not None:
            self.proxy.stop()
            self.proxy = None


@pytest.fixture
def server(server: Server) -> Iterator[DistantServer]:
    distant = DistantServer(server)
    distant.connect()
    yield distant
    distant.disconnect()


@pytest.fixture
def open_tab(begin, device: Callable[..., BrowserContext]) -> Callable[[], Page]:  # noqa: F811
    """A tab whose survey can be reloaded offline."""

    def open_tab() -> Page:
        page = begin(device(service_workers="allow"))
        page.evaluate(READY)
        return page

    return open_tab


def save_first_page(page: Page) -> None:
    choose(page, "safe", "3")
    page.fill("#comment-input", SECRET)
    press_next(page)
    is_on(page, 2)
    has_status(page, "saved")


def reaches_server(page: Page) -> None:
    page.evaluate(ONLINE)
    expect(page.locator("#notice")).to_be_hidden()


def leaves(page: Page, expected: dict[str, object]) -> None:
    eventually(lambda: page.evaluate(LEFT) == expected)


def test_a_survey_reloaded_offline_goes_on_where_it_was(open_tab, server, maya):
    page = open_tab()
    save_first_page(page)
    page.fill("#born-input", "2014-02-28")
    keeps_answers(page)
    server.disconnect()
    page.reload()

    # The page that was being answered, and what was saved before.
    is_on(page, 2)
    expect(page.locator("#born-input")).to_have_value("2014-02-28")
    expect(page.locator("#notice")).to_contain_text("There is no internet right now")
    expect(page.locator("#survey-title")).to_have_text("Our school")
    page.click("#back")
    is_on(page, 1)
    expect(page.locator("#item-safe input:checked")).to_have_value("3")
    expect(page.locator("#comment-input")).to_have_value(SECRET)
    page.wait_for_timeout(600)
    choose(page, "safe", "2")
    page.click("#next")
    is_on(page, 2)
    press_next(page)
    is_on(page, 3)
    page.fill("#last-input", "typed without a network")
    keeps_answers(page)
    # And once more.
    page.reload()
    is_on(page, 3)
    expect(page.locator("#last-input")).to_have_value("typed without a network")
    assert answers_of(maya)["safe"] == "3"

    server.connect()
    reaches_server(page)
    # Right after a page is shown, *Next* would be the second of two clicks.
    page.wait_for_timeout(600)
    page.click("#next")
    page.wait_for_url("**/take/complete/**")
    answers = answers_of(maya)
    assert answers["safe"] == "2"
    assert answers["comment"] == SECRET
    assert answers["born"] == "2014-02-28"
    assert answers["last"] == "typed without a network"


def test_without_a_worker_a_reload_offline_shows_the_browsers_error(
    begin,  # noqa: F811
    server,
):
    page = begin()
    save_first_page(page)
    server.disconnect()
    with pytest.raises(Error, match="ERR_CONNECTION"):
        page.reload()
    assert not page.locator("section.page").count()


def test_what_another_device_saved_meanwhile_is_not_overwritten(
    open_tab,
    device,
    server,
    maya,
):
    maya.administration.replays_answers = True
    maya.administration.save()
    page = open_tab()
    save_first_page(page)
    phone = device().new_page()
    log_in(phone, maya)
    phone.goto("/take/#page-1/comment")
    phone.fill("#comment-input", "from the phone")
    press_next(phone)
    has_status(phone, "saved")
    phone.close()

    server.disconnect()
    page.reload()
    is_on(page, 2)
    page.click("#back")
    is_on(page, 1)
    expect(page.locator("#comment-input")).to_have_value(SECRET)
    choose(page, "safe", "1")
    page.wait_for_timeout(600)
    server.connect()
    reaches_server(page)
    page.click("#next")
    # Only the person can tell which answers are right.
    page.get_by_role("button", name="Continue here").click()
    has_status(page, "saved")
    answers = answers_of(maya)
    assert (answers["comment"], answers["safe"]) == ("from the phone", "1")


def test_the_review_offline_leads_back_to_the_survey(open_tab, server, maya):
    page = open_tab()
    save_first_page(page)
    page.click("#item-promise label")
    press_next(page)
    is_on(page, 3)
    page.fill("#last-input", "done")
    press_next(page)
    page.wait_for_url("**/take/complete/**")
    server.disconnect()
    page.reload()
    page.wait_for_url("**/take/?**")
    is_on(page, 3)
    expect(page.locator("#last-input")).to_have_value("done")
    server.connect()
    # It was asked for, so it opens again by itself.
    with suppress(Error):
        page.evaluate(ONLINE)
    page.wait_for_url("**/take/complete/**")


# What remains


def test_after_stopping_for_now_nothing_is_left(open_tab, maya):
    page = open_tab()
    save_first_page(page)
    page.click("#stop")
    page.wait_for_url("**/take/stop/**")
    leaves(page, NOTHING)


def test_after_finishing_nothing_is_left(open_tab, maya):
    page = open_tab()
    assert page.evaluate(LEFT)["workers"] == 1
    save_first_page(page)
    page.goto("/take/complete/")
    page.click("#finish-button")
    expect(page.locator(".done")).to_be_visible()
    leaves(page, NOTHING)


def test_the_login_page_removes_what_the_last_person_left(open_tab, server, maya):
    page = open_tab()
    save_first_page(page)
    context = page.context
    login = context.new_page()
    login.goto("/")
    leaves(login, NOTHING)
    server.disconnect()
    with pytest.raises(Error):
        page.reload()


def test_another_tab_cannot_open_what_a_tab_has_kept(open_tab, server, maya):
    page = open_tab()
    save_first_page(page)
    page.wait_for_timeout(300)
    assert SECRET not in page.evaluate(KEPT)
    address = page.url
    server.disconnect()
    tab = page.context.new_page()
    tab.goto(address)
    expect(tab.locator("#page")).to_contain_text("could not be loaded")
    assert SECRET not in tab.content()
    # The twin: the tab itself can, until the other one has removed it.
    assert tab.evaluate(LEFT)["caches"] == []


LOG_IN = """async (code) => {
  const headers = { Accept: "application/json" };
  const { csrf } = await (await fetch("/", { headers })).json();
  const body = new URLSearchParams({ code });
  await fetch("/", { method: "POST", body, headers: { ...headers, "X-CSRFToken": csrf } });
}"""


def test_the_next_persons_survey_removes_what_the_last_ones_tabs_kept(
    open_tab, server, noor
):
    page = open_tab()
    save_first_page(page)
    # A login without the login page, as from the notice of another tab.
    noors = page.context.new_page()
    noors.goto("/take/worker.js")
    noors.evaluate(LOG_IN, code_of(noor))
    noors.goto("/take/")
    noors.wait_for_selector("#page section.page")
    mayas = parse_qs(urlsplit(page.url).query)["for"][0]
    eventually(lambda: mayas not in noors.evaluate(KEPT))
    server.disconnect()
    page.reload()
    expect(page.locator("#page")).to_contain_text("could not be loaded")
    assert SECRET not in page.content()


# Releases


def test_a_new_release_replaces_the_files_of_the_last_one(open_tab, server):
    page = open_tab()
    [release] = [name for name in page.evaluate(LEFT)["caches"] if "release" in name]
    # Another script for the same pages is what a release brings.
    page.evaluate(
        """async () => {
          await caches.open("groundswell-release-before");
          await navigator.serviceWorker.register("/take/worker.js?next");
        }"""
    )
    expected = ["groundswell-content", release, "groundswell-tabs"]
    leaves(page, {"workers": 1, "caches": expected, "hasKey": True})
    server.disconnect()
    page.reload()
    is_on(page, 1)


@pytest.fixture
def switched_off(shared_server: Server) -> Iterator[Callable[[], None]]:
    def switch_off() -> None:
        shared_server.kill()
        shared_server.environment["GROUNDSWELL_OFFLINE"] = "off"
        shared_server.start()

    yield switch_off
    shared_server.environment.pop("GROUNDSWELL_OFFLINE", None)
    shared_server.kill()


def test_a_worker_that_is_switched_off_removes_itself(open_tab, switched_off):
    page = open_tab()
    switched_off()
    update = "async () => (await navigator.serviceWorker.ready).update()"
    page.evaluate(update)
    leaves(page, {**NOTHING, "hasKey": True})
    page.reload()
    page.wait_for_selector("#page section.page")
    leaves(page, NOTHING)


# Networks and browsers that are different


class Portal(BaseHTTPRequestHandler):
    """Answers everything with a page of its own, as hotels and schools do."""

    def do_GET(self) -> None:
        body = b"<!doctype html><title>Welcome</title><p>Sign in to this wifi"
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Cache-Control", "public, max-age=3600")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET

    def log_message(self, *args: object) -> None:
        pass


@contextmanager
def captive_portal(server: DistantServer) -> Iterator[None]:
    server.disconnect()
    portal = ThreadingHTTPServer(("127.0.0.1", server.port), Portal)
    portal.daemon_threads = True
    thread = threading.Thread(target=portal.serve_forever)
    thread.start()
    try:
        yield
    finally:
        portal.shutdown()
        portal.server_close()
        thread.join()
    server.connect()


def test_a_captive_portal_is_neither_kept_nor_taken_for_the_survey(
    open_tab, server, maya
):
    page = open_tab()
    save_first_page(page)
    with captive_portal(server):
        page.reload()
        is_on(page, 2)
        # A language whose pages were not kept yet.
        page.select_option("#language", "es")
        page.wait_for_timeout(500)
        is_on(page, 2)
        page.evaluate(
            "async () => (await navigator.serviceWorker.ready).update().catch(() => {})"
        )
        page.wait_for_timeout(300)
        assert "this wifi" not in page.evaluate(KEPT)
        page.click("#next")
        is_on(page, 3)
        page.fill("#last-input", "behind the portal")
    reaches_server(page)
    page.click("#next")
    page.wait_for_url("**/take/complete/**")
    assert answers_of(maya)["last"] == "behind the portal"


def test_without_a_worker_a_captive_portal_takes_the_surveys_place(begin, server):  # noqa: F811
    page = begin()
    with captive_portal(server):
        page.reload()
        expect(page.locator("body")).to_contain_text("Sign in to this wifi")


REFUSE = """
  Object.defineProperty(window, "caches", { get() { throw new DOMException("", "SecurityError"); } });
  navigator.serviceWorker.register = () => Promise.reject(new DOMException("", "SecurityError"));
"""
FULL = """
  Cache.prototype.put = () => Promise.reject(new DOMException("", "QuotaExceededError"));
"""
ABSENT = "delete Navigator.prototype.serviceWorker; delete window.caches;"


@pytest.mark.parametrize(
    "obstacle", [REFUSE, FULL, ABSENT], ids=["refused", "full", "absent"]
)
def test_a_browser_that_keeps_nothing_takes_the_survey_all_the_same(
    begin,  # noqa: F811
    device,
    maya,
    obstacle,
):
    context = device(service_workers="allow")
    context.add_init_script(obstacle)
    page = begin(context)
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    save_first_page(page)
    page.reload()
    is_on(page, 2)
    page.goto("/take/complete/")
    page.click("#finish-button")
    expect(page.locator(".done")).to_be_visible()
    assert answers_of(maya)["comment"] == SECRET
    assert errors == []
