"""Write an oTree project: a survey of pages with radio buttons."""

from __future__ import annotations

import secrets
from pathlib import Path

SETTINGS = """\
from os import environ

SESSION_CONFIGS = [
    dict(name="survey", app_sequence=["survey"], num_demo_participants=1)
]
SESSION_CONFIG_DEFAULTS = dict(
    real_world_currency_per_point=1.00, participation_fee=0.00, doc=""
)
PARTICIPANT_FIELDS = []
SESSION_FIELDS = []
LANGUAGE_CODE = "en"
REAL_WORLD_CURRENCY_CODE = "USD"
USE_POINTS = True
ADMIN_USERNAME = "admin"
ADMIN_PASSWORD = environ.get("OTREE_ADMIN_PASSWORD")
DEMO_PAGE_INTRO_HTML = ""
SECRET_KEY = "{key}"
"""

MODELS = """\
from otree.api import *


class C(BaseConstants):
    NAME_IN_URL = "survey"
    PLAYERS_PER_GROUP = None
    NUM_ROUNDS = 1


class Subsession(BaseSubsession):
    pass


class Group(BaseGroup):
    pass


class Player(BasePlayer):
"""

FIELD = """\
    q{page}_{item} = models.IntegerField(
        choices=[1, 2, 3, 4, 5],
        widget=widgets.RadioSelect,
        label="How often does this happen? ({page}.{item})",
    )
"""

PAGE = """

class Page{page}(Page):
    form_model = "player"
    form_fields = [{fields}]
    template_name = "survey/Questions.html"
"""

TEMPLATE = """\
{{ block title }}Questions{{ endblock }}
{{ block content }}
{{ formfields }}
{{ next_button }}
{{ endblock }}
"""


def write_project(folder: Path, *, pages: int, items: int) -> None:
    (folder / "settings.py").write_text(SETTINGS.format(key=secrets.token_urlsafe()))
    survey = folder / "survey"
    for needed in (survey, folder / "_static"):
        needed.mkdir()
    (survey / "Questions.html").write_text(TEMPLATE)
    (survey / "__init__.py").write_text(models(pages, items))


def models(pages: int, items: int) -> str:
    """Return an app, as oTree's documentation writes it."""
    numbers = range(1, pages + 1)
    places = range(1, items + 1)
    text = MODELS
    for page in numbers:
        text += "".join(FIELD.format(page=page, item=item) for item in places)
    for page in numbers:
        fields = ", ".join(f'"q{page}_{item}"' for item in places)
        text += PAGE.format(page=page, fields=fields)
    sequence = ", ".join(f"Page{page}" for page in numbers)
    return f"{text}\n\npage_sequence = [{sequence}]\n"
