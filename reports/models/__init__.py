from reports.models.comments import ReleasedSentence
from reports.models.exports import Export
from reports.models.panels import PanelProject
from reports.models.publications import Publication, PublishedPlace
from reports.models.rates import Curve, GradeRate, RollUp, SchoolRate
from reports.models.report_archives import ReportArchive
from reports.models.results import (
    CountedSchool,
    FormerPeople,
    GroupResults,
    ResultsRollUp,
)
from reports.models.scores import (
    Calibration,
    ChosenBenchmark,
    ImportedBenchmark,
    ReleasedItem,
    ScoreRow,
    Scoring,
)

__all__ = [
    "Calibration",
    "CountedSchool",
    "FormerPeople",
    "Curve",
    "Export",
    "GradeRate",
    "GroupResults",
    "PanelProject",
    "Publication",
    "PublishedPlace",
    "ChosenBenchmark",
    "ImportedBenchmark",
    "ReleasedItem",
    "ReleasedSentence",
    "ReportArchive",
    "ResultsRollUp",
    "RollUp",
    "SchoolRate",
    "ScoreRow",
    "Scoring",
]
