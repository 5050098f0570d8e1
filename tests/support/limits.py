"""How long a test waits before it says that a process hangs: no busy machine needs so long."""

HANG = 600  # seconds
