"""Measurements: how fast it is, and the numbers that it reaches."""
