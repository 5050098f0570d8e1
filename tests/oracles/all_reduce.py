"""A pipelined all-reduce on a tree, message by message: the rounds that it takes.

Every node has ``n_parts`` messages, and every node needs their sums over all nodes. In a round a
link carries at most one message in each direction; what arrives can be sent on in the next round.
Parts go towards the middle of the tree, one after another: a node sends a part when it has added
what comes from behind it. The middle is one node, or two that exchange what they have. From there
the sums go back: after the last one is complete, or with ``overlap`` each as soon as it is.

A sum is the set of nodes whose numbers are in it.
"""

import networkx as nx


def rounds(tree, n_parts, overlap=False):
    """Rounds until every node has every sum."""
    middle, everyone = nx.center(tree), frozenset(tree)
    behind = {node: _behind(tree, node, middle) for node in tree}
    sums = {node: [frozenset([node])] * n_parts for node in tree}
    sent = {(a, b): 0 for edge in tree.edges for a, b in (edge, edge[::-1])}
    t = 0
    while any(one != everyone for node in tree for one in sums[node]):
        broadcast = overlap or all(one == everyone for node in middle for one in sums[node])
        messages = []
        for (a, b), k in sent.items():
            inwards = b not in behind[a]
            wanted = behind[a] if inwards else everyone
            if k < n_parts and wanted <= sums[a][k] and (inwards or broadcast):
                messages.append((a, b, k, wanted))
        for a, b, k, content in messages:
            sums[b][k] |= content
            sent[a, b] += 1
        t += 1
    return t


def _behind(tree, node, middle):
    """The node, and all nodes whose way to the middle leads through it."""
    rest = tree.copy()
    ways = nx.multi_source_dijkstra_path(tree, set(middle))
    link = ways[node][-2:] if len(ways[node]) > 1 else middle
    rest.remove_edges_from([link] if len(link) == 2 else [])
    return frozenset(nx.node_connected_component(rest, node))
