"""The report of one school: its scores beside those of the district and the state."""
