from reports.models.rates import Curve, GradeRate, RollUp, SchoolRate

__all__ = ["Curve", "GradeRate", "RollUp", "SchoolRate"]
