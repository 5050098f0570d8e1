"""The line that explains why the first run on a machine takes longer. Imports no Numba."""

import os
import sys
import time

KEPT = "compiling kernels, once on this machine (about 15 s)"
NOT_KEPT = (
    "compiling kernels, again in every process (about 15 s): no folder to keep them in can be "
    "written; set NUMBA_CACHE_DIR to one that can"
)
TOGETHER = 5.0  # seconds within which the processes of one job begin

enabled = os.environ.get("ADFS_COMPILE_NOTICE") != "0"  # --quiet sets it to False
began = time.time() - TOGETHER
_is_told = False


def tell(is_kept, is_first):
    """Write the line, once per process; ``is_first`` asks whether no other process has done so."""
    global _is_told
    if _is_told or not enabled:
        return
    _is_told = True
    if sys.stderr is None or not is_first():
        return
    try:
        print(KEPT if is_kept else NOT_KEPT, file=sys.stderr, flush=True)
    except (OSError, ValueError):  # a closed stderr
        return
