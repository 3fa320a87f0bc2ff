"""Refuse requests with an unusual Content-Type header before Django reads them.

Django looks up any character set and decodes any extended parameter in this
header, even if the view does not read the body. Some of them raise exceptions
that no view can handle. Browsers send only a few simple forms.
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
TEXT = b"This content type is not supported.\n"
HEADERS = [
    ("Content-Type", "text/plain; charset=utf-8"),
    ("Content-Length", str(len(TEXT))),
    ("Cache-Control", "no-store"),
    ("X-Content-Type-Options", "nosniff"),
]


def refuse_unusual_content_types(application: WSGIApplication) -> WSGIApplication:
    """Wrap a WSGI application, and answer 400 for an unusual Content-Type."""

    def plain(
        environ: WSGIEnvironment, start_response: StartResponse
    ) -> Iterable[bytes]:
        kind = environ.get("CONTENT_TYPE")
        if kind and PLAIN.fullmatch(kind) is None:
            start_response("400 Bad Request", list(HEADERS))
            return [TEXT]
        return application(environ, start_response)

    return plain
