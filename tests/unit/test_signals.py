"""Signals become a flag while a run is on, and everything is as before afterwards."""

import os
import signal
import threading

import pytest

from adfs.engine.interrupts import Interrupts


def send(number):
    os.kill(os.getpid(), number)


@pytest.fixture(autouse=True)
def handlers_are_left_as_found():
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        assert signal.getsignal(number) == handler
        signal.signal(number, handler)


def test_a_signal_sets_the_flag_and_ends_nothing():
    with Interrupts() as interrupts:
        assert interrupts.received is None
        send(signal.SIGINT)
        assert interrupts.received == signal.SIGINT


def test_a_second_signal_acts_as_usual():
    def insist():
        with Interrupts() as interrupts:
            send(signal.SIGINT)
            assert interrupts.received == signal.SIGINT
            send(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        insist()


def test_signals_that_are_not_listed_are_left_alone():
    seen = []
    previous = signal.signal(signal.SIGTERM, lambda *_: seen.append("theirs"))
    try:
        with Interrupts((signal.SIGINT,)) as interrupts:
            send(signal.SIGTERM)
        assert interrupts.received is None
        assert seen == ["theirs"]
    finally:
        signal.signal(signal.SIGTERM, previous)


def test_several_signals_can_be_listed_and_the_last_one_is_told():
    with Interrupts((signal.SIGINT, signal.SIGTERM)) as interrupts:
        send(signal.SIGTERM)
        assert interrupts.received == signal.SIGTERM
        send(signal.SIGINT)
        assert interrupts.received == signal.SIGINT


def test_handlers_come_back_after_an_error_inside():
    before = signal.getsignal(signal.SIGINT)

    def fail():
        with Interrupts():
            raise RuntimeError("inside")

    with pytest.raises(RuntimeError, match="inside"):
        fail()
    assert signal.getsignal(signal.SIGINT) is before


def test_the_default_action_comes_back_too():
    previous = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        with Interrupts((signal.SIGTERM,)) as interrupts:
            send(signal.SIGTERM)
            assert interrupts.received == signal.SIGTERM
            assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    finally:
        signal.signal(signal.SIGTERM, previous)


def test_outside_the_main_thread_nothing_changes():
    before, seen = signal.getsignal(signal.SIGINT), []

    def work():
        with Interrupts() as interrupts:
            seen.append((signal.getsignal(signal.SIGINT) is before, interrupts.received))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [(True, None)]
