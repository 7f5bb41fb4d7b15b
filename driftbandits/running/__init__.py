"""Runs experiments: plans, computes, stores and assembles them."""
