"""Tools of the project; none of it is installed."""
