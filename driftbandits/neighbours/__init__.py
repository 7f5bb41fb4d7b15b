"""Other libraries' policies in our worlds, our policies in other libraries' worlds.

Everything here goes step by step in Python, which is slower than `simulate` and meets exactly the
same worlds. Nothing here imports another library before it is used.
"""
