"""An agent: a policy made stateful, that decides for real users and learns when rewards come."""
