"""Kernels are compiled by one process of a machine, whatever happens to it."""

import json
import os
import signal
import subprocess
import sys
import textwrap

import pytest

from adfs.kernels.compile_notice import KEPT, NOT_KEPT
from adfs.kernels.compiled import FILE, CompileLock
from support.limits import HANG

pytestmark = pytest.mark.slow  # starts processes
KERNELS = """
from adfs.kernels.compiled import njit
from callee import square

@njit(cache=True, _nrt=False, nogil=True)
def first(n):
    total = 0.0
    for k in range(n):
        total += square(k)
    return total

@njit(cache=True, _nrt=False, nogil=True)
def second(n):
    return first(n) + square(n)

@njit(cache=True, _nrt=False, nogil=True)
def third(n):
    return square(n) - 1.0

@njit(cache=True)
def wrong(n):
    return n.no_such_attribute
"""
CALLEE = """
from adfs.kernels.compiled import njit

@njit(cache=True, _nrt=False, forceinline=True)
def square(x):
    return 1.0 * x * x
"""
WORKER = """
import importlib, json, sys, time
from numba.core import event

class Listener(event.Listener):
    def __init__(self):
        self.names = []

    def on_start(self, event):
        self.names.append(event.data["dispatcher"].__name__)
        if "hang" in sys.argv:
            print("compiling", flush=True)
            time.sleep(600)

    def on_end(self, event):
        pass

listener = Listener()
event.register("numba:compile", listener)
from adfs.kernels import compiled
exec(sys.argv[1])
import kernels
print("ready", flush=True)
sys.stdin.readline()
found = {name: getattr(kernels, name)(3) for name in sys.argv[2].split(",")}
print(json.dumps([listener.names, found, compiled.lock.is_held]), flush=True)
"""
ALL = ("first", "second", "third")
RESULTS = {"first": 5.0, "second": 14.0, "third": 8.0}
NOT_BESIDE = """
from numba.core import caching
def refuse(self): raise PermissionError("read-only")
def lock_up(name):  # Numba 0.61 has the names with an underscore
    locator = getattr(caching, name, None) or getattr(caching, "_" + name)
    locator.ensure_cache_path = refuse
lock_up("InTreeCacheLocator")
"""
NOWHERE = NOT_BESIDE + 'lock_up("UserWideCacheLocator")'


@pytest.fixture
def start(tmp_path):
    """Starts processes that import the kernels and wait for `go`."""
    (tmp_path / "kernels.py").write_text(KERNELS)
    (tmp_path / "callee.py").write_text(CALLEE)
    started = []

    def begin(names=ALL, *words, before="", **environment):
        # Python takes a file changed within a second, of the same size, for the one it compiled.
        ours = {"XDG_CACHE_HOME": str(tmp_path / "home"), "PYTHONDONTWRITEBYTECODE": "1"}
        environment = ours | environment
        changed = ("NUMBA_CACHE_DIR", "ADFS_COMPILE_NOTICE")
        inherited = {key: value for key, value in os.environ.items() if key not in changed}
        process = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(WORKER), before, ",".join(names), *words],
            cwd=tmp_path, env=inherited | environment, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        started.append(process)
        return process

    yield begin
    for process in started:
        process.kill()
        process.communicate()


def wait_until(process, word):
    assert process.stdout.readline().strip() == word, process.stderr.read()


def go(process):
    process.stdin.write("\n")
    process.stdin.flush()


def end(process):
    """Which kernels it compiled, what they gave, and what it said on stderr."""
    out, err = process.communicate(timeout=HANG)
    assert process.returncode == 0, err
    names, found, is_held = json.loads(out.splitlines()[-1])
    assert not is_held
    return names, found, err


def run(start, *arguments, **options):
    process = start(*arguments, **options)
    go(process)
    return end(process)


def test_of_three_processes_one_compiles_a_kernel_and_one_says_so(start):
    orders = (ALL, ALL[::-1], ("second", "third", "first"))
    processes = [start(order) for order in orders]
    for process in processes:
        wait_until(process, "ready")
    for process in processes:
        go(process)
    ends = [end(process) for process in processes]
    assert sorted(name for names, _, _ in ends for name in names) == sorted([*ALL, "square"])
    assert all(found == RESULTS for _, found, _ in ends)
    assert "".join(err for _, _, err in ends) == KEPT + "\n"


def test_kernels_found_in_the_cache_are_loaded_without_a_word(start):
    run(start)
    assert run(start) == ([], RESULTS, "")


def test_a_process_killed_while_it_compiles_blocks_nobody(start):
    killed = start(ALL, "hang")
    go(killed)
    wait_until(killed, "ready")
    wait_until(killed, "compiling")
    other = start()
    wait_until(other, "ready")
    go(other)
    with pytest.raises(subprocess.TimeoutExpired):
        other.wait(1.5)  # it cannot end before the lock is free
    killed.send_signal(signal.SIGKILL)
    names, found, _ = end(other)
    assert sorted(names) == sorted([*ALL, "square"])
    assert found == RESULTS


def test_nobody_waits_for_ever_for_a_process_that_hangs(start):
    hanging = start(ALL, "hang")
    go(hanging)
    wait_until(hanging, "ready")
    wait_until(hanging, "compiling")
    assert run(start, before="compiled.lock.longest_wait = 0.2")[1] == RESULTS


def test_a_kernel_that_does_not_compile_leaves_no_lock(start):
    attempt = "import numba\ntry: kernels.wrong(3)\nexcept numba.TypingError: pass\n"
    assert run(start, before="import kernels\n" + attempt)[1] == RESULTS


def test_a_changed_callee_in_another_file_is_noticed(start, tmp_path):
    assert run(start)[1] == RESULTS
    (tmp_path / "callee.py").write_text(CALLEE.replace("1.0 *", "2.0 *"))
    assert run(start)[1] == {"first": 10.0, "second": 28.0, "third": 17.0}


def test_kernels_kept_for_a_type_that_has_another_name_now_are_compiled_again(start, tmp_path):
    """The index of the cache names the types of arguments, which an upgrade may have moved."""
    source = """
        from typing import NamedTuple
        from adfs.kernels.compiled import njit

        class OldName(NamedTuple):
            value: float

        @njit(cache=True)
        def inner(pair):
            return 2.0 * pair.value

        def third(n):
            return inner(OldName(float(n)))
        """
    for name in ("OldName", "NewName"):
        (tmp_path / "kernels.py").write_text(textwrap.dedent(source).replace("OldName", name))
        names, found, _ = run(start, ("third",))
        assert (names, found) == (["inner"], {"third": 6.0})


def test_what_was_compiled_ahead_is_read_where_it_cannot_be_written(start):
    run(start)
    for before in (NOT_BESIDE, NOWHERE):
        assert run(start, before=before) == ([], RESULTS, "")


def test_a_named_folder_is_read_too_and_nothing_else_if_it_can_be_written(start, tmp_path):
    run(start)
    named = {"NUMBA_CACHE_DIR": str(tmp_path / "named")}
    assert len(run(start, **named)[0]) == 4
    (tmp_path / "__pycache__").rename(tmp_path / "gone")
    locked = NOT_BESIDE + 'lock_up("UserProvidedCacheLocator")'
    assert run(start, before=locked, **named) == ([], RESULTS, "")


def test_where_nothing_can_be_written_kernels_are_compiled_and_not_kept(start):
    for _ in range(2):
        names, found, err = run(start, before=NOWHERE)
        assert (len(names), found, err) == (4, RESULTS, NOT_KEPT + "\n")


def test_quiet_is_quiet_and_uncompiled_functions_are_plain(start, tmp_path):
    silence = "from adfs.kernels import compile_notice; compile_notice.enabled = False"
    assert run(start, before=silence)[2] == ""
    assert run(start, ADFS_COMPILE_NOTICE="0", NUMBA_CACHE_DIR=str(tmp_path))[2] == ""
    assert run(start, NUMBA_DISABLE_JIT="1") == ([], RESULTS, "")


def test_a_folder_without_a_lock_file_is_no_reason_to_wait(tmp_path):
    lock = CompileLock()
    assert not lock.wait(str(tmp_path / "missing"))
    assert lock.wait(str(tmp_path))
    assert lock.is_held
    assert not lock.wait(str(tmp_path))
    lock.release()
    assert (tmp_path / FILE).exists()


def test_info_compile_leaves_nothing_for_a_run_to_compile(tmp_path):
    first = _info_compile()
    assert first["n_compiled"] + first["n_loaded"] > 30
    code = "from adfs.cli.main import main; from adfs.kernels.compiled import counts; "
    for words in (["--loss", "hinge", "--schedule", "poisson"], ["--trace", "t.csv"]):
        command = ["train", "breast-cancer", "--quiet", "--max-iter", "3000", *words]
        code += f"main({command}); print(counts['compiled'], counts['loaded']); "
    for line in _python("-c", code, cwd=tmp_path).splitlines():
        compiled, loaded = line.split()
        assert int(compiled) == 0
        assert int(loaded) > 5


@pytest.mark.soak
def test_info_compile_a_second_time_compiles_nothing():
    first, second = (_info_compile() for _ in range(2))
    assert second["n_compiled"] == 0
    assert second["folder"] == first["folder"]


def test_info_compile_without_a_folder_to_write_names_the_way_out(tmp_path):
    file = tmp_path / "file"
    file.touch()
    done = subprocess.run(
        [sys.executable, "-m", "adfs", "info", "--compile"], capture_output=True, text=True,
        env={**os.environ, "NUMBA_CACHE_DIR": str(file)}, timeout=HANG, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert "NUMBA_CACHE_DIR" in done.stderr


def _info_compile():
    """The command, for one form of rows: all of them take minutes where nothing is compiled."""
    code = (
        "from adfs import compilation; compilation.FORMS = compilation.FORMS[:1]; "
        "from adfs.cli.main import main; main(['info', '--compile', '--json'])"
    )
    return json.loads(_python("-c", code))


def _python(*words, cwd=None):
    done = subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, check=True, cwd=cwd
    )
    return done.stdout
