"""Decision logs: reading events and rebuilding a learner."""
