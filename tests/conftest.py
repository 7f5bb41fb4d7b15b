"""Compiled programs are kept between test runs."""

from pathlib import Path

import jax

CACHE = Path(__file__).parents[1] / ".pytest_cache" / "compiled"

jax.config.update("jax_compilation_cache_dir", str(CACHE))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.5)
