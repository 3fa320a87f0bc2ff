"""Letters and signs that make no difference when people look for a school.

Migration 0003 has written them into functions of the database, and queries are
normalised by them too. A change needs a migration that writes all rows again.
"""

from __future__ import annotations

import unicodedata

LIGATURES = {
    "ß": "ss",
    "ẞ": "ss",
    "æ": "ae",
    "Æ": "ae",
    "œ": "oe",
    "Œ": "oe",
    "þ": "th",
    "Þ": "th",
}
OTHER_LETTERS = {
    "ø": "o",
    "Ø": "o",
    "ł": "l",
    "Ł": "l",
    "đ": "d",
    "Đ": "d",
    "ð": "d",
    "Ð": "d",
    "ħ": "h",
    "Ħ": "h",
    "ı": "i",
    "ŋ": "n",
    "Ŋ": "n",
    "ŧ": "t",
    "Ŧ": "t",
}
LATIN = list(map(chr, (*range(0xC0, 0x250), *range(0x1E00, 0x1F00))))
# SQLite's lower() knows no letter but A to Z.
LETTERS = {
    letter: letter.lower()
    for letter in LATIN
    if letter.lower() != letter and len(letter.lower()) == 1
}
LETTERS |= {
    letter: base.lower()
    for letter in LATIN
    if (base := unicodedata.normalize("NFD", letter)[0]) != letter
    and base.isascii()
    and base.isalpha()
}
LETTERS |= OTHER_LETTERS
LETTERS = {old: new for old, new in LETTERS.items() if old not in LIGATURES}
# "O'Brien" is found by "obrien", and "St. Mary-Ann" by "st mary ann".
REMOVED = "'’‘`ʻʼ´" + "".join(map(chr, range(0x300, 0x370)))
SPACES = (
    "".join(
        map(chr, (*range(1, 32), *range(0x7F, 0xA1), 0x1680, *range(0x2000, 0x200C)))
    )
    + '\u2028\u2029\u202f\u205f\u3000\ufeff!"#$%&()*+,-./:;<=>?@[\\]^_{|}~–—“”«»·•…¡¿'
)
