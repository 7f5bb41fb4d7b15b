"""The decision service: agents behind HTTP, with a log that loses nothing."""
