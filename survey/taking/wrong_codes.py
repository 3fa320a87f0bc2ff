"""Count wrong access codes, and warn when somebody may be guessing.

Nobody is refused: a school is one address, and three typos in each of its classes
are nothing unusual. Twelve symbols are what protects the codes; the warning is
for the engineers.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from ipaddress import ip_network
from zlib import crc32

from django.conf import settings
from django.core.cache import caches
from django.utils import timezone

log = logging.getLogger(__name__)

# In one hour of the clock, from neighbouring addresses: a school of 2,000 pupils
# who mistype one code in twenty has 100.
MOST_PER_BLOCK = 200
# And from everywhere: 2 % of 250,000 logins an hour.
MOST_IN_ALL = 5000
# Blocks share so many counts, so that random addresses can't fill the store.
COUNTS = 8192


def count_wrong_code(address: str) -> str:
    """Count a wrong code, and return the outcome for the metrics.

    4 commands at the session store's cache; none is needed for the reply.
    """
    block = block_of(address)
    outcome = "wrong_code"
    with suppress(ConnectionError):
        in_all = _count("all")
        from_block = _count(str(crc32(block.encode()) % COUNTS))
        if in_all % MOST_IN_ALL == 0:
            log.warning("many wrong access codes", extra={"count": in_all})
            outcome = "wrong_codes_in_all"
        if from_block % MOST_PER_BLOCK == 0:
            log.warning(
                "many wrong access codes from neighbouring addresses",
                extra={"count": from_block, "block": block},
            )
            outcome = "wrong_codes_of_block"
    return outcome


def block_of(address: str) -> str:
    """Return the network that a site has: /24 of IPv4, /48 of IPv6."""
    try:
        bits = 48 if ":" in address else 24
        return str(ip_network(f"{address}/{bits}", strict=False))
    except ValueError:
        return "unknown"


def _count(name: str) -> int:
    counts = caches[settings.SESSION_CACHE_ALIAS]
    key = f"wrong.{name}.{timezone.now():%d%H}"
    # Two hours, so that the count can't expire between the two calls.
    return 1 if counts.add(key, 1, 2 * 60 * 60) else counts.incr(key)
