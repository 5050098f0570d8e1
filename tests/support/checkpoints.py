"""States to save, and processes that are killed while they save them."""

import itertools
import os
import signal
import sys
from pathlib import Path

import numpy as np

import adfs
from adfs import storage
from adfs.engine import checkpoint_folder
from adfs.engine.checkpoint_folder import CheckpointFolder
from adfs.errors import CheckpointError

# The lines of a save between which something changes on disk.
TOUCH_DISK = (storage.__file__, checkpoint_folder.__file__)


def identity(nodes=range(4), seed=0, **config):
    data = {str(node): f"digest of node {node}" for node in nodes}
    config = {"loss": "logistic", "sigma": 1.0} | config
    return {"adfs": adfs.__version__, "seed": seed, "config": config, "data": data}


def state(position, nodes=range(4), n=3):
    """Arrays that differ from node to node and from position to position."""
    return {
        node: {
            "theta": np.sin(np.arange(n) + position + 0.1 * node),
            "counts": np.array([position, node]),
        }
        for node in nodes
    }


def save(store, position, nodes=range(4), **options):
    store.save(position, {"at": position}, state(position, nodes), **options)


def same(found, expected):
    """Same nodes, names, types, shapes and bits."""
    return _bits(found) == _bits(expected)


def _bits(nodes):
    return {
        (node, key): (array.dtype.str, array.shape, array.tobytes())
        for node, arrays in nodes.items()
        for key, array in arrays.items()
    }


def files(folder):
    return sorted(path.name for path in Path(folder).iterdir())


def save_for_ever(folder):
    """Save, and say so, until killed; each file takes a while to write."""
    store = CheckpointFolder(folder, identity())
    store.open()
    for position in itertools.count(100, 100):
        store.save(position, {"at": position}, state(position, n=200_000))
        print(position, flush=True)


def die_at_line(store, line):
    """In a child: save position 300 and die when the ``line``-th line of ours is reached."""
    child = os.fork()
    if child == 0:
        sys.settrace(_countdown(line))
        save(store, 300)
        sys.settrace(None)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    return not os.WIFSIGNALED(status)


def _countdown(line):
    left = itertools.count(line, -1)

    def trace(frame, event, argument):
        if frame.f_code.co_filename not in TOUCH_DISK:
            return None
        if event == "line" and next(left) == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return trace

    return trace


def die_at_every_line(folder):
    """Save 100 and 200, die at some line of saving 300, look, save 400; for every line.

    Prints a row ``line finished newest temporaries-before files-after`` for each line.
    """
    for line in itertools.count():
        place = Path(folder) / str(line)
        store = CheckpointFolder(place, identity())
        store.open()
        save(store, 100)
        save(store, 200)
        finished = die_at_line(store, line)
        left = sum(map(bool, map(storage.temporary_of, files(place))))
        after = CheckpointFolder(place, identity())
        newest = next(after.valid_positions(range(4)))
        assert same(after.load(newest, range(4)).nodes, state(newest))
        assert after.skipped == []
        save(after, 400)
        print(line, int(finished), newest, left, *files(place), flush=True)
        if finished:
            return


def fill_the_disk(folder):
    """Save ever larger states until the disk is full; prints what was kept and the sentence."""
    store = CheckpointFolder(folder, identity())
    store.open()
    for position in itertools.count(100, 100):
        try:
            store.save(position, {"at": position}, state(position, n=position * 20))
        except CheckpointError as error:
            print(error)
            break
    newest = next(CheckpointFolder(folder, identity()).valid_positions(range(4)))
    loaded = CheckpointFolder(folder, identity()).load(newest, range(4))
    assert same(loaded.nodes, state(newest, n=newest * 20))
    print(position, newest, *files(folder))
