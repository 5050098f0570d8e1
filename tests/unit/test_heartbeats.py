"""A rank that runs ahead of an evaluation must not wait for a heartbeat that never comes."""

from types import SimpleNamespace

import pytest

from adfs.engine.execution import Spans
from adfs.engine.loop import Loop


class Patience:
    """Other ranks that wait for this one: it may ask so often, then it hangs."""

    def wait(self, ready, *_):
        for _ in range(10):
            if ready():
                return
        raise AssertionError("it waits for ever")


class Ahead(Loop):
    """A loop at a heartbeat, whose last one the other ranks have not reached."""

    def __init__(self, arrives):
        self.stepper = SimpleNamespace(position=8, load=lambda stop: None)
        self.heartbeat = SimpleNamespace(
            is_due=lambda position: True, arrived=lambda: arrives, is_gap_wanted=False,
            start=lambda *_: None, stops=lambda position: False, next_after=lambda position: 16,
        )  # fmt: skip
        self.controller = SimpleNamespace(
            stopping=SimpleNamespace(time_limit=None), watcher=None, show=lambda *_: None
        )
        self.checkpointer, self.interrupts = None, SimpleNamespace(received=None)
        self.spans, self.peers = Spans(False, lambda: 0.0), Patience()
        self._overlap_end, self._next_gap, self.since, self.seconds = 0, 0.0, 0.0, 0.0


@pytest.mark.parametrize("arrives", [True, False])
def test_a_complete_evaluation_ends_the_wait_for_a_heartbeat(arrives):
    # The others may have stopped by that evaluation, and wait for this rank to do so, too.
    polls = iter([False, False, True, True])
    pending = SimpleNamespace(done=lambda: next(polls))
    assert Ahead(arrives)._load(100, pending) == arrives


def test_without_an_evaluation_under_way_a_rank_waits():
    with pytest.raises(AssertionError, match="for ever"):
        Ahead(arrives=False)._load(100)
