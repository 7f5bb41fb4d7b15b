"""The service's database: bandits, their logs and snapshots, leases and keys."""
