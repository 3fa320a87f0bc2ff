from reports.models.exports import Export
from reports.models.panels import PanelProject
from reports.models.rates import Curve, GradeRate, RollUp, SchoolRate

__all__ = ["Curve", "Export", "GradeRate", "PanelProject", "RollUp", "SchoolRate"]
