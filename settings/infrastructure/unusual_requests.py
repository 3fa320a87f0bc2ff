"""Refuse unusual Content-Type headers and paths before Django reads them.

Django looks up any character set and decodes any extended parameter in this
header, even if the view does not read the body. Some of them raise exceptions
that no view can handle. Browsers send only a few simple forms.

No page has a control character in its path. nginx refuses them too: a decoded
line break that is passed on would begin another request.
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
# A path as WSGI has it: each byte of it is a character.
CONTROL = re.compile(r"[\x00-\x1f\x7f]|\xc2[\x80-\x9f]")
CONTENT_TYPE_TEXT = b"This content type is not supported.\n"
PATH_TEXT = b"This address has characters that no page has.\n"


def refuse_unusual_requests(application: WSGIApplication) -> WSGIApplication:
    """Wrap a WSGI application: answer 400 for an unusual Content-Type or path."""

    def plain(
        environ: WSGIEnvironment, start_response: StartResponse
    ) -> Iterable[bytes]:
        kind = environ.get("CONTENT_TYPE")
        if kind and PLAIN.fullmatch(kind) is None:
            text = CONTENT_TYPE_TEXT
        elif CONTROL.search(environ["PATH_INFO"]):
            text = PATH_TEXT
        else:
            return application(environ, start_response)
        headers = [
            ("Content-Type", "text/plain; charset=utf-8"),
            ("Content-Length", str(len(text))),
            ("Cache-Control", "no-store"),
            ("X-Content-Type-Options", "nosniff"),
        ]
        start_response("400 Bad Request", headers)
        return [text]

    return plain
