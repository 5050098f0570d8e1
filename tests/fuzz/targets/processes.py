"""The same as a process of its own, with streams that are closed or full; few, as each is slow."""

from dataclasses import replace

from fuzz.mutations import pick
from fuzz.targets import commands, libsvm, models, npz, schedules, settings

EVERY = 25  # of so many numbers one is run
OTHERS = (commands, libsvm, models, npz, schedules, settings)
STREAMS = ({"stdout": "file"}, {"stdout": "/dev/full"}, {"stdout": "closed"}, {"stderr": "closed"},
           {"stdin": "closed"})  # fmt: skip


def draw(generator):
    """A case of another target, and where its streams go."""
    case = pick(generator, OTHERS).draw(generator)
    return replace(case, target="processes", process=dict(pick(generator, STREAMS)))
