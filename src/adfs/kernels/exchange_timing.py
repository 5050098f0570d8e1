"""Messages between two ranks, timed one by one, by the calls of the compiled loop of a rank."""

import numpy as np

from adfs.kernels.compiled import njit
from adfs.kernels.rank_messages import YIELD_EVERY, give_way, irecv, isend, testall, wtime


@njit(cache=True, _nrt=False, nogil=True)
def time_exchanges(peer, outgoing, incoming, comm, kind, requests, statuses, flag, seconds):
    """Exchange ``outgoing`` with a rank once per entry of ``seconds``; returns MPI's fault or 0.

    An exchange begins when both messages are posted and ends when both are through; both ranks
    begin the next one as soon as they can.
    """
    count, tag, both = np.int32(outgoing.size), np.int32(0), np.int32(2)
    first = np.uintp(requests.ctypes.data)
    second = np.uintp(requests.ctypes.data + requests.size // 2)
    for k in range(seconds.size):
        started = wtime()
        fault = irecv(np.uintp(incoming.ctypes.data), count, kind, peer, tag, comm, first)
        fault |= isend(np.uintp(outgoing.ctypes.data), count, kind, peer, tag, comm, second)
        flag[0], polls = 0, 0
        while fault == 0 and flag[0] == 0:
            fault = testall(
                both, first, np.uintp(flag.ctypes.data), np.uintp(statuses.ctypes.data)
            )  # fmt: skip
            polls += 1
            if polls % YIELD_EVERY == 0:
                give_way()
        if fault:
            return fault
        seconds[k] = wtime() - started
    return 0
