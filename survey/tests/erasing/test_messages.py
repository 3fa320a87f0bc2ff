"""Messages to workers name a task and a row, so RabbitMQ has nothing of a person."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator

import pytest
from celery import Celery, current_app

from survey.models import Identity
from survey.people.erasing.erase import order_erasure
from survey.people.erasing.traces import Marks, draw_marks
from survey.tests.erasing.conftest import ASKED
from survey.work import jobs

# Kept before the fixture that lets jobs run by hand.
WAKE = jobs.wake


def tasks() -> Iterator[tuple[str, Callable[..., object]]]:
    # As a worker does: tasks are registered when they are used first.
    current_app.loader.import_default_modules()
    current_app.finalize()
    for name, task in sorted(current_app.tasks.items()):
        if not name.startswith("celery."):
            yield name, task.run


def takes_at_most_a_number(function: Callable[..., object]) -> bool:
    parameters = inspect.signature(function).parameters.values()
    return [parameter.annotation for parameter in parameters] in ([], ["int"])


@pytest.mark.sqlite
def test_each_task_takes_at_most_the_number_of_a_row():
    by_name = dict(tasks())
    assert "survey.tasks.run_job" in by_name and len(by_name) > 15
    for name, function in by_name.items():
        assert takes_at_most_a_number(function), name


@pytest.mark.sqlite
def test_a_task_that_takes_an_address_would_be_noticed():
    def send(email: str) -> None: ...

    def send_to(pk: int, name: str) -> None: ...

    assert not takes_at_most_a_number(send)
    assert not takes_at_most_a_number(send_to)


@pytest.mark.django_db
@pytest.mark.sqlite
def test_the_message_about_an_erasure_has_no_mark_of_the_person(
    staff, maya, monkeypatch, settings, django_capture_on_commit_callbacks
):
    marks = Marks(draw_marks(Identity.objects.filter(pk=maya.pk)))
    broker = Celery("messages", broker="memory://", set_as_current=False)
    monkeypatch.setattr(jobs, "current_app", broker)
    monkeypatch.setattr(jobs, "wake", WAKE)
    settings.JOBS_BY_MESSAGE = True
    with django_capture_on_commit_callbacks(execute=True):
        order_erasure([maya.pk], ASKED, by=staff.dana)
    with broker.connection_for_read() as connection:
        queue = connection.SimpleQueue(jobs.LONG)
        message = queue.get(timeout=1)
        message.ack()
        queue.close()
    text = f"{message.body!r} {message.headers} {message.properties}"
    assert marks.kinds_in(text) == set()
    (arguments, keywords, _) = message.payload
    assert [type(each) for each in arguments] == [int] and keywords == {}
    # The twin: a message with the name would be found.
    assert marks.kinds_in(f"{text} Maya Zaragoza") == {"name"}
