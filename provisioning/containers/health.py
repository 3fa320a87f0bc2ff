"""Tell a container's engine whether its program works: status 0, or 1 and a line.

Asks in the program's own protocol, over its own socket, without a shell and with the
standard library only.
"""

from __future__ import annotations

import os
import re
import socket
import ssl
import sys
from collections.abc import Callable
from pathlib import Path

HOME = Path(os.environ.get("GROUNDSWELL_HOME", "/srv/groundswell"))
RUN, ETC = HOME / "run", HOME / "etc"
SECONDS = 4
ESTABLISHED = "01"
QUEUE_PORT = 5672


def main() -> int:
    program = sys.argv[1]
    try:
        problem = CHECKS.get(program, check_worker)(program)
    except OSError as error:
        problem = str(error)
    if problem:
        print(f"{program}: {problem}")
    return bool(problem)


def ask(address: str | tuple[str, int], question: bytes) -> bytes:
    """Return the first bytes of a reply; an address is a socket's path or a port."""
    family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
    with socket.socket(family) as connection:
        connection.settimeout(SECONDS)
        connection.connect(address)
        connection.sendall(question)
        return connection.recv(1024)


def expects(address: str | tuple[str, int], question: bytes, reply: bytes) -> str:
    answer = ask(address, question)
    return "" if answer.startswith(reply) else f"answers {answer[:80]!r}"


def check_pool(program: str) -> str:
    # Its answer says only that a worker serves: the database may be away, and no
    # restart would help.
    request = b"GET /healthz HTTP/1.0\r\nHost: localhost\r\n\r\n"
    answer = ask(f"{RUN}/{program}.sock", request)
    return "" if answer.split(b" ")[1:2] == [b"200"] else f"answers {answer[:80]!r}"


def check_nginx(program: str) -> str:
    text = (ETC / "nginx/nginx.conf").read_text()
    port = int(re.findall(r"listen [\d.]+:(\d+)", text)[0])
    context = ssl.create_default_context()
    # It may have the certificate of another name, and this never leaves the host.
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with (
        socket.create_connection(("127.0.0.1", port), SECONDS) as plain,
        context.wrap_socket(plain) as connection,
    ):
        connection.sendall(b"GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n")
        answer = connection.recv(64)
    return "" if b" 404 " in answer else f"answers {answer!r}"


def check_redis(program: str) -> str:
    text = (ETC / program / "redis.conf").read_text()
    password = re.findall(r"^requirepass (\S+)", text, re.MULTILINE)[0]
    return expects(("127.0.0.1", 6379), f"AUTH {password}\r\nPING\r\n".encode(), b"+OK")


def check_pgbouncer(program: str) -> str:
    # The request for TLS, which is refused by a letter.
    return expects(f"{RUN}/.s.PGSQL.6432", bytes.fromhex("0000000804d2162f"), b"N")


def check_primary(program: str) -> str:
    # By its address: while roles are made, it has none.
    return expects(("127.0.0.1", 5432), bytes.fromhex("0000000804d2162f"), b"N")


def check_memcached(program: str) -> str:
    return expects(("127.0.0.1", 11211), b"version\r\n", b"VERSION")


def check_rabbitmq(program: str) -> str:
    # It listens once it serves. Anything that is said would be a line of its log.
    with socket.create_connection(("127.0.0.1", QUEUE_PORT), SECONDS):
        return ""


def check_worker(program: str) -> str:
    """Check that it has a connection to the queue: without one, no job reaches it."""
    port = f":{QUEUE_PORT:04X}"
    for name in ("tcp", "tcp6"):
        table = Path(f"/proc/net/{name}")
        lines = table.read_text().splitlines()[1:] if table.exists() else []
        for _, _, remote, state, *_ in map(str.split, lines):
            if remote.endswith(port) and state == ESTABLISHED:
                return ""
    return "is not connected to RabbitMQ"


CHECKS: dict[str, Callable[[str], str]] = {
    "taking": check_pool,
    "console": check_pool,
    "nginx": check_nginx,
    "pgbouncer": check_pgbouncer,
    "primary": check_primary,
    "redis": check_redis,
    "redis-messages": check_redis,
    "memcached": check_memcached,
    "rabbitmq": check_rabbitmq,
}

if __name__ == "__main__":
    sys.exit(main())
