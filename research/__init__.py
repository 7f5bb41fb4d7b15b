"""Experiments that were not kept, so that nobody has to make them again."""
