from survey.models.administration import (
    Administration,
    Identity,
    Respondent,
    Role,
    Wave,
)
from survey.models.card_set import CardSet
from survey.models.instrument import (
    Block,
    Item,
    Option,
    OptionSet,
    Page,
    PublishedSurvey,
    Survey,
)
from survey.models.job import Job
from survey.models.response import Response

__all__ = [
    "Administration",
    "Block",
    "CardSet",
    "Identity",
    "Item",
    "Job",
    "Option",
    "OptionSet",
    "Page",
    "PublishedSurvey",
    "Respondent",
    "Response",
    "Role",
    "Survey",
    "Wave",
]
