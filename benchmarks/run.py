"""`make bench`: every benchmark, as tables on the screen and as one JSON file.

Numbers are ratios within one run wherever they can be. Each record carries the commit, the versions
and the processor. Needs a quiet machine: the load is printed first.
"""

import argparse

import apcg
import costs
import event_cost
import memory
import mpi_memory
import mpi_scaling
import non_smooth
import non_smooth_event
import orientation
import rates
import schedules
import single_node
import sparse_scaling
import startup
import tables
import throughput
import tuned
import user_wait
from common import provenance, write_record

BENCHMARKS = {
    "event cost against the floor": event_cost.main,
    "events per second against the authors' code": throughput.main,
    "event without smoothness against an ADFS event": non_smooth_event.main,
    "generalized APCG: restarts, gossip": apcg.main,
    "hinge: certificates, rules, liblinear": non_smooth.main,
    "sparse rows: cost against d": sparse_scaling.main,
    "memory": memory.main,
    "memory of a rank": mpi_memory.main,
    "cost of a schedule": schedules.main,
    "two ranks against one, and Dask-ML": mpi_scaling.main,
    "newton and lbfgs, two ranks against one": lambda: mpi_scaling.main(
        7, ("covtype",), ("newton", "lbfgs")
    ),
    "what a user waits, beside other tools": user_wait.main,
    "reading a large table, beside pandas and polars": tables.main,
    "start-up": startup.main,
    "tuned against paper": tuned.main,
    "rates over the scale c": rates.main,
    "cost of elementary steps": costs.main,
    "every method on two tiny problems": orientation.main,
    "one node against other solvers": single_node.main,
    "one node, paired with dual methods": lambda: single_node.paired(5),
}


def main():
    """Run the chosen benchmarks; keep what is finished."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", help="part of a benchmark's name")
    parser.add_argument("--out", default="bench-out/bench.json")
    options = parser.parse_args()
    record = {"provenance": provenance(), "results": {}}
    print(f"load {record['provenance']['load']:.2f} on {record['provenance']['cores']} cores")
    for name, run in BENCHMARKS.items():
        if options.only and options.only not in name:
            continue
        print(f"\n== {name}", flush=True)
        record["results"][name] = run()
        write_record(options.out, record)
    print(f"\nwritten to {options.out}")


if __name__ == "__main__":
    main()
