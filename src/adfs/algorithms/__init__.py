"""One algorithm a file: a start, a move, a reading; no loop, clock, log, file or socket."""
