"""Prove from images of a disk that a power failure loses no acknowledged answer."""
