"""For gunicorn: `logger_class = "settings.monitoring.gunicorn.JsonLogger"`.

No access log is set anywhere: nginx has one, with the same request ids.
"""

from __future__ import annotations

from gunicorn.config import Config
from gunicorn.glogging import Logger

from settings.monitoring.logs import JsonFormatter


class JsonLogger(Logger):
    """gunicorn's error log, in the application's format and by its rules."""

    def setup(self, cfg: Config) -> None:
        super().setup(cfg)
        for handler in self.error_log.handlers:
            handler.setFormatter(JsonFormatter())
        # Straight to the library's, so that a line names its caller's file
        # and not this one's.
        for level in ("critical", "error", "exception", "warning", "info", "debug"):
            setattr(self, level, getattr(self.error_log, level))
