"""Draw a picture anew as a small PNG: python -I logo_drawing.py < FILE > PNG

Runs in a process of its own, with limits on memory and time, since decoders let out
any exception for broken files, and 2 MB of a progressive JPEG can take hours. It
imports nothing of the project, so that it starts in a tenth of a second.

Exit code 2 means that the picture is too large; any other, that it can't be read.
"""

from __future__ import annotations

import io
import resource
import sys

from PIL import Image

MEMORY = 512 * 2**20
CPU_SECONDS = 10
# Of the file, on either side: a small file can hold a picture that fills the memory.
MOST_PIXELS = 4000
# As it is stored.
WIDTH, HEIGHT = 480, 96
FORMATS = ("PNG", "JPEG")
TOO_LARGE = 2


def main() -> None:
    for kind, limit in (
        (resource.RLIMIT_AS, MEMORY),
        (resource.RLIMIT_CPU, CPU_SECONDS),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(kind, (limit, limit))
    file = io.BytesIO(sys.stdin.buffer.read())
    # Nothing is decoded before `convert`.
    with Image.open(file, formats=FORMATS) as picture:
        if max(picture.size) > MOST_PIXELS:
            sys.exit(TOO_LARGE)
        drawn = picture.convert("RGBA")
    # Otherwise its color profile, which may be empty or anything, is written again.
    drawn.info.clear()
    drawn.thumbnail((WIDTH, HEIGHT))
    png = io.BytesIO()
    drawn.save(png, "PNG", optimize=True)
    sys.stdout.buffer.write(png.getvalue())


if __name__ == "__main__":
    main()
