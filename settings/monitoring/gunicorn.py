"""Make gunicorn log in JSON, by its setting `logger_class`.

gunicorn writes no access log, because nginx has one with the same request ids.
"""

from __future__ import annotations

from gunicorn.config import Config
from gunicorn.glogging import Logger

from settings.monitoring.logs import JsonFormatter


class JsonLogger(Logger):
    """gunicorn's error log, in the format of the application's logs."""

    def setup(self, cfg: Config) -> None:
        super().setup(cfg)
        for handler in self.error_log.handlers:
            handler.setFormatter(JsonFormatter())
        # Call the standard logger directly, so that lines name the file of the
        # caller and not this one.
        for level in ("critical", "error", "exception", "warning", "info", "debug"):
            setattr(self, level, getattr(self.error_log, level))
