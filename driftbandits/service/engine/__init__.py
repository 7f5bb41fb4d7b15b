"""The thread that decides and learns, for all bandits of a worker."""
