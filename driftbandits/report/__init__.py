"""From results to figures; imports no policy."""
