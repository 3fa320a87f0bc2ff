"""Which database the router chooses; no server is contacted."""

from __future__ import annotations

import threading
from contextlib import nullcontext
from unittest.mock import Mock

import pytest
from django.conf import settings
from django.db import (
    OperationalError,
    ProgrammingError,
    connection,
    router,
    transaction,
)
from django.http import HttpResponse
from django.template import engines
from django.template.response import SimpleTemplateResponse
from django.test import override_settings

from accounts.models import School, User
from settings.tests.test_stack import value_of  # noqa: F401 - a fixture
from survey.database.pinning import serving
from survey.database.replica import health
from survey.database.replica.base import BEHIND, FallbackCursor
from survey.database.routers import (
    ForcedModelWritten,
    forced_reads,
    uses_forced_read_router,
)
from survey.models import (
    Administration,
    Item,
    Page,
    PublishedSurvey,
    Respondent,
    Response,
    Survey,
    Wave,
)

ROUTED = {
    "DATABASE_ROUTERS": ["survey.database.routers.ForcedReadRouter"],
    "MASTER_DATABASE": "default",
}


@pytest.fixture
def replica(monkeypatch):
    monkeypatch.setitem(settings.DATABASES, "replica", {})
    with override_settings(**ROUTED, DATABASE_POOL={"replica": 1}):
        yield
    health.mark_up()


@pytest.fixture
def no_watching_thread(monkeypatch):
    """Start no thread that would watch a replica that does not exist."""
    monkeypatch.setattr(threading.Thread, "start", lambda thread: None)


def test_a_view_reads_named_models_from_the_replica_and_others_from_the_primary(
    replica,
):
    read = {}

    @uses_forced_read_router(PublishedSurvey, Survey)
    def view(request):
        for model in (PublishedSurvey, Survey, Respondent, Administration, Wave):
            read[model] = router.db_for_read(model)
        return HttpResponse()

    assert view(None).status_code == 200
    assert read == {
        PublishedSurvey: "replica",
        Survey: "replica",
        Respondent: "default",
        Administration: "default",
        Wave: "default",
    }
    assert router.db_for_read(PublishedSurvey) == "default"


def test_nested_views_add_their_models(replica):
    with forced_reads(Survey):
        with forced_reads(Page):
            assert router.db_for_read(Survey) == "replica"
            assert router.db_for_read(Page) == "replica"
        assert router.db_for_read(Page) == "default"


def test_a_view_that_fails_resets_the_forced_models(replica):
    @uses_forced_read_router(Survey)
    def view():
        raise LookupError

    with pytest.raises(LookupError):
        view()
    assert router.db_for_read(Survey) == "default"
    assert health.fallback_timeout() is None


def test_another_thread_is_not_forced(replica):
    seen = []
    with forced_reads(Survey):
        thread = threading.Thread(
            target=lambda: seen.append(router.db_for_read(Survey))
        )
        thread.start()
        thread.join()
    assert seen == ["default"]


def test_a_template_response_is_rendered_inside_the_view(replica):
    class Where:
        def __str__(self) -> str:
            return router.db_for_read(Survey)

    def view():
        template = engines["django"].from_string("read from {{ where }}")
        return SimpleTemplateResponse(template, {"where": Where()})

    assert uses_forced_read_router(Survey)(view)().content == b"read from replica"
    assert view().render().content == b"read from default"


def test_a_forced_model_is_never_written(replica):
    with forced_reads(Survey, PublishedSurvey):
        assert router.db_for_write(Respondent) == "default"
        with pytest.raises(ForcedModelWritten, match=r"survey\.Survey is read from"):
            router.db_for_write(Survey)
        with pytest.raises(ForcedModelWritten):
            Survey(name="climate").save()
        with pytest.raises(ForcedModelWritten):
            Survey.objects.filter(name="climate").update(version="2")
    assert router.db_for_write(Survey) == "default"


def test_other_views_read_the_replica_except_for_deciding_models(replica):
    with serving(pinned=False):
        for model in (Wave, Item, PublishedSurvey):
            assert router.db_for_read(model) == "replica"
        for model in (User, School, Respondent, Administration, Response):
            assert router.db_for_read(model) == "default"


def test_commands_and_tasks_read_the_primary(replica):
    assert router.db_for_read(Wave) == "default"


@pytest.mark.django_db
def test_reads_in_a_transaction_go_to_the_primary(replica):
    with serving(pinned=False), transaction.atomic():
        assert router.db_for_read(Wave) == "default"
        assert connection.in_atomic_block


def test_a_replica_that_is_down_is_not_read(replica, no_watching_thread):
    with serving(pinned=False):
        health.mark_down()
        assert router.db_for_read(Wave) == "default"
        with forced_reads(Survey):
            assert router.db_for_read(Survey) == "default"
        health.mark_up()
        assert router.db_for_read(Wave) == "replica"


def test_the_watching_thread_survives_every_error(replica, monkeypatch):
    """No other thread would check the replica again."""
    outcomes = iter([RuntimeError("a defect"), OSError(), OperationalError(), None])
    seen = []

    class Server:
        def cursor(self):
            seen.append((health.reply_timeout(), health.fallback_timeout()))
            error = next(outcomes)
            if error:
                raise error
            return nullcontext(Mock())

        def close(self):
            pass

    monkeypatch.setattr(health.connections, "create_connection", lambda name: Server())
    up = threading.Event()
    monkeypatch.setattr(health, "RETRY_INTERVAL", 0.01)
    health.watch_replica(up)
    assert up.is_set()
    # The check times out, and the primary does not answer for it.
    assert seen == [(health.CHECK_TIMEOUT, None)] * 4
    assert health.reply_timeout() is None


def test_an_uncaught_error_would_end_the_watching_thread(replica, monkeypatch):

    def fail():
        raise RuntimeError("a defect")

    monkeypatch.setattr(health, "replica_answers", fail)
    monkeypatch.setattr(health, "RETRY_INTERVAL", 0.01)
    with pytest.raises(RuntimeError):
        health.watch_replica(threading.Event())


# A replica that has yet to replay a migration


class Lagging(FallbackCursor):
    """Return a cursor that fails with a missing column, or another error."""

    def __init__(self, code: str) -> None:
        self.cursor = Mock()
        self.db = Mock()
        self.error = ProgrammingError("column does not exist")
        self.error.__cause__ = type("Error", (Exception,), {"pgcode": code})()
        self.db.wrap_database_errors = nullcontext()
        self.db.deadline.side_effect = self.error


@pytest.mark.django_db
@pytest.mark.parametrize("code", sorted(BEHIND))
def test_the_primary_answers_for_a_replica_that_lags_behind_a_migration(code):
    lagging = Lagging(code)
    with health.fall_back_to_primary(1):
        lagging._execute("SELECT 7", None)
    assert lagging.cursor.fetchone() == (7,)
    lagging.db.give_up.assert_called_once()


@pytest.mark.parametrize(("code", "seconds"), [("42601", 1), ("42703", None)])
def test_wrong_statements_and_reports_are_not_repeated_on_the_primary(code, seconds):
    """The primary would fail too, and a report can be repeated later."""
    lagging = Lagging(code)
    waiting = health.fall_back_to_primary(seconds) if seconds else nullcontext()
    with waiting, pytest.raises(ProgrammingError):
        lagging._execute("SELECT 7", None)
    lagging.db.give_up.assert_not_called()


def test_a_forked_worker_starts_with_the_replica_up(replica, no_watching_thread):
    health.mark_down()
    health.reset_after_fork()
    assert health.is_up()


def test_without_a_replica_everything_is_read_from_the_primary():
    with override_settings(**ROUTED, DATABASE_POOL={"default": 1}):
        with forced_reads(Survey):
            assert router.db_for_read(Survey) == "default"
        with serving(pinned=False):
            assert router.db_for_read(Wave) == "default"


def test_weights_spread_the_reads(replica):
    both = {"replica": 3, "default": 1}
    with override_settings(**ROUTED, DATABASE_POOL=both), serving(pinned=False):
        read = [router.db_for_read(Wave) for _ in range(400)]
    assert 240 < read.count("replica") < 360


def test_only_the_primary_is_migrated(replica):
    assert router.allow_migrate("default", "survey")
    assert not router.allow_migrate("replica", "survey")


def test_rows_of_both_servers_may_be_related(replica):
    survey, page, elsewhere = Survey(), Page(), Page()
    survey._state.db, page._state.db = "replica", "default"
    elsewhere._state.db = "archive"
    assert router.allow_relation(survey, page)
    assert not router.allow_relation(survey, elsewhere)


def test_the_stack_uses_a_replica_if_it_is_configured(value_of):  # noqa: F811
    pool = "[DATABASE_POOL, DATABASE_ROUTERS]"
    router = ["survey.database.routers.ForcedReadRouter"]
    assert value_of(pool) == [{"default": 1}, router]
    where = {"GROUNDSWELL_REPLICA_HOST": "/run/replica"}
    assert value_of(pool, **where) == [{"replica": 1}, router]
    replica = value_of("DATABASES['replica']", **where)
    assert replica["ENGINE"] == "survey.database.replica"
    assert replica["OPTIONS"] == {"connect_timeout": 1}
