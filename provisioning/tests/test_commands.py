from __future__ import annotations

import socket
from collections.abc import Callable

import pytest

from provisioning.commands import disable_nagle

pytestmark = pytest.mark.once


@pytest.mark.parametrize(("prepare", "waits"), [(disable_nagle, 0), (lambda it: it, 1)])
def test_the_second_half_of_a_reply_does_not_wait(
    prepare: Callable[[socket.socket], socket.socket], waits: int
):
    """What is accepted inherits the option; the second case is the twin."""
    with (
        prepare(socket.create_server(("127.0.0.1", 0))) as listener,
        socket.create_connection(listener.getsockname()),
        listener.accept()[0] as accepted,
    ):
        option = accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        assert (option == 0) == bool(waits)
