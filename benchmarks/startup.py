"""Time to ``import adfs``, and whether a second process compiles anything."""

import subprocess
import sys
import time

IMPORT = "import adfs"
SOLVE = """
import numpy as np, adfs
X, y = np.random.default_rng(0).standard_normal((200, 5)), np.arange(200) % 2
adfs.solve(adfs.Problem(adfs.partition(X, y, 4)), tol=1e-4, progress=False)
from adfs.kernels import certificate, clocks, event_loop, sampling
used = (event_loop.run_events, certificate.gap_passes, sampling.draw_which, sampling.draw_samples,
        clocks.advance)
print(sum(sum(f.stats.cache_misses.values()) for f in used),
      sum(sum(f.stats.cache_hits.values()) for f in used))
"""


def seconds(code):
    """Wall time of a fresh interpreter, and what it printed."""
    start = time.perf_counter()
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return time.perf_counter() - start, run.stdout.split()


def main():
    """Print both; returns the row."""
    bare = min(seconds("pass")[0] for _ in range(3))
    plain = min(seconds(IMPORT)[0] for _ in range(3)) - bare
    seconds(SOLVE)
    second, (misses, hits) = seconds(SOLVE)
    print(f"import adfs: {plain:.2f} s (goal < 1); a second process: {second:.2f} s, "
          f"compiles {misses} kernels, finds {hits} in the cache")  # fmt: skip
    return {"import_s": plain, "second_process_s": second, "cache_misses": int(misses),
            "cache_hits": int(hits)}  # fmt: skip


if __name__ == "__main__":
    main()
