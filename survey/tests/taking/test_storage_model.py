"""Compare random saves, retries and lost replies with a dictionary."""

from __future__ import annotations

import pytest
from django.utils import timezone
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    invariant,
    rule,
    run_state_machine_as_test,
)

from survey.models import Respondent, Response
from survey.taking.storage import AnswerRow, Outcome, save_page
from survey.tests.conftest import enrol

pytestmark = pytest.mark.sqlite

PAGES = {1: (1, 2), 2: (3,), 3: (4, 5, 6)}

values = st.one_of(st.none(), st.sampled_from(["1", "2", "a c", "é 🙂"]))


class Saving(RuleBasedStateMachine):
    """Two tabs of one person; a sent page may arrive late, twice or never.

    The model is what each page should hold: the sending with the highest
    revision of those that were let in before finishing.
    """

    sent = Bundle("sent")

    def __init__(self) -> None:
        super().__init__()
        self.respondent = self.enrol()
        self.clock = 1000
        self.tabs = {"a": 1000, "b": 2000}
        self.bases = dict(self.tabs)
        self.seen = {"a": 0, "b": 0}
        self.model: dict[int, tuple[int, list[AnswerRow]]] = {}
        self.finished = False

    @rule(
        target=sent,
        tab=st.sampled_from("ab"),
        page=st.sampled_from(sorted(PAGES)),
        answers=st.lists(values, min_size=3, max_size=3),
    )
    def edit(self, tab, page, answers):
        self.tabs[tab] += 1
        rows = [
            AnswerRow(item, "s" if value is None else "a", value)
            for item, value in zip(PAGES[page], answers, strict=False)
        ]
        return page, self.tabs[tab], rows, (self.seen[tab], self.bases[tab])

    @rule(tab=st.sampled_from("ab"))
    def reload(self, tab):
        """Reload a tab, with a base above every stored revision."""
        newest = max((revision for revision, _ in self.model.values()), default=0)
        self.clock += 3000
        self.tabs[tab] = self.bases[tab] = max(newest + 1, self.clock)
        self.seen[tab] = newest

    @rule(message=sent)
    def arrives(self, message):
        page, revision, rows, sight = message
        held_revision, held = self.model.get(page, (0, []))
        unseen = sight[0] < held_revision < sight[1]
        receipt = self.save(revision, rows, sight)
        if (revision, rows) == (held_revision, held):
            assert receipt.outcome is Outcome.SAVED
        elif self.finished:
            assert receipt.outcome is Outcome.FINISHED
        elif revision > held_revision and not unseen:
            assert receipt.outcome is Outcome.SAVED
            self.model[page] = (revision, rows)
        else:
            assert receipt.outcome is Outcome.SUPERSEDED

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
            row.item_id: (revision, row.state, row.value)
            for revision, rows in self.model.values()
            for row in rows
        }
        found = Response.objects.filter(respondent_id=self.respondent.pk)
        rows = found.values_list("item_id", "revision", "state", "value")
        assert expected == {row[0]: row[1:] for row in rows}

    def save(self, revision, rows, sight):
        seen, base = sight
        return save_page(
            administration_id=self.respondent.administration_id,
            respondent_id=self.respondent.pk,
            issue=1,
            revision=revision,
            rows=rows,
            seen=seen,
            base=base,
        )


@pytest.mark.django_db
def test_any_order_of_arrivals_keeps_the_newest_of_each_page(administration, lincoln):
    Saving.enrol = lambda self: enrol(
        administration, lincoln, attributes={"n": str(id(self))}
    )
    run_state_machine_as_test(
        Saving,
        settings=settings(
            max_examples=400,
            stateful_step_count=30,
            suppress_health_check=list(HealthCheck),
        ),
    )
