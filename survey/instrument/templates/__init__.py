from survey.instrument.templates.catalog import Template, sheets_of, templates

__all__ = ["Template", "sheets_of", "templates"]
