"""The end of a worker: nothing that cannot be interrupted keeps it."""

import subprocess
import sys

COMPILING = """
import threading, time
from driftbandits.service.server import leave
threading.Thread(target=time.sleep, args=(3600,), name="driftbandits-compiling_0").start()
print("said", end="")
leave()
"""


def test_a_thread_that_compiles_does_not_keep_a_worker_from_ending() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", COMPILING], capture_output=True, text=True, timeout=300, check=False
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "said", "")
