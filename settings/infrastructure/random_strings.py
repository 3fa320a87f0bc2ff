"""Draw random strings with one system call."""

from __future__ import annotations

import os
from functools import cache


def random_string(length: int, alphabet: str) -> str:
    """Return symbols of an alphabet, each of them equally likely.

    From the kernel, like Django's `get_random_string`, which asks it once for each
    symbol and once more for each number that is too large.
    """
    symbols, surplus = _symbols(alphabet)
    drawn = b""
    while len(drawn) < length:
        drawn += os.urandom(2 * length).translate(symbols, surplus)
    return drawn[:length].decode("ascii")


@cache
def _symbols(alphabet: str) -> tuple[bytes, bytes]:
    """Return the symbol of each byte, and the bytes that would make some likelier."""
    symbols = alphabet.encode("ascii")
    rounds = 256 // len(symbols)
    surplus = bytes(range(rounds * len(symbols), 256))
    return symbols * rounds + bytes(len(surplus)), surplus
