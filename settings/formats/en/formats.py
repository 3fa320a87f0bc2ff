"""Dates and times in English: one style on pages, in e-mails and on paper.

Templates write `|date:"DATETIME_FORMAT"`, Python `date_format`. Unlike Django's
"2:30 p.m.", a time can end a sentence. A moment names its time zone.
"""

DATE_FORMAT = "N j, Y"
TIME_FORMAT = "g:i A"
DATETIME_FORMAT = "N j, Y, g:i A T"
SHORT_DATETIME_FORMAT = "N j, g:i A"
MONTH_DAY_FORMAT = "N j"
