from reports.models.exports import Export
from reports.models.rates import Curve, GradeRate, RollUp, SchoolRate

__all__ = ["Curve", "Export", "GradeRate", "RollUp", "SchoolRate"]
