"""Read surveys from XLSForm workbooks (.xlsx and .xls).

`read_xlsform` reads a file to a draft, or to a list of everything that is
wrong with it; `import_survey` stores the draft.
"""

import logging

from survey.instrument.xlsform.importing import SurveyIsPublished, import_survey
from survey.instrument.xlsform.problems import Problem
from survey.instrument.xlsform.reading import Reading, read_xlsform

__all__ = [
    "Problem",
    "Reading",
    "SurveyIsPublished",
    "import_survey",
    "read_xlsform",
]

# lark, which pyxform imports, writes plain text to stderr beside the JSON logs.
logging.getLogger("lark").handlers.clear()
