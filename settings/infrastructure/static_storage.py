"""Store static files under names with a hash, with gzip and brotli copies."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from whitenoise.compress import Compressor
from whitenoise.storage import CompressedManifestStaticFilesStorage


class CompressOnce(Compressor):
    """Compress equal contents once: most files have two names, one with a hash.

    Brotli takes nine tenths of the time of collecting static files.
    """

    # Those fonts are for printed login cards; no browser loads them.
    SKIP_COMPRESS_EXTENSIONS = (*Compressor.SKIP_COMPRESS_EXTENSIONS, "ttf")
    compress_brotli = staticmethod(lru_cache(None)(Compressor.compress_brotli))


class StaticStorage(CompressedManifestStaticFilesStorage):
    def create_compressor(self, **options: Any) -> Compressor:
        return CompressOnce(**options)
