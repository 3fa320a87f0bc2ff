"""Compare `manage.py estimate_measures` with eRm, and with what was simulated.

`data_sets/` has answers and what eRm estimates from them; `make_data_sets.R` wrote
both, and writes them again with `provisioning/run agreement --with-r`.
"""
