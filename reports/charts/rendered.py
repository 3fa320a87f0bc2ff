"""Render charts once for all who see the same figures.

On the day of the results, all of a state's principals open the same few pages; drawing
sixty charts takes most of a page's time. The key is a digest of everything that is
drawn, so nobody gets figures that are not theirs, and other figures are drawn anew.
"""

from __future__ import annotations

import pickle
from base64 import b64decode, b64encode
from collections.abc import Mapping
from hashlib import sha256
from zlib import compress, decompress

from django.core.cache import cache
from django.template.loader import render_to_string
from django.utils.safestring import SafeString
from django.utils.translation import get_language

# In seconds. As long as another release of the software may find them.
KEPT = 10 * 60


def rendered_once(
    template: str, context: Mapping[str, object], drawn: object
) -> SafeString:
    """Return the HTML of a template, from the cache if it is there.

    `drawn` is all that the HTML depends on besides the language, and can be pickled.
    Items of `context` are evaluated only if the template is rendered.
    """
    digest = sha256(pickle.dumps((template, get_language(), drawn))).hexdigest()
    key = f"results.html.{digest}"
    if packed := cache.get(key):
        return SafeString(decompress(b64decode(packed)).decode())
    html = render_to_string(template, dict(context))
    # Items of Memcached have at most 1 MB, and a school's page has 300 kB.
    cache.set(key, b64encode(compress(html.encode(), level=1)).decode(), KEPT)
    return SafeString(html)
