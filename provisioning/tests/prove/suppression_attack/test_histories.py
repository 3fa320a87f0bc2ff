"""Attacks that have once succeeded find something without the protection."""

from __future__ import annotations

import numpy as np
import pytest

from provisioning.prove.suppression_attack import database
from provisioning.prove.suppression_attack.histories import HISTORIES
from provisioning.prove.suppression_attack.worker import HISTORY
from survey.tests.conftest import empty_caches  # noqa: F401

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite]


@pytest.fixture(autouse=True)
def without_app(settings):
    settings.SECOND_FACTOR_REQUIRED, settings.EMBEDDED = False, True
    # Another test's database had another survey.
    database.survey.cache_clear()


@pytest.mark.parametrize("name", HISTORIES)
def test_without_protection_figures_are_recovered(name):
    assert HISTORIES[name](np.random.default_rng(HISTORY), False) > 0


def test_an_opt_out_between_two_files_tells_nothing():
    history = HISTORIES["1 opt-out between files"]
    assert history(np.random.default_rng(HISTORY), True) == 0


def test_scores_of_groups_cannot_be_subtracted():
    history = HISTORIES["9 scores of groups"]
    assert history(np.random.default_rng(HISTORY), True) == 0


def test_a_school_that_reaches_its_threshold_later_is_in_no_sum():
    history = HISTORIES["8 school that joins a sum"]
    assert history(np.random.default_rng(HISTORY), True) == 0
