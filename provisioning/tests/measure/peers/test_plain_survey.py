"""The plain survey is answered as `provisioning/run peers` does, on SQLite."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from provisioning.commands import Refusal
from provisioning.measure.load.crowd import send
from provisioning.measure.load.engine import Engine
from provisioning.measure.peers.servers import Shape, plain_survey
from provisioning.measure.peers.visitors import PeerDriver, Visitor, enter, visit

SHAPE = Shape(pages=3, items=2, people=4)


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    return tmp_path_factory.mktemp("plain") / "database"


@pytest.fixture(scope="module")
def peer(database):
    settings = {"ENGINE": "django.db.backends.sqlite3", "NAME": str(database)}
    with plain_survey(settings, SHAPE, processes=1) as peer:
        yield peer


def answers(database, code: str) -> list[tuple[int, int]]:
    """Return how many answers a person has given on each page."""
    with closing(sqlite3.connect(database)) as connection:
        return connection.execute(
            "SELECT q.page, count(*) FROM plain_survey_answer a"
            " JOIN plain_survey_question q ON q.id = a.question_id"
            " JOIN plain_survey_respondent r ON r.id = a.respondent_id"
            " WHERE r.code = ? GROUP BY q.page ORDER BY q.page",
            [code],
        ).fetchall()


def test_a_visit_answers_every_question(peer, database):
    tally = send(
        peer.target, [visit(Visitor("person-0", peer.site, peer.target))]
    ).tally
    tally.refuse_failures()
    # The link, three pages shown and saved, and thanks.
    assert tally.answered() == 8
    assert answers(database, "person-0") == [(1, 2), (2, 2), (3, 2)]


def test_a_repeated_page_is_stored_twice_and_a_forged_one_never(peer, database):
    visitor = Visitor("person-1", peer.site, peer.target)
    with closing(Engine(peer.target)) as engine:
        for request in enter(visitor):
            assert request.check(engine.exchange(request.data)) == ""
        save = visitor.save(2)
        for _ in range(2):
            assert save.check(engine.exchange(save.data)) == ""
        # Without the form's token, and with an answer that is no choice.
        token = visitor.cookies.pop("csrftoken")
        forged = visitor.save(2)
        assert forged.check(engine.exchange(forged.data)) == "status 403"
        visitor.cookies["csrftoken"] = token
        wrong = save.data.replace(b"answer-2=", b"answer-9=")
        assert save.check(engine.exchange(wrong)) == "status 400"
    # Without a transaction, the first answer of the refused page is stored too.
    assert answers(database, "person-1") == [(2, 5)]


def test_as_many_people_as_there_are_can_be_taken(peer):
    driver = PeerDriver(peer.target, peer.site, peer.codes[2:])
    assert driver.enter(1) == 1
    tally = driver.save(together=1, seconds=0.001)
    assert tally.failed() == 0
    with pytest.raises(Refusal, match="people of a peer were not enough"):
        driver.visit(2, together=1, seconds=0.001)


def test_a_reply_that_does_not_lead_on_is_no_save(peer):
    visitor = Visitor("person-3", peer.site, peer.target)
    with closing(Engine(peer.target)) as engine:
        for request in enter(visitor):
            request.check(engine.exchange(request.data))
        exchange = engine.exchange(visitor.save(1).data)
        # It leads to the second page, and not to the third.
        assert visitor.save(2).check(exchange) == "not saved"
