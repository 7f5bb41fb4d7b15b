"""Experiments: what is asked and claimed, and what the numbers say of it."""
