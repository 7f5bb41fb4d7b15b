"""Other libraries' policies in our environments, our policies in theirs.

Everything here steps through Python, which is slower than `simulate`, in exactly the same worlds.
No other library is imported before it is used.
"""
