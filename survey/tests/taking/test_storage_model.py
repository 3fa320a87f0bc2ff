"""Compare random saves, retries, lost replies and promotions with a dictionary."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from django.db import connection
from django.utils import timezone
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from survey.models import Respondent, Response
from survey.taking.storage import TABS, AnswerRow, Outcome, save_page
from survey.tests.conftest import enrol

pytestmark = pytest.mark.sqlite

PAGES = {1: (1, 2), 2: (3,), 3: (4, 5, 6)}

values = st.one_of(st.none(), st.sampled_from(["1", "2", "a c", "é 🙂"]))


@dataclass
class Tab:
    number: int
    next: int
    seen: dict[int, int]

    def take_revision(self) -> int:
        # The next number whose low bits are this tab's.
        revision = self.next + (self.number - self.next) % TABS
        self.next = revision + 1
        return revision


@dataclass
class Save:
    page: int
    revision: int
    rows: list[AnswerRow]
    seen: int
    tab: Tab


class Saving(RuleBasedStateMachine):
    """Three tabs of one person; a sent page may arrive late, twice or never.

    The model is what each page should hold: the sending with the highest
    revision of those that were let in before finishing. The tabs count from
    numbers that they may share, because the primary's clock is behind.
    """

    sent = Bundle("sent")

    def __init__(self) -> None:
        super().__init__()
        self.respondent = self.enrol()
        self.model: dict[int, Save] = {}
        self.loads = 0
        self.tabs: dict[str, Tab] = {}
        for name in "abc":
            self.load(name)
        self.earlier: list[dict[int, Save]] = []
        self.finished = False

    def load(self, name: str) -> None:
        newest = max((save.revision for save in self.model.values()), default=0)
        self.loads += 1
        self.tabs[name] = Tab(
            number=self.loads,
            next=newest + 1,
            seen={page: save.revision for page, save in self.model.items()},
        )

    @rule(
        target=sent,
        name=st.sampled_from("abc"),
        page=st.sampled_from(sorted(PAGES)),
        answers=st.lists(values, min_size=3, max_size=3),
    )
    def edit(self, name, page, answers):
        rows = [
            AnswerRow(item, "s" if value is None else "a", value)
            for item, value in zip(PAGES[page], answers, strict=False)
        ]
        tab = self.tabs[name]
        revision = tab.take_revision()
        return Save(page, revision, rows, tab.seen.get(page, 0), tab)

    @rule(name=st.sampled_from("abc"))
    def reload(self, name):
        self.load(name)

    @rule(save=sent)
    def arrives(self, save):
        held = self.model.get(save.page)
        receipt = self.save(save)
        if held and (save.revision, save.rows) == (held.revision, held.rows):
            assert receipt.outcome is Outcome.SAVED
        elif self.finished:
            assert receipt.outcome is Outcome.FINISHED
        elif held is None or (save.revision > held.revision and has_seen(save, held)):
            assert receipt.outcome is Outcome.SAVED
            self.earlier.append(dict(self.model))
            self.model[save.page] = save
        else:
            assert receipt.outcome is Outcome.SUPERSEDED

    @precondition(lambda self: self.earlier and not self.finished)
    @rule(lost=st.integers(1, 3))
    def promote(self, lost):
        """Lose the last commits, as an asynchronous replica may."""
        for _ in range(min(lost, len(self.earlier))):
            self.model = self.earlier.pop()
        rows = Response.objects.filter(respondent_id=self.respondent.pk)
        rows.delete()
        Response.objects.bulk_create(
            Response(
                administration_id=self.respondent.administration_id,
                respondent_id=self.respondent.pk,
                item_id=row.item_id,
                state=row.state,
                value=row.value,
                revision=save.revision,
                saved_at=timezone.now(),
            )
            for save in self.model.values()
            for row in save.rows
        )

    @rule()
    def finish(self):
        now = timezone.now()
        Respondent.objects.filter(pk=self.respondent.pk).update(
            started_at=now, completed_at=now
        )
        self.finished = True

    @invariant()
    def the_database_holds_the_model(self):
        expected = {
            row.item_id: (save.revision, row.state, row.value)
            for save in self.model.values()
            for row in save.rows
        }
        responses = Response.objects.filter(respondent_id=self.respondent.pk)
        rows = responses.values_list("item_id", "revision", "state", "value")
        assert expected == {row[0]: row[1:] for row in rows}

    def save(self, save):
        return save_page(
            administration_id=self.respondent.administration_id,
            respondent_id=self.respondent.pk,
            issue=1,
            revision=save.revision,
            rows=save.rows,
            seen=save.seen,
        )


def has_seen(save: Save, held: Save) -> bool:
    """Return whether the tab was loaded with the stored save, or sent it."""
    return held.tab is save.tab or held.revision == save.seen


@pytest.mark.django_db
def test_any_order_of_arrivals_keeps_the_newest_of_each_page(administration, lincoln):
    Saving.enrol = lambda self: enrol(
        administration, lincoln, attributes={"n": str(id(self))}
    )
    run_state_machine_as_test(
        Saving,
        settings=settings(
            # The conditions are the same text on both, and SQLite runs it faster.
            max_examples=200 if connection.vendor == "sqlite" else 80,
            stateful_step_count=30,
            suppress_health_check=list(HealthCheck),
        ),
    )
