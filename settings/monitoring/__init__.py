"""What an engineer on call sees: health, metrics and logs."""
