"""Store an uploaded logo.

Browsers get only pictures that were drawn anew here, as PNG: nothing of the file
itself, which could be something else for another program, and none of its notes
about places and cameras.
"""

from __future__ import annotations

import hashlib
import io

from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy
from PIL import Image

from accounts.models import Logo

LARGEST_UPLOAD = 2 * 10**6
# Of the file, on either side: a small file can hold a picture that fills the memory.
MOST_PIXELS = 4000
# As it is stored.
WIDTH, HEIGHT = 480, 96
FORMATS = ("PNG", "JPEG")
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


def store_logo(content: bytes) -> Logo:
    """Draw a picture anew and store it. 1 or 2 statements. Raises ValidationError."""
    if len(content) > LARGEST_UPLOAD:
        raise ValidationError(TOO_LARGE)
    try:
        # Nothing is decoded before `convert`.
        with Image.open(io.BytesIO(content), formats=FORMATS) as picture:
            is_too_large = max(picture.size) > MOST_PIXELS
            drawn = None if is_too_large else picture.convert("RGBA")
    # What Pillow raises for files that are broken, cut off or something else.
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise ValidationError(NOT_A_PICTURE) from error
    if drawn is None:
        raise ValidationError(TOO_MANY_PIXELS, params={"pixels": f"{MOST_PIXELS:,}"})
    drawn.thumbnail((WIDTH, HEIGHT))
    file = io.BytesIO()
    drawn.save(file, "PNG", optimize=True)
    png = file.getvalue()
    width, height = drawn.size
    name = f"{hashlib.sha256(png).hexdigest()[:32]}-{width}x{height}"
    return Logo.objects.get_or_create(name=name, defaults={"content": png})[0]
