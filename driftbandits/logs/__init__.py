"""Decision logs: what their events hold, and the learner that follows from them."""
