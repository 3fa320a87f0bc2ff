"""What a body may call itself, before Django reads it.

Django looks up any character set and decodes any extended parameter that a
request names, also for addresses that read no body, and some of them raise
where no view can answer. Browsers send few and plain ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

NAME = r"[0-9a-z!#$&^_.+-]{1,64}"
CHARSET = r'charset=(?:utf-?8|"utf-?8")'
BOUNDARY = r"""boundary=(?:[0-9a-z'()+_,./:=?-]{1,70}|"[0-9a-z'()+_,./:=? -]{1,70}")"""
PLAIN = re.compile(
    rf"{NAME}/{NAME}(?:[ \t]*;[ \t]*(?:{CHARSET}|{BOUNDARY})){{0,2}}",
    re.ASCII | re.IGNORECASE,
)
TEXT = b"This kind of content is not understood here.\n"
HEADERS = [
    ("Content-Type", "text/plain; charset=utf-8"),
    ("Content-Length", str(len(TEXT))),
    ("Cache-Control", "no-store"),
    ("X-Content-Type-Options", "nosniff"),
]


def plain_bodies_only(application: WSGIApplication) -> WSGIApplication:
    """In front of both pools. Without a body there is nothing to look at."""

    def plain(
        environ: WSGIEnvironment, start_response: StartResponse
    ) -> Iterable[bytes]:
        kind = environ.get("CONTENT_TYPE")
        if kind and PLAIN.fullmatch(kind) is None:
            start_response("400 Bad Request", list(HEADERS))
            return [TEXT]
        return application(environ, start_response)

    return plain
