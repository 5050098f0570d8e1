"""A method in a page: a state, a round, and what the round asks for.

A class below `RoundMethod` states its formula in its docstring, reads its options as keyword
parameters, declares `Uses`, and has a ``round``. Schedule, clock, counts, checkpoints and reports
follow from that (docs/how-to/add-an-algorithm.md).
"""

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, TypeVar, get_type_hints

import numpy as np

from adfs.algorithms.base import (
    Arrays,
    Matrix,
    Method,
    MethodSetting,
    Named,
    RoundAlgorithm,
    Source,
    Vector,
    method_in_rounds,
    on_one_machine,
    share_of_theory,
)
from adfs.algorithms.nodes import Nodes, Uses
from adfs.errors import ParameterError
from adfs.problem.finite_sum import Problem
from adfs.schedule.events import Events
from adfs.schedule.rounds import Rounds
from adfs.theory.description import Description, Fact, SelfDescribing
from adfs.threads import one_blas_thread

S = TypeVar("S")

# How the fields of a state say what they are.
PerNode = Annotated[Matrix, "nodes"]  # one row per node of this process
PerSample = Annotated[Vector, "samples"]  # one entry per sample of this process
Shared = Annotated[Any, "shared"]  # the same in every process: an array or a number

BLOCK_NUMBERS = 1 << 21  # numbers read in one call of `step`: a fraction of a second
BLOCK_ROUNDS = 1 << 12


@dataclass(frozen=True, eq=False)
class RoundParameters(SelfDescribing):
    """The numbers that a method in rounds runs with."""

    title: str
    rho: float
    facts: Sequence[Fact]

    def description(self) -> Description:
        rate = Fact("rho", self.rho, "rate per round")
        return Description(self.title, [*self.facts, rate])


class RoundMethod(RoundAlgorithm[S]):
    """The base of methods in synchronous rounds.

    The first line of a class's docstring is its formula or its reference. A class has ``start``,
    ``round``, and a state: a dataclass whose fields are `PerNode`, `PerSample` or `Shared`. Keyword
    parameters of its ``__init__`` are options, which users give as ``parameters="step=0.1"``.

    Attributes
    ----------
    uses : Uses or sequence of Uses
        What a round of each kind asks for; ``__init__`` sets it.
    rho : float
        The error falls by ``1 - rho`` per round, 0 if at no linear rate; ``__init__`` sets it.
    facts : sequence of Fact
        What the parameters are, for reports.
    source : Source
        The kinds of rounds; by default all are of kind 0.
    proven : bool
        Whether a theorem proves the rate ``1 - rho``, where ``rho`` is positive; otherwise ``rho``
        only sets the iteration limit. ``__init__`` may set it, where it depends on the rule.
    theorem : str
        What is proven, in a sentence for reports; empty for the usual one.
    rules : tuple of str
        Names of variants; the first one is the default, which ``tuned`` and ``theory`` mean too.
    dual : str
        The field of the state that holds dual coefficients ``w l'(x . theta)``, where there is one.
    one_machine : bool
        The method knows no network: it is given all samples as those of one node.
    """

    uses: Uses | Sequence[Uses]
    rho: float
    facts: Sequence[Fact] = ()
    source: Source = Rounds([0])
    proven: bool = False
    theorem: str = ""
    rules: ClassVar[tuple[str, ...]] = ("tuned",)
    dual: ClassVar[str] = ""
    one_machine: ClassVar[bool] = False
    seen: ClassVar[float] = 1.0  # of theory's rounds: what runs are seen to take

    def __init__(self, nodes: Nodes) -> None:
        self.nodes, self.problem = nodes, nodes.problem
        self._whole = nodes.problem  # with all its nodes, where the method sees one
        self.rule = rule_and_options(type(self), nodes.setting)[0]

    def start(self, theta: Matrix) -> S:
        """The state before the first round; all rows of ``theta`` are the model to start from."""
        raise NotImplementedError

    def round(self, state: S, t: int, kind: int) -> int | None:
        """Execute round number ``t``, in place; may return the kind that it came to be."""
        raise NotImplementedError

    @classmethod
    def prepare(cls, problem: Problem, setting: MethodSetting) -> Method:
        """The method with its schedule, its clock and its counts."""
        _, options = rule_and_options(cls, setting)
        if cls.one_machine:
            setting = setting._replace(delays=on_one_machine(setting.delays))
        seen = problem.on_one_node() if cls.one_machine else problem
        with one_blas_thread():
            algorithm = cls(Nodes(seen, setting), **options)
        algorithm._whole = problem
        return algorithm.method(setting)

    def method(self, setting: MethodSetting) -> Method:
        """This algorithm, ready to run."""
        uses = [self.uses] if isinstance(self.uses, Uses) else list(self.uses)
        self.prices = [each.counts(self.problem) for each in uses]
        costs = setting.costs.of(self.problem)
        times = [each.cost(self.problem, costs) for each in uses]
        doc = inspect.getdoc(type(self)) or type(self).__name__
        title = f"{doc.splitlines()[0].rstrip('.')} ({self.rule})"
        self.parameters = RoundParameters(title, self.rho, self.facts)
        work = max(1.0, float(np.sum(times[0].work)))
        numbers = self.problem.numbers_per_row * work + self.problem.n_nodes * self.nodes.d
        block = int(np.clip(BLOCK_NUMBERS / numbers, 1, BLOCK_ROUNDS))
        return method_in_rounds(
            self, setting, times, self.source, block=block, shortest=1, work=work,
            proven=self.proven and self.rho > 0.0, theorem=self.theorem,
            typical=share_of_theory(self.seen, self.rho) if self.seen != 1.0 else None,
        )  # fmt: skip

    def init(self, theta: Vector | None = None) -> S:
        first = np.zeros(self.nodes.d) if theta is None else theta
        return self.start(np.tile(first, (self.nodes.n, 1)))

    def step(self, state: S, events: Events) -> S:
        with one_blas_thread():
            for k, kind in enumerate(events.which.tolist()):
                self.round(state, events.start + k, kind)
        return state

    def output(self, state: S) -> Matrix:
        """The field ``theta`` of the state, for every node."""
        theta: Matrix = state.theta  # type: ignore[attr-defined]
        return np.tile(theta, (self._whole.n_nodes, 1)) if self.one_machine else np.array(theta)

    def duals(self, state: S, node: int) -> Vector | None:
        if not self.dual:
            return None
        return np.array(getattr(state, self.dual)[self._whole.node_rows(node)])

    def arrays(self, state: S) -> Arrays:
        """Every field of the state, sorted by what its type says."""
        found: dict[str, Named] = {"samples": {}, "nodes": {}, "shared": {}}
        for name, kind in kinds_of(type(state)).items():
            kind = "shared" if kind == "nodes" and self.one_machine else kind
            found[kind][name] = np.asarray(getattr(state, name))
        return Arrays(**found)

    def restore(self, state: S, shared: Named) -> None:
        for name, value in shared.items():
            before = getattr(state, name)
            is_array = isinstance(before, np.ndarray)
            setattr(state, name, value if is_array else type(before)(value.item()))


class AdaptiveRoundMethod(RoundMethod[S]):
    """A method that chooses the kinds of its rounds on its way: ``round`` returns each one's.

    Its state has a field ``kinds: list``, which is no part of a checkpoint.
    """

    def step(self, state: Any, events: Events) -> S:
        state.kinds = []
        with one_blas_thread():
            for k, kind in enumerate(events.which.tolist()):
                state.kinds.append(self.round(state, events.start + k, kind))
        return state  # type: ignore[no-any-return]

    def executed(self, state: Any, events: Events) -> Events:
        """The block of the last step, with the kinds that were executed."""
        return events._replace(which=np.array(state.kinds, events.which.dtype))


def kinds_of(state: type[Any]) -> dict[str, str]:
    """What the fields of a state are: ``nodes``, ``samples`` or ``shared``."""
    hints = get_type_hints(state, include_extras=True)
    return {
        name: hint.__metadata__[0] for name, hint in hints.items() if hasattr(hint, "__metadata__")
    }


def rule_text(given: Any) -> Any:
    """A rule with options as text: ``{"rule": "sampled", "step": 0.1}`` is ``sampled,step=0.1``."""
    if not isinstance(given, Mapping):
        return given
    rule = [str(given["rule"])] if "rule" in given else []
    return ",".join([*rule, *(f"{name}={given[name]}" for name in given if name != "rule")])


def rule_and_options(
    method: type[RoundMethod[Any]], setting: MethodSetting
) -> tuple[str, dict[str, Any]]:
    """The rule and the options of a method, from text such as ``sampled,step=0.1``."""
    given = setting.rule if isinstance(setting.rule, str) else type(setting.rule).__name__
    words = [word.strip() for word in given.split(",")]
    rule, known = method.rules[0], _options(method)
    found: dict[str, Any] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals and (word in method.rules or word in ("tuned", "theory")):
            rule = word if word in method.rules else rule
        elif equals and name in found:
            raise ParameterError(f"parameters={given!r} gives {name} twice; give it once.")
        elif equals and name in known:
            found[name] = _value(value)
        else:
            rules = ", ".join(dict.fromkeys([*method.rules, "tuned", "theory"]))
            options = f", with options {', '.join(f'{each}=...' for each in known)}" * bool(known)
            raise ParameterError(
                f"parameters={given!r} is not a rule of this method, nor an option; choose "
                f"one of {rules}{options}."
            )
    return rule, found


def _options(method: type[RoundMethod[Any]]) -> list[str]:
    """Names of the options: the keyword parameters of ``__init__``."""
    return [name for name in inspect.signature(method).parameters if name != "nodes"]


def _value(text: str) -> Any:
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    return {"true": True, "false": False}.get(text.lower(), text)
