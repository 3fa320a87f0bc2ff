"""Create, change, pause and remove feeds, each with an audit entry.

Credentials are sealed when they are stored. Nothing returns them but `unseal`,
for a download.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import time
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.audit import record_owned
from accounts.models import District, User
from survey.models import Administration, FeedScan, RosterFeed
from survey.people.rosters.feeds.credentials import FeedKeyMissing, seal
from survey.people.rosters.feeds.outcomes import (
    delete_downloads,
    drop_uploads,
)
from survey.people.rosters.oneroster.store import OneRosterStore
from survey.people.rosters.retention import delete_files
from survey.work.files import local_copy

NAME_TAKEN = gettext_lazy("This district has another roster sync with this name.")
TWO_FEEDS = gettext_lazy(
    "The roster sync “{feed}” already brings people of this district to"
    " “{administration}”. Two roster syncs would withdraw each other's people. Take"
    " the survey round out of one roster sync, or remove the roster sync that you no"
    " longer need."
)
# What names the source: with another one, the data of the old one is dropped.
SOURCE = ("kind", "address", "options")
SETTINGS = (*SOURCE, "name", "identity", "window_begins", "window_ends")
PORTS = {"http": 80, "https": 443, "sftp": 22}


class CredentialsNeeded(ValidationError):
    """The credentials would be sent to another server than they were entered for."""

    def __init__(self) -> None:
        super().__init__(
            _(
                "The server is another one. Enter the credentials again, so that"
                " nobody gets those of the old server."
            )
        )


def create_feed(
    *,
    district: District,
    kind: str,
    name: str,
    address: str,
    by: User,
    credentials: Mapping[str, str] | None = None,
    options: Mapping[str, object] | None = None,
    identity: str = "sourcedId",
    administrations: Iterable[Administration] = (),
    window_begins: time | None = None,
    window_ends: time | None = None,
    request: HttpRequest | None = None,
) -> RosterFeed:
    """Create a feed that `by` owns.

    Raises ValidationError for a name in use, and for an administration that another
    feed of the district brings people to.
    """
    try:
        with transaction.atomic():
            feed = RosterFeed.objects.create(
                district=district,
                by=by,
                kind=kind,
                name=name,
                address=address,
                credentials=_sealed(credentials),
                credentials_set_at=timezone.now() if credentials else None,
                options=dict(options or {}),
                identity=identity,
                window_begins=window_begins,
                window_ends=window_ends,
            )
            _set_administrations(feed, administrations)
            record_owned("add feed", feed, by=by, request=request, after=_shown(feed))
    except IntegrityError as error:
        raise ValidationError({"name": NAME_TAKEN}) from error
    return feed


def lock_feed(feed: RosterFeed) -> RosterFeed:
    """Lock a feed within a transaction, and return it as it is now.

    Its unfinished scan comes first, as in the jobs, which lock both when a stage
    ends: in another order, each could wait for the other.
    """
    unfinished = feed.scans.filter(state__in=FeedScan.UNFINISHED)
    list(unfinished.select_for_update().values_list("pk"))
    return RosterFeed.objects.select_for_update().get(pk=feed.pk)


def change_feed(
    feed: RosterFeed,
    *,
    by: User,
    request: HttpRequest | None = None,
    credentials: Mapping[str, str] | None = None,
    administrations: Iterable[Administration] | None = None,
    **settings: Any,
) -> None:
    """Change the given settings; without `credentials` the stored ones stay.

    The user who changes a feed becomes its owner. Raises CredentialsNeeded if the
    stored credentials would be sent to another server, and ValidationError for a
    name in use, for an administration of another feed, for a removed feed, or while a
    scan is being applied.
    """
    if unknown := settings.keys() - set(SETTINGS):
        raise TypeError(f"feeds have no {', '.join(sorted(unknown))}")
    try:
        with transaction.atomic():
            current = lock_feed(feed)
            if current.removed_at is not None:
                raise ValidationError(_("This roster sync was removed."))
            before = _shown(current)
            old_servers = servers_of(current)
            new_source = any(
                settings.get(field, getattr(current, field)) != getattr(current, field)
                for field in SOURCE
            )
            _note_identity(current, settings.get("identity", current.identity))
            for field, value in settings.items():
                setattr(current, field, value)
            servers_change = servers_of(current) != old_servers
            if credentials is not None:
                current.credentials = _sealed(credentials)
                current.credentials_set_at = timezone.now() if credentials else None
            # Somebody who does not know the credentials could read them there.
            elif current.credentials and servers_change:
                raise CredentialsNeeded
            if new_source:
                _forget_source(current, servers_change=servers_change)
            current.by, current.is_store_applied = by, False
            current.save()
            if administrations is not None:
                _set_administrations(current, administrations)
            after = _shown(current)
            if credentials is not None:
                after["credentials"] = "changed"
            _cancel_scans(current, _("The roster sync was changed."))
            record_owned(
                "change feed",
                current,
                by=by,
                request=request,
                before=before,
                after=after,
            )
    except IntegrityError as error:
        raise ValidationError({"name": NAME_TAKEN}) from error
    feed.refresh_from_db()


def _forget_source(feed: RosterFeed, *, servers_change: bool) -> None:
    """Forget what the earlier source sent; its files are deleted on commit."""
    transaction.on_commit(partial(delete_files, feed.store))
    feed.etag = feed.digest = feed.store = ""
    if servers_change:
        feed.host_key = ""
    feed.loaded_at = feed.last_full_at = None


def _note_identity(feed: RosterFeed, identity: str) -> None:
    """Let the next scan tell both IDs of everybody, if another column has the ID.

    So nobody is added a second time.
    """
    if identity != feed.identity:
        if feed.store and not feed.previous_identity:
            feed.previous_identity = feed.identity
        elif identity == feed.previous_identity:
            feed.previous_identity = ""


def _set_administrations(
    feed: RosterFeed, administrations: Iterable[Administration]
) -> None:
    """Choose whose rosters a feed brings.

    Raises ValidationError if another feed of the district brings one of them: a roster
    withdraws the people of the district whom it does not list.
    """
    chosen = list(administrations)
    # Of two feeds at once, the second one sees the first.
    District.objects.select_for_update(no_key=True).get(pk=feed.district_id)
    feeds = RosterFeed.objects.current().filter(district=feed.district_id)
    for administration in chosen:
        taken = feeds.filter(administrations=administration).exclude(pk=feed.pk)
        if rival := taken.first():
            message = TWO_FEEDS.format(feed=rival, administration=administration.title)
            raise ValidationError({"administrations": message})
    feed.administrations.set(chosen)


def _sealed(credentials: Mapping[str, str] | None) -> bytes:
    try:
        return seal(credentials) if credentials else b""
    except FeedKeyMissing as error:
        raise ValidationError(str(error)) from error


def servers_of(feed: RosterFeed) -> list[tuple[str, str, int | None]]:
    """Return scheme, host and port of each server to which credentials are sent."""
    addresses = (feed.address, str(feed.options.get("token_url") or ""))
    return [_server_of(address.strip()) for address in addresses]


def _server_of(address: str) -> tuple[str, str, int | None]:
    try:
        # Addresses of SFTP may lack their scheme.
        parts = urlsplit(address if "://" in address else f"sftp://{address}")
        port = parts.port or PORTS.get(parts.scheme)
    except ValueError:
        return "", address, None
    return parts.scheme, parts.hostname or "", port


@transaction.atomic
def pause_feed(
    feed: RosterFeed,
    *,
    is_paused: bool,
    by: User,
    request: HttpRequest | None = None,
) -> None:
    """Pause or resume the scheduled scans."""
    feeds = RosterFeed.objects.filter(pk=feed.pk, is_paused=not is_paused)
    if feeds.update(is_paused=is_paused):
        action = "pause feed" if is_paused else "resume feed"
        record_owned(action, feed, by=by, request=request)


def new_host_key(feed: RosterFeed, newest: FeedScan | None) -> str:
    """Return the key that the newest scan refused, because another one is pinned."""
    if newest is None or newest.state != FeedScan.State.FAILED or not feed.host_key:
        return ""
    return newest.host_key if newest.host_key != feed.host_key else ""


@transaction.atomic
def accept_host_key(
    feed: RosterFeed, *, key: str, by: User, request: HttpRequest | None = None
) -> None:
    """Pin the new key of an SFTP server, exactly as a page has shown it.

    Raises ValidationError if it is not the one that the last scan met.
    """
    current = RosterFeed.objects.select_for_update().get(pk=feed.pk)
    if not key or key != new_host_key(current, current.scans.order_by("-pk").first()):
        raise ValidationError(_("The server showed another key. Check it again."))
    before, current.host_key = current.host_key, key
    current.save(update_fields=["host_key"])
    record_owned(
        "accept host key",
        current,
        by=by,
        request=request,
        before={"host_key": before},
        after={"host_key": key},
    )


@transaction.atomic
def remove_feed(
    feed: RosterFeed, *, by: User, request: HttpRequest | None = None
) -> None:
    """Remove a feed, its credentials and its data. Its people and history stay.

    Raises ValidationError while a scan is being applied.
    """
    current = lock_feed(feed)
    if current.removed_at is not None:
        return
    old_store = current.store
    current.removed_at, current.credentials = timezone.now(), b""
    current.store = current.etag = current.digest = ""
    current.save()
    _cancel_scans(current, _("The roster sync was removed."))
    record_owned("remove feed", current, by=by, request=request, before=_shown(current))
    transaction.on_commit(lambda: delete_files(old_store))


def identifier_samples(feed: RosterFeed) -> Mapping[str, Sequence[str]]:
    """Return three IDs of each kind that the feed's data has, once it was scanned."""
    if not feed.store:
        return {}
    with suppress(FileNotFoundError), local_copy(feed.store) as path:
        return OneRosterStore(path).identifier_samples()
    return {}


def _cancel_scans(feed: RosterFeed, message: str) -> None:
    """Cancel scans that began with other settings."""
    states = (*FeedScan.UNFINISHED, FeedScan.State.HELD, FeedScan.State.TRIED)
    for scan in feed.scans.select_for_update().filter(state__in=states):
        is_unfinished = scan.state in FeedScan.UNFINISHED
        if is_unfinished and scan.uploads.filter(state="applying").exists():
            raise ValidationError(
                _("A scan is being applied. Wait until it has ended.")
            )
        FeedScan.objects.filter(pk=scan.pk).update(
            state=FeedScan.State.CANCELLED, message=message, ended_at=timezone.now()
        )
        drop_uploads(scan)
        delete_downloads(scan)


def _shown(feed: RosterFeed) -> dict[str, object]:
    """Return the settings for the audit log: neither credentials nor options.

    An option may be a secret that somebody typed into the wrong field.
    """
    return {
        "name": feed.name,
        "kind": feed.kind,
        "identity": feed.identity,
        "administrations": sorted(feed.administrations.values_list("name", flat=True)),
        "window": (
            f"{feed.window_begins:%H:%M}-{feed.window_ends:%H:%M}"
            if feed.window_begins and feed.window_ends
            else ""
        ),
    }
