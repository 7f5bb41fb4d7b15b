"""Simulates a policy in an environment, over many steps and runs, on all cores."""
