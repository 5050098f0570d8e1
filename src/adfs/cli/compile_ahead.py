"""`adfs info --compile`: all kernels, compiled before the first run."""

from adfs.cli import output


def run(as_json: bool) -> int:
    """Compile what is missing and say how much that was."""
    from adfs.compilation import compile_all
    from adfs.kernels import compile_notice

    compile_notice.enabled = False  # it would promise less time than this takes
    done = compile_all()
    if as_json:
        output.emit_json(done._asdict())
    else:
        output.emit(
            f"compiled {done.n_compiled} kernels in {done.seconds:.1f} s, found {done.n_loaded} "
            f"compiled before; all are in {done.folder}\n"
        )
    return 0
