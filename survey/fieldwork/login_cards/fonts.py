"""Which font has a letter: those of this repository, else those of the system.

Debian's packages `fonts-noto-core` and `fonts-noto-cjk` have the letters of nearly
all names. They are too large for the repository: a hundred megabytes. Only the
letters that are printed get into a file.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from pathlib import Path

from django.conf import settings
from fontTools.ttLib import TTFont

FONT_FOLDER = Path(settings.BASE_DIR) / "static" / "fonts"
# In which names are printed.
NAMES = FONT_FOLDER / "DejaVuSans-Bold.ttf"
SYSTEM_FOLDERS = (
    Path("/usr/share/fonts/truetype/noto"),
    Path("/usr/share/fonts/opentype/noto"),
)
# Letters are called after their script, and fonts too, with these exceptions.
EAST_ASIAN = frozenset(("bopomofo", "cjk", "hangul", "hiragana", "katakana"))


def printable(text: str) -> str | None:
    """Return a text without signs that no font has; None if a letter has none."""
    characters = []
    for character in text:
        if ord(character) in characters_of(NAMES) or fallback_font(character):
            characters.append(character)
        elif character.isalnum() or unicodedata.combining(character):
            return None
    return "".join(characters)


def letters_without_font(text: str) -> str:
    """Return the letters of a text that no font has, each once, in order."""
    letters = (letter for letter in sorted(set(text)) if letter.isalnum())
    return "".join(
        letter
        for letter in letters
        if ord(letter) not in characters_of(NAMES) and not fallback_font(letter)
    )


@lru_cache(maxsize=10_000)
def fallback_font(character: str) -> Path | None:
    """Return a font of the system for a letter that this repository's fonts lack."""
    if ord(character) in characters_of(NAMES):
        return None
    script = unicodedata.name(character, "").lower().replace("-", " ").split(" ")[0]
    start = "cjk" if script in EAST_ASIAN else script
    paths = (path for name, path in system_fonts() if start and name.startswith(start))
    return next((p for p in paths if ord(character) in characters_of(p)), None)


@lru_cache(maxsize=1)
def system_fonts() -> list[tuple[str, Path]]:
    """List the fonts of scripts, with the script's name; bold ones first."""
    paths = [
        path
        for folder in SYSTEM_FOLDERS
        for weight in ("Bold", "Regular")
        for family in ("Sans", "Serif")
        for path in sorted(folder.glob(f"Noto{family}*-{weight}.tt[fc]"))
    ]
    names = (path.stem.partition("-")[0].lower() for path in paths)
    scripts = (name.removeprefix("noto") for name in names)
    return [
        (script.removeprefix("sans").removeprefix("serif"), path)
        for script, path in zip(scripts, paths, strict=True)
    ]


@lru_cache(maxsize=100)
def characters_of(path: Path) -> frozenset[int]:
    # The first font of a collection is as complete as the others.
    with TTFont(path, fontNumber=0, lazy=True) as font:
        return frozenset(font.getBestCmap())
