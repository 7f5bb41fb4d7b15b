"""The tracker and its parts: a policy that finds out by itself how fast rewards drift."""
