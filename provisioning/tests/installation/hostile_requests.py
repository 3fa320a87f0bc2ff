"""Requests that try to reach another page, or to be two requests."""

from __future__ import annotations

from collections.abc import Iterator

SECOND = (
    "GET%20/readyz%20HTTP/1.1%0d%0aHost:%20x%0d%0aExpect:%20100-continue%0d%0a%0d%0a"
)
# Put behind a path, and between its parts.
HOSTILE_PARTS = [
    f"%20HTTP/1.1%0d%0aHost:%20x%0d%0a%0d%0a{SECOND}",
    f"%20HTTP/1.1%0D%0AHost:%20x%0D%0A%0D%0A{SECOND}",
    f"%20HTTP/1.0%0a%0a{SECOND}",
    f"?a%20HTTP/1.1%0d%0aHost:%20x%0d%0a%0d%0a{SECOND}".replace("?", "%3f"),
    *(f"%{number:02x}" for number in (*range(0x20), 0x7F)),
    *("%0D%0A", "%0d", "%0A%0D", "x%00y", "%00.html", "a%09b"),
    # Control characters and line ends beyond ASCII.
    *("%c2%80", "%c2%85", "%C2%9F"),
    # Dots and slashes by other names.
    *(
        "%2e",
        "%2E%2e",
        "%2e%2e/readyz",
        "..%2freadyz",
        "%2e%2e%2freadyz",
        ".%2e/readyz",
    ),
    *("%2f", "%2Freadyz", "%2f..%2fengineers%2f", "%5c", "..%5creadyz", "%5c%5creadyz"),
    *("../readyz", "../../readyz", "../engineers/", "./", "x/../", "/", "//readyz"),
    *("..", ".", "x/..", "x/.", "..?x=1"),
    *("\\", "..\\readyz", "\\..\\engineers\\"),
    # UTF-8 that is too long, cut off or not valid.
    *("%c0%ae%c0%ae/readyz", "%c0%af", "%c1%9c", "%e0%80%ae", "%e0%80%af", "%e0%9f%bf"),
    *("%f5%80%80%80", "%f8%80%80%80%af", "%ff", "%fe"),
    *("#", "#/../engineers/", "x#y?z"),
    *("\x80", "é".encode().decode("latin-1"), "\xff"),
]
# nginx understands these alone, or passes them on as they are: they are other pages.
ODD_PARTS = [
    *("%", "%zz", "%0", "%u002e", "%252e%252e%252freadyz", "%250d%250aGET"),
    *(";/../readyz", ";x=1", "..;/readyz", "%3b", "%23", "%3f", "%3fx=%0d%0a", "%3F"),
    *("\t", "\r", "\n", "\0", "\x0b", " ", " x", "\r\nX: y", "\x7f", "\x1f"),
    *("?%0d%0aGET%20/readyz", "?q=%0d%0aX:%20y", "?q=%00", "?language=es%0d%0a"),
    *("?q=a&q=b", "?&&", "??", "?#", "?q=%2e%2e%2f", "?lat=1%0a&lon=2", "?q=\\", "?="),
    *("x" * 5000, "x" * 70_000, "%41" * 2000, "~", "'", '"', "<", "{", "|", "^", "`"),
    *("READYZ", "readyz", "metrics", "engineers/", "nginx_status", "%72eadyz"),
    *("é", "ü/", "日本"),
]
# The whole target, whatever location it is for.
HOSTILE_TARGETS = [
    "http://elsewhere/readyz",
    "http://elsewhere/engineers/",
    "https://x@y/metrics",
    "HTTP://x/results/1/%0d%0aX:%20y",
    "//readyz",
    "//engineers//",
    "/./readyz",
    "/x/../metrics",
    "/engineers/../console/",
    "/engineers/..",
    "/results/../engineers/",
    "/content/../engineers/",
    "/engineers%2f",
    "/%65ngineers/",
    "/engineers/%2e%2e/console/",
    "/readyz/",
    "/readyz%20",
    "/readyz%0a",
    "/metrics?x",
    "/metrics/",
    "/ENGINEERS/",
    "/nginx_status",
    "/errors/503/start.html",
    "/private-files/x",
    "*",
    "readyz",
    "elsewhere:443",
    "?",
    "",
    "/\\readyz",
]
METHODS = [
    "TRACE",
    "CONNECT",
    "PRI",
    "get",
    "G ET",
    "GET\t",
    "GETGET" * 10,
    "POST",
    "PURGE",
]
VERSIONS = [
    *("HTTP/0.9", "HTTP/1.2", "HTTP/2.0", "HTTP/11", "HTTP/1.1 HTTP/1.1", "HTTP/1.1\t"),
    *("http/1.1", "HTTP/1.", "HTTP/1.1\0", "SIP/2.0", ""),
]
CHUNKED = "0\r\n\r\nGET /readyz HTTP/1.1\r\nHost: x\r\n\r\n"
SMUGGLED = "GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n"
# Lines of headers, and a body.
HOSTILE_HEADERS = [
    ("Content-Length: 5\r\nContent-Length: 33", SMUGGLED),
    ("Content-Length: 33\r\nContent-Length: 33", SMUGGLED),
    ("Content-Length: 5, 33", SMUGGLED),
    *(
        (f"Content-Length: {value}", SMUGGLED)
        for value in (
            "+33",
            "-1",
            "0x21",
            "33 ",
            "3 6",
            "33;",
            "9" * 30,
            "",
            "\x0b33",
            "0033",
            "1e1",
        )
    ),
    ("Content-Length : 33", SMUGGLED),
    ("Content-Length: 0", SMUGGLED),
    ("Transfer-Encoding: chunked\r\nContent-Length: 5", CHUNKED),
    ("Content-Length: 5\r\nTransfer-Encoding: chunked", CHUNKED),
    *(
        (f"Transfer-Encoding: {value}", CHUNKED)
        for value in (
            "chunked",
            "xchunked",
            "chunked, identity",
            "identity, chunked",
            "chunked;q=1",
            "CHUNKED",
            "\x0bchunked",
            "chunked\t",
            "identity",
            "gzip, chunked",
            "chunk",
        )
    ),
    ("Transfer-Encoding : chunked", CHUNKED),
    ("Transfer-Encoding:\r\n chunked", CHUNKED),
    ("Transfer_Encoding: chunked", CHUNKED),
    ("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity", CHUNKED),
    ("Transfer-Encoding: chunked", "5;x=\r\n\r\nhello\r\n0\r\n\r\n" + SMUGGLED),
    ("Transfer-Encoding: chunked", "fffffffffffffffff\r\nhello"),
    ("Transfer-Encoding: chunked", "5\nhello\n0\n\n" + SMUGGLED),
    ("Transfer-Encoding: chunked", "0\r\nX: y\r\n\r\n" + SMUGGLED),
    ("Expect: 100-continue\r\nContent-Length: 33", SMUGGLED),
    ("Expect: 100-continue", SMUGGLED),
    ("Expect: 200-ok\r\nContent-Length: 0", ""),
    ("Connection: keep-alive, X-Forwarded-For, Host", ""),
    ("Connection: X-Groundswell-Monitoring", ""),
    ("Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMA", ""),
    ("Upgrade: websocket\r\nConnection: Upgrade", ""),
    ("X-Groundswell-Monitoring: guess", ""),
    ("X_Groundswell_Monitoring: guess", ""),
    ("X-Forwarded-Proto: https\r\nX-Forwarded-Proto: http", ""),
    ("X_Forwarded_Proto: https", ""),
    ("X-Forwarded-For: 127.0.0.1", ""),
    ("X-Forwarded-Host: elsewhere", ""),
    ("X-Accel-Redirect: /private-files/x", ""),
    ("X-Original-URL: /readyz\r\nX-Rewrite-URL: /readyz", ""),
    ("X-HTTP-Method-Override: DELETE", ""),
    ("Host: second", ""),
    ("X: a\r\n GET /readyz HTTP/1.1", ""),
    ("X: a\r\n\tb", ""),
    ("X: a\nY: b", ""),
    ("X: a\rY: b", ""),
    ("X: a\0b", ""),
    ("X\0: b", ""),
    ("X Y: b", ""),
    (": b", ""),
    ("no colon", ""),
    ("X: " + "y" * 40_000, ""),
    ("\r\n".join(f"X-{n}: y" for n in range(2000)), ""),
    ("Range: bytes=0-0," + ",".join(f"{n}-" for n in range(500)), ""),
    ("Cookie: " + "; ".join("sessionid=" + "a" * 32 for _ in range(50)), ""),
    ("Accept-Language: " + "x," * 500 + "en", ""),
]


def hostile_paths(path: str) -> Iterator[str]:
    """Yield paths with a hostile part behind `path`, before it, and inside."""
    for part in HOSTILE_PARTS:
        yield path.rstrip("/") + "/" + part
        yield "/" + part + path
        if (middle := path.find("/", 1)) > 0:
            yield path[:middle] + "/" + part + path[middle:]


def odd_paths(path: str) -> Iterator[str]:
    for part in ODD_PARTS:
        yield path + part
        yield path.rstrip("/") + part
