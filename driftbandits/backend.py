"""How XLA runs our programs: each on the thread that calls it, and on no other.

Every core has a block of runs of its own. XLA would cut the blocks' loops in parts for threads of
its own, and spend more time on them than on the work; it asks NPROC for their number when it
starts. Those threads are also the ones that JAX would run a program on, one after the other.
"""

import os

import jax

os.environ.setdefault("NPROC", "1")
jax.config.update("jax_cpu_enable_async_dispatch", False)
