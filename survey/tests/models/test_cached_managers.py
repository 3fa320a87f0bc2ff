"""Cached managers find published rows only, and cache nothing that may change."""

from __future__ import annotations

import hashlib
import threading

import pytest
from django.apps import apps
from django.core.cache import cache
from django.db import IntegrityError, connection, transaction
from django.test.utils import CaptureQueriesContext

from survey.database.replica import health
from survey.database.routers import forced_reads
from survey.instrument.definitions.publishing import publish_survey
from survey.models import Block, Item, Option, OptionSet, Page, PublishedSurvey, Survey
from survey.models.cached import FrozenManager, FrozenQuerySet, pack
from survey.taking import published
from survey.taking.published import SurveyNotFound, forget_published, published_survey

pytestmark = pytest.mark.django_db

INSTRUMENT = (Survey, OptionSet, Option, Page, Block, Item)


@pytest.fixture
def draft() -> Survey:
    survey = Survey.objects.create(
        name="climate",
        version="1",
        languages=[{"code": "en", "name": "English", "direction": "ltr"}],
    )
    agree = OptionSet.objects.create(survey=survey, name="agree")
    Option.objects.create(option_set=agree, position=0, value="1")
    page = Page.objects.create(survey=survey, position=0, name="page1")
    block = Block.objects.create(page=page, position=0)
    Item.objects.create(
        survey=survey,
        block=block,
        position=0,
        name="safe",
        kind="select_one",
        option_set=agree,
    )
    return survey


def statements(act) -> int:
    with CaptureQueriesContext(connection) as queries:
        act()
    return len(queries)


def test_published_row_is_read_from_the_database_once(draft):
    publish_survey(survey=draft)
    for model in (*INSTRUMENT, PublishedSurvey):
        row = model.objects.get()
        find = lambda rows=model.cached, pk=row.pk: list(rows.filter(pk=pk))  # noqa: E731
        assert statements(find) == 1
        assert statements(find) == 0
        assert find() == [row]


def test_draft_is_neither_found_nor_cached(draft):
    for model in INSTRUMENT:
        row = model.objects.get()
        assert list(model.cached.filter(pk=row.pk)) == []
    publish_survey(survey=draft)
    # The empty results were not cached.
    for model in INSTRUMENT:
        assert model.cached.filter(pk=model.objects.get().pk).exists()
        assert len(model.cached.filter(pk=model.objects.get().pk)) == 1


def test_every_survey_model_has_a_cached_manager_that_is_not_the_default():
    managed = {model for model in apps.get_models() if hasattr(model, "cached")}
    assert managed == {*INSTRUMENT, PublishedSurvey}
    for model in managed:
        assert not isinstance(model._default_manager, FrozenManager)
        assert not isinstance(model._base_manager, FrozenManager)


def test_cached_row_cannot_become_stale(draft):
    publish_survey(survey=draft)
    item = Item.cached.get(name="safe", survey_id=draft.pk)
    with pytest.raises(IntegrityError, match="frozen"), transaction.atomic():
        Item.objects.filter(pk=item.pk).update(name="unsafe")
    assert Item.cached.get(name="safe", survey_id=draft.pk) == item


def test_rolled_back_rows_are_not_cached(draft):
    def rolled_back() -> str:
        with transaction.atomic():
            digest = publish_survey(survey=draft).digest
            assert len(PublishedSurvey.cached.filter(digest=digest)) == 1
            transaction.set_rollback(True)
        return digest

    digest = rolled_back()
    assert list(PublishedSurvey.cached.filter(digest=digest)) == []


def test_twin_rolled_back_rows_would_be_cached_without_the_bypass(draft, monkeypatch):
    monkeypatch.setattr("survey.models.cached.in_transaction", lambda: False)
    with pytest.raises(AssertionError):
        test_rolled_back_rows_are_not_cached(draft)


def test_transaction_reads_the_database_and_not_the_cache(draft):
    digest = publish_survey(survey=draft).digest
    rows = PublishedSurvey.cached.filter(digest=digest)
    list(rows)
    with transaction.atomic():
        assert statements(lambda: list(rows.all())) == 1
    assert statements(lambda: list(rows.all())) == 0


@pytest.mark.parametrize(
    "entry",
    [
        "words",
        7,
        ["words"],
        {"rows": 7},
        {"rows": [[1]]},
        {"names": ["digest"], "rows": [[]]},
        {"names": ["nothing"], "rows": [["x"]]},
        {"names": ["published_at"], "rows": [["yesterday"]]},
    ],
)
def test_cache_entry_that_is_not_a_list_of_rows_is_replaced(draft, entry):
    digest = publish_survey(survey=draft).digest
    rows = PublishedSurvey.cached.filter(digest=digest)
    list(rows)
    (key,) = cache_keys(rows)
    cache.set(key, entry, timeout=None)
    assert [row.digest for row in rows.all()] == [digest]
    assert statements(lambda: list(rows.all())) == 0


def test_cached_rows_equal_those_of_the_database(draft):
    draft.source = b"\x00workbook\xff"
    draft.save()
    publish_survey(survey=draft)
    for model in (*INSTRUMENT, PublishedSurvey):
        for rows in (model.cached.all(), model.cached.only("pk")):
            read, cached = list(rows), list(rows.all())
            assert [values(row) for row in cached] == [values(row) for row in read]
            assert cached[0]._state.db == read[0]._state.db
            assert cached[0]._state.adding is False


def values(row) -> dict[str, object]:
    loaded = {name: v for name, v in vars(row).items() if name != "_state"}
    if loaded.get("source"):
        loaded["source"] = bytes(loaded["source"])
    return loaded


def test_counts_are_not_cached(draft):
    publish_survey(survey=draft)
    assert statements(lambda: Item.cached.count()) == 1
    assert statements(lambda: Item.cached.count()) == 1


def test_rows_of_raw_queries_are_not_cached(draft):
    find = lambda: list(Item.cached.raw("SELECT * FROM survey_item"))  # noqa: E731
    assert statements(find) == 1
    assert statements(find) == 1


def test_saving_a_draft_does_not_touch_the_cache(draft, monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("the cache was used")

    for name in ("get", "get_many", "set", "set_many", "delete_many"):
        monkeypatch.setattr(cache, name, refuse)
    draft.title = {"en": "Our school"}
    draft.save(update_fields=["title"])


# `published_survey` in a process that has not loaded the survey yet


def cache_keys(rows) -> list[str]:
    return [rows._iterable_class(rows).query_key()]


def test_new_process_finds_the_survey_in_the_cache(publish):
    digest = publish().digest
    assert statements(lambda: published_survey(digest)) == 1
    forget_published()
    assert statements(lambda: published_survey(digest)) == 0


def test_forged_cache_entry_is_rejected_and_replaced(publish):
    row = publish()
    rows = PublishedSurvey.cached.filter(digest=row.digest)
    list(rows)
    (key,) = cache_keys(rows)
    row.definition = row.definition.replace("Our school", "Your bank")
    assert row.digest != hashlib.sha256(row.definition.encode()).hexdigest()
    cache.set(key, pack([row]), timeout=None)

    assert published_survey(row.digest).title_in("en") == "Our school"
    forget_published()
    assert statements(lambda: published_survey(row.digest)) == 1
    forget_published()
    assert statements(lambda: published_survey(row.digest)) == 0


def test_unknown_survey_costs_one_statement_each_time():
    def ask() -> None:
        with pytest.raises(SurveyNotFound):
            published_survey("0" * 64)

    assert statements(ask) == 1
    assert statements(ask) == 1


@pytest.fixture
def lag_and_fail(monkeypatch, settings):
    """Simulate a replica that lags, and fails right after the first query."""
    monkeypatch.setitem(settings.DATABASES, "replica", {})
    settings.MASTER_DATABASE = "default"
    settings.DATABASE_POOL = {"replica": 1}
    settings.DATABASE_ROUTERS = ["survey.database.routers.ForcedReadRouter"]
    # No thread shall check a replica that does not exist.
    monkeypatch.setattr(threading.Thread, "start", lambda thread: None)
    asked = []
    read = published._definition

    def definition(rows):
        asked.append(rows.db)
        if len(asked) == 1:
            health.mark_down()
            return None
        return read(rows)

    monkeypatch.setattr(published, "_definition", definition)
    yield asked
    health.mark_up()


def test_survey_missing_on_a_failing_replica_is_read_from_the_primary(
    publish, lag_and_fail
):
    digest = publish().digest
    with forced_reads(PublishedSurvey):
        assert published_survey(digest).digest == digest
    assert lag_and_fail == ["replica", "default"]


def test_twin_survey_is_not_found_if_the_database_is_chosen_again(
    publish, lag_and_fail, monkeypatch
):
    digest = publish().digest
    monkeypatch.setattr(FrozenQuerySet, "using", lambda rows, alias: rows)
    with forced_reads(PublishedSurvey), pytest.raises(SurveyNotFound):
        published_survey(digest)


@pytest.mark.parametrize("digest", ["x", "0" * 63, "0" * 65, "F" * 64, "0" * 2000])
def test_invalid_digest_costs_no_query(client, db, digest):
    def ask(digest: str) -> None:
        address = f"/content/{digest}/any/en/1/"
        assert client.get(address).status_code == 404

    # Error pages read the name of the state twice a minute.
    client.get("/nothing/")
    assert statements(lambda: ask(digest)) == 0
    # The twin: a valid digest.
    assert statements(lambda: ask("0" * 64)) == 1
