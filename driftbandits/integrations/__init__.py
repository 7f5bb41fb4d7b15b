"""Policies of other libraries in our environments, and our policies in theirs.

Everything here steps through Python, which is slower than `simulate`, in exactly the same worlds.
No other library is imported before it is used.
"""
