"""How our programs are compiled: for one thread, without copies, the same on every processor."""

from functools import partial

import jax

OPTIONS = {
    "xla_cpu_multi_thread_eigen": False,
    # Without it, every step would copy the weights that are both read and written.
    "xla_cpu_copy_insertion_use_region_analysis": True,
    # With it, x / sqrt(y) starts from the processor's own estimate, and no two kinds agree.
    "xla_cpu_enable_platform_dependent_math": False,
}

jit = partial(jax.jit, compiler_options=OPTIONS)
