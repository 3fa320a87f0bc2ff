"""What a tab without JavaScript remembers: in its addresses and forms, signed.

A tab with JavaScript keeps its number, its next revision and what it has seen in
memory. Here the address carries the tab, and each form what its page had shown.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from urllib.parse import urlencode

from django.core import signing
from django.core.signing import BadSignature, Signer
from django.http import HttpRequest
from django.urls import reverse

from survey.taking.published import Published
from survey.taking.saved_answers import SavedAnswers
from survey.taking.session import RespondentSession
from survey.taking.storage import TABS

TAB_SALT = "survey.taking.plain.tab"
FORM_SALT = "survey.taking.plain.form"


@dataclass(frozen=True, slots=True)
class PlainTab:
    # The tab's first revision. Its low bits are drawn at random; all revisions
    # of the tab have them.
    base: int
    respondent_id: int

    def next_revision(self, lowest: int) -> int:
        return lowest + (self.base - lowest) % TABS

    def wrote(self, revision: int) -> bool:
        """Return whether this tab saved a row, which it may then show.

        Rows of before the tab was opened are never its own, so that drawing tabs
        until the bits fit reveals no answer of another device.
        """
        return revision >= self.base and (revision - self.base) % TABS == 0

    def address(
        self, route: str, *args: int, tag: str, language: str, **query: str
    ) -> str:
        fields = {"language": language, "for": tag, "plain": self.signed()} | query
        return f"{reverse(route, args=args)}?{urlencode(fields)}"

    def signed(self) -> str:
        return _signer(self.respondent_id).sign(str(self.base))


def review_addresses(
    tab: PlainTab, session: RespondentSession, language: str
) -> dict[str, str]:
    """Return where the review leads to from a tab without JavaScript."""
    common = {"tag": session.tag, "language": language, "review": "1"}
    start = tab.address("survey_plain_start", **common)
    path, _, query = start.partition("?")
    return {
        "take": start,
        "question": f"{path}{{n}}/?{query}#item-{{item}}",
    }


def open_tab(session: RespondentSession, saved: SavedAnswers) -> PlainTab:
    base = saved.revision + secrets.randbelow(TABS)
    return PlainTab(base, session.respondent_id)


def read_tab(request: HttpRequest, session: RespondentSession) -> PlainTab | None:
    """Return the tab of a request, None unless it is this respondent's."""
    fields = request.POST if request.method == "POST" else request.GET
    signed = fields.get("plain", "")
    try:
        base = int(_signer(session.respondent_id).unsign(signed))
    # Signed by another release, it may be no number.
    except (BadSignature, ValueError):
        return None
    return PlainTab(base, session.respondent_id)


def _signer(respondent_id: int) -> Signer:
    # Addresses stay in the browser's history, so they do not name the respondent.
    return Signer(salt=f"{TAB_SALT}.{respondent_id}")


@dataclass(frozen=True, slots=True)
class PlainForm:
    """What a form was made of. `before` are digests of the answers that it showed."""

    respondent_id: int
    page: int
    revision: int
    seen: int
    shown: Sequence[int]
    before: Mapping[str, str]

    def signed(self) -> str:
        return signing.dumps(asdict(self), salt=FORM_SALT, compress=True)

    def is_of(self, session: RespondentSession, n: int) -> bool:
        return (self.respondent_id, self.page) == (session.respondent_id, n)

    def is_changed(self, name: str, text: str) -> bool:
        return self.before.get(name) != short_digest(text)


def make_form(
    tab: PlainTab,
    published: Published,
    n: int,
    saved: SavedAnswers,
    texts: Mapping[str, str],
) -> PlainForm:
    """Describe the form of a page that shows these `texts`, by item."""
    return PlainForm(
        respondent_id=tab.respondent_id,
        page=n,
        revision=tab.next_revision(saved.revision),
        seen=saved.seen[n - 1],
        shown=saved.shown[n - 1],
        before={name: short_digest(text) for name, text in texts.items()},
    )


def read_form(signed: str) -> PlainForm | None:
    """Return what a form was made of, None if this release can't read it.

    During a deploy, forms come from the release before and from the next one.
    """
    try:
        fields = signing.loads(signed, salt=FORM_SALT)
    except BadSignature:
        return None
    match fields:
        case {
            "respondent_id": int(),
            "page": int(),
            "revision": int(),
            "seen": int(),
            "shown": list(),
            "before": dict(),
            **unknown,
        } if not unknown:
            return PlainForm(**fields)
    return None


def short_digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def own_items(
    tab: PlainTab, published: Published, saved: SavedAnswers
) -> Iterable[str]:
    """List the items whose rows this tab saved."""
    return (
        published.names[item]
        for item, revision in saved.revisions.items()
        if item in published.names and tab.wrote(revision)
    )
