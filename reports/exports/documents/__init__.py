"""What other programs read about an export: DDI, a data package, and syntax."""
