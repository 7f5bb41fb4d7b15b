"""What writes docs and README from results."""
