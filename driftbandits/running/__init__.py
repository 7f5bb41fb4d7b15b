"""From experiments to results: planned, computed, kept and assembled."""
