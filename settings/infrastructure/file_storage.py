"""Store private files, and measure how long requests wait for the folder's disk."""

from __future__ import annotations

from typing import Any

from django.core.files.storage import FileSystemStorage

from settings.monitoring import stores


class TimedFileStorage(FileSystemStorage):
    """A folder. Reading a file that was opened is not measured."""

    def _open(self, *file: Any) -> Any:
        with stores.timed(stores.FILES):
            return super()._open(*file)  # type: ignore[misc]

    def _save(self, *file: Any) -> Any:
        with stores.timed(stores.FILES):
            return super()._save(*file)  # type: ignore[misc]

    def delete(self, name: str) -> None:
        with stores.timed(stores.FILES):
            super().delete(name)
