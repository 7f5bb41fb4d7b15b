"""Numerics that policies share."""
