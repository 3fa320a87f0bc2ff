"""A survey as Django's tutorial leads to it. Nothing of it is installed anywhere."""
