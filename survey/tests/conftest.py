"""The known cast: Maya at Lincoln, and Noor at Roosevelt in another district."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from importlib import import_module
from typing import Any

import pytest
from django.conf import settings
from django.contrib.sessions.backends.base import SessionBase
from django.core.cache import cache, caches
from django.test import Client
from django.utils import timezone
from playwright.sync_api import Browser as ChromiumBrowser

from accounts.models import District, School
from accounts.tests.conftest import staff  # noqa: F401
from settings.tests.patience import patience
from survey.fieldwork.administrations.changes import add_partition
from survey.fieldwork.administrations.subgroups import default_subgroups
from survey.fieldwork.message_platforms.hooks import administration_changed
from survey.fieldwork.open_codes.lookup import forget_open_codes
from survey.models import (
    Administration,
    Block,
    Item,
    OptionSet,
    Page,
    PublishedSurvey,
    Respondent,
    Role,
    Survey,
)
from survey.people.access_codes import code_for, current_version, digest_for
from survey.taking.places import forget_place_of_state
from survey.taking.published import forget_published
from survey.taking.resume_cookie import forget_digests
from survey.taking.session import tag_for
from survey.tests.chromium import open_chromium, serve_modules
from survey.tests.database_flush import quick_flush  # noqa: F401

LANGUAGES = [
    {"code": "en", "name": "English", "direction": "ltr"},
    {"code": "es", "name": "Español", "direction": "ltr"},
]
THREE_LANGUAGES = [*LANGUAGES, {"code": "ar", "name": "العربية", "direction": "rtl"}]
AGREE = [
    {"value": str(n), "label": {"en": text, "es": text}, "attributes": {}}
    for n, text in enumerate(("disagree", "unsure", "agree"), start=1)
]
SUBJECTS = [
    {"value": value, "label": {"en": value}, "attributes": {}}
    for value in ("art", "maths", "sport")
]
PAGES: list[dict[str, dict[str, Any]]] = [
    {
        "safe": {"kind": "select_one", "option_set": "agree", "required": True},
        "subjects": {"kind": "select_multiple", "option_set": "subjects"},
        "age": {
            "kind": "integer",
            "constraint": ["and", [">=", ["$", "age"], 4], ["<=", ["$", "age"], 19]],
            "local": ["constraint"],
        },
        "why_art": {
            "kind": "text",
            "relevant": ["selected", ["$", "subjects"], "art"],
            "local": ["relevant"],
        },
        "comment": {"kind": "text"},
    },
    {
        "welcome": {"kind": "note"},
        "born": {"kind": "date"},
        "bus": {"kind": "range", "range": {"start": "0", "end": "60", "step": "5"}},
        "teen": {
            "kind": "select_one",
            "option_set": "agree",
            "relevant": [">=", ["$", "age"], 13],
        },
        "promise": {"kind": "acknowledge"},
    },
    {"last": {"kind": "text"}},
]


def clear_sessions() -> None:
    """Wait for a Redis that takes longer than a page save would wait for it."""
    latest = time.monotonic() + patience(10)
    while True:
        try:
            return caches[settings.SESSION_CACHE_ALIAS].clear()
        except ConnectionError:
            if time.monotonic() > latest:
                raise
            time.sleep(0.1)


@pytest.fixture(autouse=True)
def empty_caches() -> Iterator[None]:
    forget_published()
    forget_digests()
    forget_place_of_state()
    forget_open_codes()
    cache.clear()
    # Keys of respondents come again when a test has emptied the tables.
    clear_sessions()
    yield
    forget_published()
    forget_digests()
    forget_place_of_state()
    forget_open_codes()


@pytest.fixture(scope="session")
def chromium() -> Iterator[ChromiumBrowser]:
    with open_chromium() as browser:
        yield browser


@pytest.fixture(scope="session")
def modules() -> Iterator[str]:
    """Return the address of a server with the JavaScript modules."""
    with serve_modules() as address:
        yield address


@pytest.fixture
def publish(db: None) -> Callable[..., PublishedSurvey]:
    """Return a function that publishes a small survey without a workbook."""
    return publish_items


def publish_items(
    pages: list[dict[str, dict[str, Any]]] = PAGES,
    name: str = "climate",
    languages: list[dict[str, str]] = LANGUAGES,
) -> PublishedSurvey:
    survey = Survey.objects.create(name=name, version="1")
    items = create_pages(survey, pages)
    definition = {
        "format": 1,
        "name": name,
        "version": "1",
        "title": {"en": "Our school", "es": "Nuestra escuela"},
        "languages": languages,
        "option_sets": {"agree": AGREE, "subjects": SUBJECTS},
        "pages": [
            {
                "name": f"page{n}",
                "title": {"en": f"Page {n}", "es": f"Página {n}"},
                "blocks": [{"label": {}, "grid": False, "items": list(page_items)}],
            }
            for n, page_items in enumerate(pages, start=1)
        ],
        "items": items,
        "order": list(items),
    }
    text = json.dumps(
        definition, sort_keys=True, ensure_ascii=False, separators=(",", ":")
    )
    return PublishedSurvey.objects.create(
        digest=hashlib.sha256(text.encode()).hexdigest(),
        survey=survey,
        definition=text,
    )


def create_pages(
    survey: Survey, pages: list[dict[str, dict[str, Any]]]
) -> dict[str, dict[str, Any]]:
    """Create the rows of the pages, and return their items as they are compiled."""
    items = {
        name: {"page": n, "label": {"en": f"About {name}", "es": f"De {name}"}, **item}
        for n, page_items in enumerate(pages, start=1)
        for name, item in page_items.items()
    }
    # A statement for each table, because most tests begin like this.
    names = {item["option_set"] for item in items.values() if "option_set" in item}
    option_sets = OptionSet.objects.bulk_create(
        OptionSet(survey=survey, name=name) for name in sorted(names)
    )
    of_name = {option_set.name: option_set for option_set in option_sets}
    blocks = Block.objects.bulk_create(
        Block(page=page, position=0)
        for page in Page.objects.bulk_create(
            Page(survey=survey, position=n, name=f"page{n}")
            for n in range(1, len(pages) + 1)
        )
    )
    rows = Item.objects.bulk_create(
        Item(
            survey=survey,
            block=blocks[item["page"] - 1],
            position=position,
            name=name,
            kind=item["kind"],
            option_set=of_name.get(item.get("option_set", "")),
        )
        for position, (name, item) in enumerate(items.items())
    )
    return {row.name: {"id": row.pk, **items[row.name]} for row in rows}


@pytest.fixture
def lincoln(db: None) -> School:
    riverside = District.objects.create(code="riverside", name="Riverside")
    return School.objects.create(district=riverside, code="lincoln", name="Lincoln")


@pytest.fixture
def roosevelt(db: None) -> School:
    lakeshore = District.objects.create(code="lakeshore", name="Lakeshore")
    return School.objects.create(district=lakeshore, code="roosevelt", name="Roosevelt")


@pytest.fixture
def administration(publish: Callable[..., PublishedSurvey]) -> Administration:
    return open_now(publish())


def open_now(published: PublishedSurvey) -> Administration:
    """Open the survey to students, from yesterday for a month.

    Without the checks of `open_administration`, which take 26 statements.
    """
    now = timezone.now()
    administration = Administration.objects.create(
        name="students-2027",
        published=published,
        role=Role.STUDENT,
        opens_at=now - timedelta(days=1),
        closes_at=now + timedelta(days=30),
        subgroups=default_subgroups(),
    )
    administration_changed(administration)
    add_partition(administration)
    return administration


def enrol(administration: Administration, school: School, **fields: Any) -> Respondent:
    """Create a respondent with a valid code and no identity."""
    respondent = Respondent(
        administration=administration,
        school=school,
        code_digest=b"to be replaced" + str(fields).encode(),
        code_key_version=current_version(),
        **fields,
    )
    respondent.save()
    respondent.code_digest = digest_for(code_of(respondent), current_version())
    respondent.save(update_fields=["code_digest"])
    return respondent


def code_of(respondent: Respondent) -> str:
    return code_for(respondent.pk, respondent.issue, respondent.code_key_version)


@pytest.fixture
def maya(administration: Administration, lincoln: School) -> Respondent:
    return enrol(administration, lincoln, grade="07", language="es")


@pytest.fixture
def noor(administration: Administration, roosevelt: School) -> Respondent:
    return enrol(administration, roosevelt, grade="08", language="en")


class Browser(Client):
    """Django's test client, with the requests of the survey's own page."""

    tag = ""

    @property
    def session(self) -> SessionBase:
        """Return the respondent's session, which has a store of its own."""
        engine = import_module(settings.RESPONDENT_SESSION_ENGINE)
        cookie = self.cookies.get(settings.SESSION_COOKIE_NAME)
        return engine.SessionStore(cookie and cookie.value)

    def log_in(self, respondent: Respondent) -> Browser:
        response = self.post("/", {"code": code_of(respondent)})
        assert response.status_code == 302, response.content
        self.tag = tag_for(respondent.pk)
        return self

    def bootstrap(self) -> dict[str, Any]:
        response = self.get("/take/", headers={"Accept": "application/json"})
        assert response.status_code == 200, response.content
        return response.json()

    def save(
        self, n: int, answers: object, revision: object, tag: str | None = None
    ) -> Any:
        return self.send(
            n, json.dumps({"revision": revision, "answers": answers}), tag=tag
        )

    def send(self, n: int, body: str | bytes, tag: str | None = None, **headers: str):
        # A login on another device ends this one's session, not its resume cookie.
        if tag is None:
            tag = self.session.get("taking", {}).get("tag") or self.tag
        return self.post(
            f"/take/pages/{n}/",
            body,
            content_type="application/json",
            headers={
                "Origin": "http://testserver",
                "X-Groundswell-Respondent": tag,
                **headers,
            },
        )


@pytest.fixture
def browser() -> Browser:
    return Browser()


FIRST_PAGE = {
    "safe": "3",
    "subjects": ["sport", "art"],
    "age": "12",
    "why_art": "colours",
    "comment": None,
}
SECOND_PAGE = {"born": "2014-02-28", "bus": "15", "teen": None, "promise": "OK"}
