"""Numbers and times in Spanish as they are written in the United States.

Unlike "2:30 p.m.", a time can end a sentence. A moment names its time zone. Other
dates are Django's. Charts and style attributes need the decimal point too.
"""

TIME_FORMAT = "g:i A"
DATETIME_FORMAT = r"j \d\e F \d\e Y, g:i A T"
SHORT_DATETIME_FORMAT = "j b, g:i A"

DECIMAL_SEPARATOR = "."
THOUSAND_SEPARATOR = ","
NUMBER_GROUPING = 3
