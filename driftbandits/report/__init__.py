"""From results to figures, tables and one HTML page; imports no policy."""
