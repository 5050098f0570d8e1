"""Kill or stop a rank at any moment: the job ends with a sentence, resumed it has the same bits."""

import re
import shutil
import signal
import time

import pytest

from support.crashes import LINUX, N_EVENTS, Job, Plan, crash, positions
from support.selection import soak_except

pytestmark = pytest.mark.skipif(not LINUX, reason="finds the processes of a job in /proc")
SOON = 30.0  # seconds: far less than the timeout of a rank, far more than a busy machine needs
N_KILLS = 25


def one_sentence(err, rank):
    """The line on stderr that names a rank; there is no other of ours."""
    lines = [line for line in err.splitlines() if line.startswith("adfs:")]
    assert len(lines) == 1, err
    assert lines[0].startswith(f"adfs: rank {rank} "), err
    assert "Traceback" not in err
    return lines[0]


def plan_of(name, seed):
    """The plan of a seed for one of the methods in rounds, killed at the same part of its run."""
    plan = Plan.of(seed)
    position = plan.position * N_EVENTS[name] // N_EVENTS[plan.loss]
    return plan._replace(loss=name, schedule="shared", position=position, resumed_by=0)


KILLS = {f"{seed}": Plan.of(seed) for seed in range(N_KILLS)}
ROUNDS = {
    f"{name}-{seed}": plan_of(name, seed) for name in ("dsba", "newton", "lbfgs") for seed in (6, 8)
}
PLANS = KILLS | ROUNDS


def kinds_of(plan):
    """What a kill is an example of."""
    early = plan.position is None
    return {
        (plan.loss, plan.schedule), plan.size, f"victim {plan.victim}",
        f"resumed by {plan.resumed_by}", plan.role, f"early: {early}",
    }  # fmt: skip


# Few ranks that together show all kinds.
FEW = ["0", "11", "18", "21", *list(ROUNDS)[::2]]


@pytest.mark.parametrize("name", soak_except(FEW, PLANS))
def test_a_run_of_which_a_rank_was_killed_goes_on_to_the_same_bits(runs, name):
    plan = PLANS[name]
    run = runs(plan.loss, plan.schedule)
    for _ in range(5):  # on a slow machine a run may end before it is killed
        job = run.start(plan.size)
        hit = crash(plan, job, run.kept)
        code, _, err, seconds = job.end()
        hit = hit and "before --tol" not in err  # else it was at its end already
        if hit:
            break
        shutil.rmtree(run.kept, ignore_errors=True)
    assert hit
    assert code not in (0, 2, 3)
    assert seconds < SOON
    one_sentence(err, plan.victim)
    assert job.leftovers() == []
    at = positions(run.kept)
    code, err, same = run.resume(plan.resumed_by)
    assert code == 3
    if at:
        assert any(f"continued from position {position}, " in err for position in at)
    else:
        assert "has no checkpoint yet: starts at 0" in err
    assert same


def test_the_kills_are_of_all_kinds():
    kinds = {name: kinds_of(plan) for name, plan in KILLS.items()}
    assert set().union(*(kinds[name] for name in FEW[:4])) == set().union(*kinds.values())
    plans = KILLS.values()
    assert {(plan.loss, plan.schedule, plan.size) for plan in plans} >= {
        (loss, schedule, 2) for loss in ("logistic", "hinge") for schedule in ("auto", "poisson")
    }
    assert {plan.size for plan in plans} == {2, 3}
    assert {plan.victim for plan in plans} == {0, 1, 2}
    assert {plan.resumed_by for plan in plans} == {0, 2, 3}
    assert 4 <= sum(plan.role == "supervisor" for plan in plans) <= 12
    assert sum(plan.position is None for plan in plans) == 3
    places = [plan.position / N_EVENTS[plan.loss] for plan in plans if plan.position is not None]
    assert min(places) < 0.1
    assert max(places) > 0.6


BEFORE_THEY_MEET = """\
import os, sys, time
from adfs.mpi.supervisor import Supervisor, is_supervised
if not is_supervised():
    sys.exit(Supervisor([sys.executable, *sys.argv]).run())
from adfs.mpi.launcher import rank_by_environment
from adfs.mpi.supervisor import SupervisorLink
from adfs.mpi.communicator import Communicator
with SupervisorLink() as link:
    if rank_by_environment() == 0:
        time.sleep(600)
    open(sys.argv[1], "w").close()
    with Communicator.open(link) as world:
        pass
"""


def test_a_rank_that_dies_before_the_others_have_met_it_leaves_nobody_behind(mpiexec, tmp_path):
    (tmp_path / "rank.py").write_text(BEFORE_THEY_MEET)
    job = Job(mpiexec.command(2, tmp_path / "rank.py", tmp_path / "waits"))
    job.wait_for((tmp_path / "waits").exists)
    time.sleep(1.0)  # the other is now where it waits for its peers
    assert job.strike(0)
    code, _, err, seconds = job.end()
    assert (code, seconds < SOON) == (1, True)
    one_sentence(err, 0)
    assert job.leftovers() == []


@pytest.mark.parametrize(
    ("victim", "schedule"), [pytest.param(0, "auto", marks=pytest.mark.soak), (1, "poisson")]
)
def test_a_rank_that_hangs_ends_the_job_after_the_timeout_and_is_named(runs, victim, schedule):
    run = runs("logistic", schedule)
    job = run.start(2, "--timeout", "3")
    job.wait_for(lambda: any(at > N_EVENTS["logistic"] // 5 for at in positions(run.kept)))
    assert job.strike(victim, number=signal.SIGSTOP)
    code, out, err, seconds = job.end()
    assert (code, out) == (1, "")
    assert 2.0 < seconds < SOON
    (line,) = err.splitlines()
    assert re.match(r"adfs: rank [01] \(nodes \d-\d\) (was stopped|has waited)", line)
    assert {"0", "1"} <= set(re.findall(r"rank (\d)", line))
    assert line.endswith("the job ends; continue with --resume.")
    assert job.leftovers() == []
    code, err, same = run.resume(0)
    assert (code, same) == (3, True)
    assert "continued from position" in err


@pytest.mark.parametrize("seed", soak_except((3,), range(4)))
def test_the_local_engine_is_killed_and_goes_on_to_the_same_bits(runs, seed):
    plan = Plan.of(100 + seed)
    run = runs(plan.loss, plan.schedule)
    fraction = (0.05, 0.3, 0.5, 0.65)[seed]
    for _ in range(5):
        job = run.start(0)
        job.wait_for(
            lambda: any(at > fraction * N_EVENTS[plan.loss] for at in positions(run.kept))
        )  # fmt: skip
        job.process.kill()
        if job.end()[0] == -signal.SIGKILL:
            break
        shutil.rmtree(run.kept, ignore_errors=True)
    assert job.process.returncode == -signal.SIGKILL
    code, err, same = run.resume((0, 3, 0, 2)[seed])
    assert (code, same) == (3, True)
    assert "continued from position" in err
