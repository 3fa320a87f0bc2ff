"""The garbage collector pauses while a draft is read, and never stays off."""

from __future__ import annotations

import gc
import threading

import pytest

from survey.instrument.drafts.collector import paused_collector


@pytest.fixture(autouse=True)
def enabled():
    before = gc.isenabled()
    gc.enable()
    yield
    gc.enable() if before else gc.disable()


def test_it_is_on_again_after_an_error():
    with pytest.raises(ValueError, match="wrong"), paused_collector():
        assert not gc.isenabled()
        raise ValueError("wrong")
    assert gc.isenabled()


def test_it_is_on_again_after_two_threads():
    first_is_in, second_is_in = threading.Event(), threading.Event()

    def read() -> None:
        first_is_in.wait(5)
        with paused_collector():
            second_is_in.set()

    thread = threading.Thread(target=read)
    thread.start()
    with paused_collector():
        first_is_in.set()
        second_is_in.wait(5)
    thread.join()
    assert gc.isenabled()
