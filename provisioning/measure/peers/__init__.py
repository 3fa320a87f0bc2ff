"""Other survey programs beside this one, on the same servers."""
