"""Check the PDF of a school's report with veraPDF, an independent validator."""
