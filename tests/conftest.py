"""Compiled programs are kept between test runs, by each worker of its own."""

import os
from pathlib import Path

import jax

WORKER = os.environ.get("PYTEST_XDIST_WORKER", "main")
CACHE = Path(__file__).parents[1] / ".pytest_cache" / "compiled" / WORKER

jax.config.update("jax_compilation_cache_dir", str(CACHE))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.5)
