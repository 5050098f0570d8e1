"""Finish times of the nodes, event by event, under the two time models.

Events are ("local", i) or ("comm", k, l), executed in schedule order. One local update takes 1
(divided by the node's speed), one communication takes tau (a number, or one per edge).
"""


def rendezvous(n_nodes, events, tau, edges=None, speed=None):
    """App. C, proof of Lemma 3: T_k = T_l = tau + max(T_k, T_l); returns T of every node."""
    times = [0.0] * n_nodes
    for event in events:
        if event[0] == "local":
            times[event[1]] += local_time(event[1], speed)
        else:
            _, k, l = event
            both = max(times[k], times[l]) + delay(k, l, tau, edges)
            times[k] = both
            times[l] = both
    return times


def nonblocking(n_nodes, events, tau, edges=None, speed=None):
    """App. E: a node goes on once it has sent its own message and received its neighbour's.

    T_k = max(T_k, T_l + tau) and T_l = max(T_l, T_k + tau), both from the old T_k and T_l:
    each message leaves when its sender reaches the event and travels for tau.
    """
    times = [0.0] * n_nodes
    for event in events:
        if event[0] == "local":
            times[event[1]] += local_time(event[1], speed)
        else:
            _, k, l = event
            sent_by_k, sent_by_l = times[k], times[l]
            travel = delay(k, l, tau, edges)
            times[k] = max(sent_by_k, sent_by_l + travel)
            times[l] = max(sent_by_l, sent_by_k + travel)
    return times


def local_time(i, speed):
    """One proximal step takes 1; a node of speed 2 does it in 1/2."""
    return 1.0 if speed is None else 1.0 / speed[i]


def delay(k, l, tau, edges):
    """tau of edge (k, l): the number itself, or the entry of the list aligned with `edges`."""
    if edges is None:
        return tau
    for index, (first, second) in enumerate(edges):
        if {first, second} == {k, l}:
            return tau[index]
    raise KeyError((k, l))
