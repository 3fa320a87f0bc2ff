from reports.models.exports import Export

__all__ = ["Export"]
