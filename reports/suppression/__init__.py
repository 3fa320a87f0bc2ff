"""Decide what is too small to show, in every page, chart and file.

`rates` has the rules for response rates, which are not answers; `results.decide` has
those for everything that is made of answers.
"""

from __future__ import annotations

HIDDEN = "*"
