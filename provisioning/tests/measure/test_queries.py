"""Test the parts of `provisioning/run queries` that need no stack."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.conf import settings
from django.db import connection

from provisioning.commands import Refusal, Stopped
from provisioning.measure import queries
from provisioning.measure.load.target import refuse_real_respondents
from provisioning.measure.queries import (
    SETTING,
    Server,
    essentials_of,
    everything_logged,
    running_servers,
    shortened,
)
from survey.models import Administration
from survey.simulation import load_survey

needs_postgresql = pytest.mark.skipif(
    not settings.SERVERS, reason="asks a PostgreSQL server"
)
REPORT = """
- Overall statistics ---------------------------------------------------

Number of unique normalized queries: 5
Number of queries: 80
Total query duration: 49ms
Query peak: 80 queries/s at 2026-11-21 12:41:10

- Queries by type ------------------------------------------------------

Type     Count     Percentage
SELECT: 30 37.50%
DELETE: 0 0.00%
COPY FROM: 50 62.50%

- Most frequent queries (N) --------------------------------------------

Rank     Times executed     Total duration     Min/Max/Avg duration (s)     Query
1) 50 - 37ms - 0ms/1ms/0ms - copy answers
--
	Example 1: 1ms - COPY answers
2) 30 - 5ms - 0ms/0ms/0ms - select ?

- Slowest queries (N) --------------------------------------------------
1) 9ms - not shown
"""


def test_a_report_is_reduced_to_its_essentials():
    assert essentials_of(REPORT).splitlines() == [
        "  Number of unique normalized queries: 5",
        "  Number of queries: 80",
        "  Total query duration: 49ms",
        "  30 SELECT, 50 COPY FROM",
        "  Most frequent queries",
        "    1) 50 - 37ms - 0ms/1ms/0ms - copy answers",
        "    2) 30 - 5ms - 0ms/0ms/0ms - select ?",
        "  Queries that took up the most time",
    ]


def test_a_report_may_be_empty():
    assert "Most frequent queries" in essentials_of("")


def test_a_statement_is_shortened_to_one_line():
    assert shortened(" SELECT 1\n\tFROM  survey\n") == "SELECT 1 FROM survey"
    assert len(shortened("x" * 1000)) == queries.WIDTH


def test_without_a_primary_the_command_to_start_it_is_named(tmp_path):
    with pytest.raises(Refusal, match="provisioning/stack up"):
        running_servers(tmp_path)


@pytest.fixture
def primary(monkeypatch) -> Server:
    monkeypatch.setattr(queries, "DATABASE", "postgres")
    server = Server("primary", Path(settings.SERVERS), 5432)
    monkeypatch.setattr(queries, "LOG", 'SELECT \'["postgresql.log", "", 0]\'')
    return server


def shown(server: Server) -> str:
    return server.ask(f"SELECT to_json(current_setting('{SETTING}'))")


@needs_postgresql
@pytest.mark.parametrize("by_hand", [None, "750"])
@pytest.mark.parametrize("ending", [None, Stopped(2), Refusal("no more room")])
def test_logging_settings_are_restored_after_any_end(primary, by_hand, ending):
    untouched = shown(primary)
    primary.set(by_hand)
    before = shown(primary)
    assert before == (untouched if by_hand is None else "750ms")
    try:
        with everything_logged([primary]):
            assert shown(primary) == "0"
            if ending:
                raise ending
    except (Stopped, Refusal):
        pass
    assert shown(primary) == before
    primary.set(None)
    assert shown(primary) == untouched


@needs_postgresql
@pytest.mark.django_db(transaction=True)
def test_statements_of_real_people_are_not_logged(primary, monkeypatch):
    monkeypatch.setattr(queries, "DATABASE", connection.settings_dict["NAME"])
    administration = load_survey.open_rehearsal(
        name="spring", respondents=1, pages=1, items=1
    ).administration
    refuse_real_respondents(primary.ask, consequence="no")
    Administration.objects.update(wave=None)
    with pytest.raises(Refusal, match=f"answer now \\({administration.name}\\)"):
        refuse_real_respondents(primary.ask, consequence="no")


def test_an_unreachable_server_is_a_refusal(tmp_path):
    with pytest.raises(Refusal, match="The primary refuses"):
        Server("primary", tmp_path, 5432).ask("SELECT 1")
