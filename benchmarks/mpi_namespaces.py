"""Ranks on hosts that share no memory, on one machine: network namespaces, TCP between them.

    python benchmarks/mpi_namespaces.py -n 2 -- python -m adfs train a9a --engine mpi --nodes 4

Every host is a namespace with one interface, on a switch in a namespace of its own from which
mpiexec starts them; the network of the machine itself is left alone. UCX and libfabric would use
shared memory behind our back, so both are held to TCP, and the bytes on the interfaces are counted
to be sure. Needs Linux, root and ``ip``; `allowed` says what is missing.
"""

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SUBNET = "10.77.0"
SWITCH = 254  # the number of mpiexec's host
TCP_ONLY = {"UCX_TLS": "tcp,self", "FI_PROVIDER": "tcp", "MPIR_CVAR_NOLOCAL": "1"}
# What hydra takes for ssh: options, a host, and a command line for its shell.
LAUNCHER = """#!/bin/sh
while [ "${1#-}" != "$1" ]; do shift; done
host=${1##*.}; shift
exec ip netns exec PREFIX-$host BIND unshare --uts sh -c "hostname host-$host; $*"
"""


class Hosts:
    """Namespaces ``1, 2, ...`` with a switch between them; gone when the context is left.

    Parameters
    ----------
    n_hosts : int
    bind : bool
        Give each host one core, the k-th the k-th; hydra's own binding puts all on the first.
    """

    tcp_only = TCP_ONLY

    def __init__(self, n_hosts, bind=True):
        self.numbers = list(range(1, n_hosts + 1))
        self.prefix, self.bind = f"adfs{os.getpid()}", bind
        self._folder = None

    def __enter__(self):
        self._folder = tempfile.TemporaryDirectory(prefix="adfs-hosts-")
        try:
            self._plug()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        self.launcher = Path(self._folder.name) / "launcher"
        self.launcher.write_text(
            LAUNCHER.replace("PREFIX", self.prefix).replace("BIND", self._binding())
        )
        self.launcher.chmod(0o755)
        return self

    def _plug(self):
        hub = self._add(SWITCH)
        ip("-n", hub, "link", "add", "switch", "type", "bridge")
        ip("-n", hub, "addr", "add", f"{SUBNET}.{SWITCH}/24", "dev", "switch")
        ip("-n", hub, "link", "set", "switch", "up")
        for k in self.numbers:
            name = self._add(k)
            ip("link", "add", "eth0", "netns", name, "type", "veth",
               "peer", "name", f"port{k}", "netns", hub)  # fmt: skip
            ip("-n", name, "addr", "add", f"{SUBNET}.{k}/24", "dev", "eth0")
            ip("-n", name, "link", "set", "eth0", "up")
            ip("-n", hub, "link", "set", f"port{k}", "master", "switch", "up")

    def _add(self, number):
        name = f"{self.prefix}-{number}"
        ip("netns", "add", name)
        ip("-n", name, "link", "set", "lo", "up")
        return name

    def _binding(self):
        if not self.bind or shutil.which("taskset") is None:
            return ""
        cores = sorted(os.sched_getaffinity(0))
        return f"taskset -c $(echo {' '.join(map(str, cores))} | cut -d ' ' -f " + (
            f"$(( (host - 1) % {len(cores)} + 1 )))"
        )

    def command(self, n_ranks, *arguments, mpiexec=None):
        """The command line that runs ``n_ranks`` on the hosts, one after the other."""
        hosts = ",".join(f"{SUBNET}.{k}" for k in self.numbers)
        return [
            "ip", "netns", "exec", f"{self.prefix}-{SWITCH}", mpiexec or find_mpiexec(),
            "-launcher", "ssh", "-launcher-exec", str(self.launcher),
            "-localhost", f"{SUBNET}.{SWITCH}", "-hosts", hosts, "-n", str(n_ranks),
            *map(str, arguments),
        ]  # fmt: skip

    def run(self, n_ranks, *arguments, **keywords):
        """Run a command on the hosts to its end, as ``subprocess.run`` does."""
        environment = keywords.pop("env", os.environ) | TCP_ONLY
        return subprocess.run(self.command(n_ranks, *arguments), env=environment, **keywords)

    @contextlib.contextmanager
    def isolated(self):
        """No host reaches another, only mpiexec's: as behind a firewall."""
        self._isolate("on")
        try:
            yield
        finally:
            self._isolate("off")

    def _isolate(self, value):
        for k in self.numbers:
            ip("-n", f"{self.prefix}-{SWITCH}", "link", "set", f"port{k}",
               "type", "bridge_slave", "isolated", value)  # fmt: skip
            ip("-n", f"{self.prefix}-{k}", "neigh", "flush", "all")

    def traffic(self):
        """Bytes that each host has sent and received so far."""
        return [self._bytes(k) for k in self.numbers]

    def _bytes(self, number):
        text = ip("-n", f"{self.prefix}-{number}", "-s", "-j", "link", "show", "eth0")
        counts = json.loads(text)[0]["stats64"]
        return {"sent": counts["tx"]["bytes"], "received": counts["rx"]["bytes"]}

    def __exit__(self, kind, error, trace):
        for k in (*self.numbers, SWITCH):  # interfaces go with their namespace
            subprocess.run(["ip", "netns", "del", f"{self.prefix}-{k}"], capture_output=True)
        self._folder.cleanup()


def ip(*words):
    """Run ``ip``; what it says goes into the error."""
    run = subprocess.run(["ip", *words], capture_output=True, text=True)
    if run.returncode:
        raise OSError(f"`ip {' '.join(words)}` failed: {run.stderr.strip()}")
    return run.stdout


def find_mpiexec():
    """The mpiexec beside this Python, or on the path."""
    beside = Path(sys.executable).with_name("mpiexec")
    return str(beside) if beside.exists() else shutil.which("mpiexec")


def allowed():
    """Why this machine cannot have such hosts; None where it can."""
    if not sys.platform.startswith("linux"):
        return "network namespaces are Linux's, and this is another system"
    for tool in ("ip", "unshare", "hostname"):
        if shutil.which(tool) is None:
            return f"there is no `{tool}` here (packages iproute2, util-linux, hostname)"
    if os.geteuid() != 0:
        return "making network namespaces needs root"
    mpiexec = find_mpiexec()
    if mpiexec is None:
        return "there is no mpiexec: pip install '.[mpi]'"
    about = subprocess.run([mpiexec, "--version"], capture_output=True, text=True).stdout
    if "HYDRA" not in about:
        return f"{mpiexec} is not MPICH's hydra, whose launcher is replaced here"
    try:
        with Hosts(2):
            return None
    except OSError as error:
        return str(error)


def main():
    """Run a command on hosts, then tell what went over the wires."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-n", type=int, default=2, help="ranks, and hosts unless --hosts says less")
    parser.add_argument("--hosts", type=int, help="hosts, to which ranks are dealt in turn")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="-- and a command")
    args = parser.parse_args()
    command = args.command[1:] if args.command[:1] == ["--"] else args.command
    reason = allowed()
    if reason or not command:
        sys.exit(f"mpi_namespaces: {reason or 'give a command after --'}.")
    with Hosts(args.hosts or args.n) as hosts:
        quiet = hosts.traffic()
        code = hosts.run(args.n, *command).returncode
        for k, (before, after) in enumerate(zip(quiet, hosts.traffic(), strict=True), 1):
            sent, received = (after[way] - before[way] for way in ("sent", "received"))
            print(f"host {k}: {sent:,} bytes sent, {received:,} received", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
