"""Download a roster from a OneRoster REST server of version 1.1 or 1.2.

A listing that ends early, repeats objects or changes its total fails the whole
download: from a part of a roster, people would seem to have left.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from pathlib import Path
from urllib.parse import parse_qs, quote, urlencode, urlsplit

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from accounts.retry_delays import RetryDelays
from survey.people.rosters.feeds.download_types import (
    Download,
    DownloadFailed,
    FeedSource,
)
from survey.people.rosters.feeds.http_client import Answer, HttpClient, check_status
from survey.people.rosters.feeds.outgoing import Limits
from survey.people.rosters.feeds.rest_auth import authorization_of
from survey.people.rosters.feeds.rest_ignored import IgnoredNames
from survey.people.rosters.feeds.rest_pages import (
    COLLECTIONS,
    Json,
    PageWriter,
    UnusableAnswer,
)
from survey.people.rosters.oneroster.loading import is_storable, name_unstorable

SERVICES = {"1.1": "/ims/oneroster/v1p1", "1.2": "/ims/oneroster/rostering/v1p2"}
# Collection -> endpoints of one school. Those of a whole district have its name.
PER_SCHOOL = {
    "users": ["schools/{}/students", "schools/{}/teachers"],
    "classes": ["schools/{}/classes"],
    "enrollments": ["schools/{}/enrollments"],
}
# A server may not offer these, or not to this client.
OPTIONAL = {"academicSessions": (404,), "demographics": (401, 403, 404)}
# A roster without any of these is a mistake of the server.
NEVER_EMPTY = ("orgs", "users")

# JSON takes ten times as much as the same in a ZIP, and small pages take time.
LIMITS = Limits(content=8 * 1024**3, seconds=3 * 60 * 60)
PAGE_SIZE = 1000
# Of servers that refuse larger pages; the standard's own default.
SMALL_PAGE_SIZE = 100
PAGE_BYTES = 64 * 1024**2
# Commas, colons and brackets of a page: each stands for a value in memory. Some
# servers ignore `limit`, so a page may have 138 times as many users as are asked for,
# which are 64 MB and take 430 MB. As many small objects would take 2.3 GB; with this
# limit they take 570 MB.
MOST_SIGNS = 8_000_000
MOST_PAGES = 200_000
TOO_MUCH = gettext_noop(
    "{} sent too much in one page. Ask the vendor of the student information"
    " system to send no more objects than the parameter limit asks for."
)

# Half a second to a second first, as many feeds may ask one server at once.
DELAYS = RetryDelays(first=timedelta(seconds=0.5), attempts=6, jitter=1)
# Passing errors of the server, or of a proxy before it.
PASSING = (500, 502, 503, 504)
# A server that asks for more patience is tried again by the next scan.
LONGEST_RETRY_AFTER = 5 * 60


class FilterRefused(Exception):
    """The server does not understand a filter by dateLastModified."""


def fetch(
    source: FeedSource, folder: Path, on_bytes: Callable[[int], None]
) -> Download:
    """Download all pages into a new private file. Raises DownloadFailed."""
    addresses = [source.address]
    if token_url := str(source.options.get("token_url") or ""):
        addresses.append(token_url)
    elif source.options.get("authorization") in (None, "", "oauth2"):
        raise DownloadFailed(_("The address of the token is missing."))
    with HttpClient(addresses, limits=LIMITS, on_bytes=on_bytes) as client:
        server = RestServer(source, client)
        if source.changed_since is not None:
            try:
                return _fetch(source, server, folder, source.changed_since)
            except FilterRefused:
                pass
        return _fetch(source, server, folder, None)


def _fetch(
    source: FeedSource, server: RestServer, folder: Path, since: datetime | None
) -> Download:
    per_school = bool(source.options.get("per_school"))
    with PageWriter(folder, server.ignored, is_delta=since is not None) as writer:
        schools: list[str] = []
        if per_school and since is not None:
            # What changed may not include the schools themselves.
            for page in server.pages("orgs", "orgs", None):
                schools += _active_schools(page)
        for collection in COLLECTIONS:
            endpoints = [collection]
            if per_school and collection in PER_SCHOOL:
                endpoints = [
                    endpoint.format(quote(school, safe=""))
                    for school in schools
                    for endpoint in PER_SCHOOL[collection]
                ]
            writer.begin(collection)
            for endpoint in endpoints:
                for page in server.pages(collection, endpoint, since):
                    writer.write(page, endpoint)
                    if collection == "orgs" and since is None:
                        schools += _active_schools(page)
            if collection in NEVER_EMPTY and since is None and not writer.count:
                raise DownloadFailed(
                    _("%(host)s lists no %(collection)s.")
                    % {"host": server.host, "collection": collection},
                    may_retry=True,
                )
        return writer.finish(source)


def _active_schools(page: list[Json]) -> list[str]:
    return [
        str(org["sourcedId"])
        for org in page
        if str(org.get("type", "")).casefold() == "school"
        and str(org.get("status") or "active").casefold() == "active"
        and org.get("sourcedId")
    ]


@dataclass(frozen=True)
class Page:
    objects: list[Json]
    # None if the server does not say.
    total: int | None
    # Of a Link header: blank at its end, None without one.
    next_link: str | None


@dataclass
class Listing:
    """What a server has sent of a listing, and what it said about its length."""

    endpoint: str
    # Objects of the page before.
    size: int
    received: int = 0
    # None if the server does not say.
    total: int | None = None
    # The IDs of the first page that has any.
    first_page: list[str] = field(default_factory=list)
    # Of servers that page by a cursor instead of an offset.
    cursor: str = ""
    cursors: set[str] = field(default_factory=set)

    @property
    def is_complete(self) -> bool:
        return self.received == self.total

    def is_short(self, page_size: int, number: int) -> bool:
        """Return whether the page before was probably the last: shorter than others."""
        longest = len(self.first_page) if number > 1 else page_size
        return self.total is None and self.size < min(page_size, longest)

    def check_total(self, total: int | None) -> None:
        """Raise UnusableAnswer if the total is no more what it was."""
        if total != self.total:
            raise UnusableAnswer(
                _(
                    "The total of %(endpoint)s changed during the download,"
                    " from %(shown)s to %(shown_2)s."
                )
                % {
                    "endpoint": self.endpoint,
                    "shown": _shown(self.total),
                    "shown_2": _shown(total),
                }
            )

    def add(self, listed: list[str], total: int | None) -> None:
        """Count a page's objects. Raises UnusableAnswer if there are too many."""
        self.first_page = self.first_page or listed
        self.total, self.size = total, len(listed)
        self.received += self.size
        if total is not None and self.received > total:
            raise UnusableAnswer(
                _("%(endpoint)s lists more objects than its total of %(total)s.")
                % {"endpoint": self.endpoint, "total": f"{total:,}"}
            )

    def check_end(self) -> None:
        """Raise UnusableAnswer if an empty page came before the end."""
        if self.total is not None and not self.is_complete:
            raise UnusableAnswer(
                _("%(endpoint)s ended after %(received)s of %(total)s objects.")
                % {
                    "endpoint": self.endpoint,
                    "received": f"{self.received:,}",
                    "total": f"{self.total:,}",
                }
            )

    def follow(self, next_link: str | None) -> bool:
        """Take the cursor of a page's link; return whether there may be a next page.

        Without a total, only an empty page or a Link header is the end: servers may
        send less than was asked for. Raises UnusableAnswer if a cursor comes again.
        """
        has_links = next_link is not None or self.cursor
        if self.total is None and has_links and not next_link:
            return False
        self.cursor = _cursor(next_link)
        if self.cursor in self.cursors:
            raise self.without_end()
        if self.cursor:
            self.cursors.add(self.cursor)
        return True

    def without_end(self) -> UnusableAnswer:
        return UnusableAnswer(
            _("%(endpoint)s has no end.") % {"endpoint": self.endpoint}
        )


class RestServer:
    """List the objects of a OneRoster server, page by page."""

    def __init__(self, source: FeedSource, client: HttpClient) -> None:
        version = str(source.options.get("version") or "1.1")
        address = source.address.strip().rstrip("/")
        # Vendors document the address with and without this part.
        address = re.split(r"/ims/oneroster\b", address)[0].rstrip("/")
        self._base = address + SERVICES[version]
        self._client = client
        self._authorization = authorization_of(source, client)
        self._page_size = int(str(source.options.get("page_size") or PAGE_SIZE))
        self._has_seen_cursor = False
        self.host = ""
        self.ignored = IgnoredNames()

    def pages(
        self, collection: str, endpoint: str, since: datetime | None
    ) -> Iterator[list[Json]]:
        """Yield the pages of a listing, each until the next one is asked for.

        Raises DownloadFailed, FilterRefused.
        """
        listing = Listing(endpoint, self._page_size)
        for number in range(MOST_PAGES):
            # Some servers send the size of a page as the total. In a full
            # download, whatever they leave out would seem to have left.
            is_complete = number > 0 and listing.is_complete
            is_short = listing.is_short(self._page_size, number)
            page = self._page(
                collection,
                endpoint,
                listing.received,
                since,
                may_end=is_complete or (number > 0 and is_short),
                cursor=listing.cursor,
            )
            if page is None:
                return
            if number and (page.objects or not is_complete):
                listing.check_total(page.total)
            listed = [str(item.get("sourcedId")) for item in page.objects]
            if listed == listing.first_page and (
                is_complete
                or (number == 1 and is_short and self._has_cursors(endpoint))
            ):
                # The server ignores the offset and sent everything at once.
                return
            listing.add(listed, page.total)
            if not page.objects:
                listing.check_end()
                return
            yield page.objects
            # Two pages at once would take twice the memory.
            page.objects.clear()
            if listing.is_complete and since is not None:
                return
            if not listing.follow(page.next_link):
                return
            self._has_seen_cursor = self._has_seen_cursor or bool(listing.cursor)
        raise listing.without_end()

    def _page(
        self,
        collection: str,
        endpoint: str,
        offset: int,
        since: datetime | None,
        *,
        may_end: bool = False,
        cursor: str = "",
    ) -> Page | None:
        """Fetch a page; None if the server need not offer this collection."""
        query = {"limit": str(self._page_size), "offset": str(offset)}
        if since is not None:
            when = since.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
            query["filter"] = f"dateLastModified>'{when}'"
        # A link can name another server, which must not get the token: only its
        # query is used.
        reply = self._get(f"{self._base}/{endpoint}?{cursor or urlencode(query)}")
        if offset == 0 and reply.status in OPTIONAL.get(collection, ()):
            self.ignored.add_missing(collection)
            return None
        if offset == 0 and reply.status in (400, 413, 422, 501):
            if self._page_size > SMALL_PAGE_SIZE:
                self._page_size = SMALL_PAGE_SIZE
                return self._page(collection, endpoint, offset, since)
            if since is not None:
                raise FilterRefused
        if may_end and reply.status in (204, 400, 404, 416):
            # Beyond the end, some servers have no page.
            return Page([], None, None)
        reply.check()
        # Some servers have no empty list. The first page is never taken for one.
        is_null = (offset or cursor) and re.fullmatch(
            rb'\s*(\{\s*"\w+"\s*:\s*)?null\s*\}?\s*', reply.content[:200]
        )
        return Page(
            [] if is_null else _objects(reply.content, endpoint, collection),
            _total(reply.headers.get("x-total-count"), endpoint),
            _next_link(reply.headers.get("link")),
        )

    def _has_cursors(self, endpoint: str) -> bool:
        """Find out whether a page without a link is the last, by the smallest page."""
        if self._has_seen_cursor:
            return True
        reply = self._get(f"{self._base}/{endpoint}?limit=1&offset=0")
        reply.check()
        return bool(_cursor(_next_link(reply.headers.get("link"))))

    def _get(self, url: str) -> Reply:
        """Send a request, and again after errors that may pass."""
        for wait in DELAYS:
            try:
                reply = self._get_once(url)
            except DownloadFailed as error:
                if not error.may_retry:
                    raise
            else:
                if reply.status == 401 and self._authorization.renew():
                    continue
                if reply.status != 429 and reply.status not in PASSING:
                    return reply
                wait = max(wait, _retry_after(reply.headers.get("retry-after", "")))
                if wait > LONGEST_RETRY_AFTER:
                    return reply
            time.sleep(self._client.deadline.shorten(wait))
        return self._get_once(url)

    def _get_once(self, url: str) -> Reply:
        with self._client.request(
            "GET",
            url,
            headers={"Accept": "application/json", "Accept-Encoding": "gzip"},
            authorize=self._authorization.headers,
        ) as answer:
            self.host = answer.url.host
            content = b""
            if 200 <= answer.status < 300:
                content = answer.read(PAGE_BYTES)
                self._authorization.confirm()
            return Reply(answer, answer.status, answer.headers, content)


@dataclass(frozen=True)
class Reply:
    answer: Answer
    status: int
    headers: Mapping[str, str]
    content: bytes

    def check(self) -> None:
        check_status(self.answer)


def _objects(content: bytes, endpoint: str, collection: str) -> list[Json]:
    """Return the objects of a page, in any of the usual envelopes."""
    if (
        len(content) >= PAGE_BYTES
        or sum(map(content.count, (b",", b":", b"[", b"{"))) > MOST_SIGNS
    ):
        raise UnusableAnswer(_(TOO_MUCH).format(endpoint))
    try:
        page = json.loads(content)
    except (ValueError, RecursionError):
        raise UnusableAnswer(
            _("%(endpoint)s answered with no valid JSON.") % {"endpoint": endpoint}
        ) from None
    if isinstance(page, dict):
        lists = {
            name.casefold(): value
            for name, value in page.items()
            if isinstance(value, list)
        }
        page = lists.get(collection.casefold())
        if page is None and len(lists) == 1:
            [page] = lists.values()
    if not isinstance(page, list) or not all(isinstance(item, dict) for item in page):
        raise UnusableAnswer(
            _("%(endpoint)s answered with no list of %(collection)s.")
            % {"endpoint": endpoint, "collection": collection}
        )
    for item in page:
        if not is_storable(identifier := str(item.get("sourcedId"))):
            raise UnusableAnswer(name_unstorable(collection, identifier, "sourcedId"))
    return page


def _total(text: str | None, endpoint: str) -> int | None:
    """Return X-Total-Count, which some servers write as a decimal number."""
    if text is None or not text.strip():
        return None
    match = re.fullmatch(r"(\d{1,12})(\.0*)?", text.strip().replace(",", ""))
    if match is None:
        raise UnusableAnswer(
            _("The total of %(endpoint)s is no number.") % {"endpoint": endpoint}
        )
    return int(match[1])


def _next_link(link: str | None) -> str | None:
    """Return the address with rel=next of a Link header, blank if it has none."""
    if link is None:
        return None
    match = re.search(r"<([^<>]*)>[^<>]*;\s*rel=[\"']?next\b", link, re.I)
    return match[1].strip() if match else ""


def _cursor(link: str | None) -> str:
    """Return the query of a link that leads further by anything but an offset."""
    query = urlsplit(link or "").query
    names = {name.casefold() for name in parse_qs(query, keep_blank_values=True)}
    return "" if "offset" in names or not names - {"limit"} else query


def _retry_after(text: str) -> float:
    """Return the seconds that a server asks to wait; it may name a time."""
    text = text.strip()
    if text.isdigit():
        return float(text[:9])
    try:
        when = parsedate_to_datetime(text)
    except ValueError:
        return 0
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    return max(0.0, (when - datetime.now(UTC)).total_seconds())


def _shown(total: int | None) -> str:
    return "none" if total is None else f"{total:,}"
