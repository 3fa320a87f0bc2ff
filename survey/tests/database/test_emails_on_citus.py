"""Sending e-mails from a Citus cluster."""

from __future__ import annotations

import pytest

from survey.tests.emails import test_sending as contract
from survey.tests.emails.conftest import (  # noqa: F401
    by_hand,
    confirmed,
    people,
    plan,
    publish,
    send,
    shown_completion,
)

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.usefixtures("product_on_cluster"),
]
for name in (
    "test_people_are_invited_once_each_in_their_language",
    "test_reminders_go_to_those_who_have_not_finished",
    "test_everything_is_cancelled_for_people_who_leave",
    "test_the_thanks_do_not_tell_who_has_finished",
    "test_what_a_dead_worker_was_sending_is_sent_again_and_counted",
):
    globals()[name] = getattr(contract, name)
