"""Store an uploaded logo.

Browsers get only pictures that were drawn anew here, as PNG: nothing of the file
itself, which could be something else for another program, and none of its notes
about places and cameras.
"""

from __future__ import annotations

import hashlib
import logging
import struct
import subprocess
import sys

from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy

from accounts import logo_drawing
from accounts.models import Logo

log = logging.getLogger(__name__)

LARGEST_UPLOAD = 2 * 10**6
# Of real time; the process is limited to fewer seconds of computing.
LONGEST_SECONDS = 20
NOT_A_PICTURE = gettext_lazy(
    "This file can’t be read as a PNG or JPEG picture. SVG files are refused, because"
    " they can contain scripts. Save the logo as PNG, then choose it again."
)
TOO_LARGE = gettext_lazy(
    "The file is larger than 2 MB. Save the logo in a smaller size."
)
TOO_MANY_PIXELS = gettext_lazy(
    "The picture is wider or higher than %(pixels)s pixels. Save it in a smaller size."
)


def draw_logo(content: bytes) -> bytes:
    """Draw a picture anew, in a process of its own. Raises ValidationError.

    Not within a transaction: it may take seconds.
    """
    if len(content) > LARGEST_UPLOAD:
        raise ValidationError(TOO_LARGE)
    try:
        # -I: neither the environment nor the current folder has a say.
        done = subprocess.run(  # noqa: S603
            [sys.executable, "-I", logo_drawing.__file__],
            input=content,
            capture_output=True,
            env={},
            timeout=LONGEST_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise ValidationError(NOT_A_PICTURE) from error
    if done.returncode == logo_drawing.TOO_LARGE:
        pixels = f"{logo_drawing.MOST_PIXELS:,}"
        raise ValidationError(TOO_MANY_PIXELS, params={"pixels": pixels})
    if done.returncode:
        log.info("A logo can't be read: %s", done.stderr.decode(errors="replace"))
        raise ValidationError(NOT_A_PICTURE)
    return done.stdout


def store_logo(png: bytes) -> Logo:
    """Store a logo that was drawn here. 1 or 2 statements."""
    # Where every PNG has them.
    width, height = struct.unpack(">II", png[16:24])
    name = f"{hashlib.sha256(png).hexdigest()[:32]}-{width}x{height}"
    return Logo.objects.get_or_create(name=name, defaults={"content": png})[0]
