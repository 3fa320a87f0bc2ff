"""What may be put under load."""

from __future__ import annotations

import socket

import pytest

from provisioning.commands import Refusal
from provisioning.measure.load.target import (
    is_loopback,
    refuse_real_respondents,
    target_of,
)


def test_the_host_of_a_url_is_sent_to_the_server():
    target = target_of("http://127.0.0.1:8080")
    assert target.address == ("127.0.0.1", 8080)
    assert (target.host, target.origin) == ("127.0.0.1:8080", "http://127.0.0.1:8080")


def test_another_host_may_be_sent():
    target = target_of("http://127.0.0.1", host="survey.example")
    assert target.address == ("127.0.0.1", 80)
    assert target.origin == "http://survey.example"


def test_a_unix_socket_is_sent_a_host_too(tmp_path):
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s"))
        target = target_of(f"unix:{tmp_path}/s", host="survey.example")
    assert (target.family, target.host) == (socket.AF_UNIX, "survey.example")


@pytest.mark.parametrize("text", ["127.0.0.1", "http://127.0.0.1/path", "ftp://::1"])
def test_an_address_that_is_not_understood_is_refused_with_examples(text):
    with pytest.raises(Refusal, match="is not like http://127.0.0.1:8080"):
        target_of(text)


def test_loopback_addresses_are_this_machine():
    assert is_loopback("localhost")
    assert is_loopback("::1")
    assert not is_loopback("192.0.2.1")


def test_a_host_without_an_address_is_refused():
    with pytest.raises(Refusal, match=r"No address is known for nowhere\.invalid"):
        is_loopback("nowhere.invalid")


def test_load_is_refused_while_real_people_may_answer():
    refuse_real_respondents(lambda sql: [], consequence="they would wait")
    with pytest.raises(Refusal, match=r"\(a, b\), and they would wait"):
        refuse_real_respondents(lambda sql: ["a", "b"], consequence="they would wait")
