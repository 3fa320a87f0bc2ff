"""The pool of workers that serves the five hot views, and nothing else."""

from __future__ import annotations

from settings.stack import *  # noqa: F403

ROOT_URLCONF = "survey.urls"
