from reports.models.exports import Export
from reports.models.panels import PanelProject
from reports.models.rates import Curve, GradeRate, RollUp, SchoolRate
from reports.models.results import CountedSchool, GroupResults, ResultsRollUp

__all__ = [
    "CountedSchool",
    "Curve",
    "Export",
    "GradeRate",
    "GroupResults",
    "PanelProject",
    "ResultsRollUp",
    "RollUp",
    "SchoolRate",
]
