"""Numbers and times in Spanish as they are written in the United States.

Other dates are Django's. Charts and style attributes need the decimal point too.
"""

TIME_FORMAT = "g:i a"
DATETIME_FORMAT = r"j \d\e F \d\e Y, g:i a"
SHORT_DATETIME_FORMAT = "j M, g:i a"

DECIMAL_SEPARATOR = "."
THOUSAND_SEPARATOR = ","
NUMBER_GROUPING = 3
