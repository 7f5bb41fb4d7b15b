"""Experiments: questions and claims, and what the numbers say about them."""
