"""Methods on a squared loss as random affine maps: from the literal texts to their second moments.

A `Study` belongs to the literal method of `tests/oracles` with the parameters that the package
chose. `slow` multiplies its rho, or its step where there is no rho: what an error would do.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import logm

import adfs
from adfs.algorithms.adfs import Adfs as Algorithm
from adfs.algorithms.base import MethodSetting, get_algorithm
from adfs.kernels import edge
from adfs.schedule.delays import Delays
from adfs.schedule.events import Events
from oracles import (
    algorithm1,
    algorithm3,
    apcg,
    augmented,
    continuized,
    dsba,
    esdacd,
    katyusha,
    msda,
    point_saga,
)
from oracles.second_moments import (
    ContinuousMoments,
    Moments,
    changing_deviations,
    changing_means,
    linear_part,
)
from support import non_smooth as non_smooth
from support.problems import EDGE_MU2, literal, make_case


class Gaps(NamedTuple):
    """A gap s^T Q s along iterations that each have events of their own."""

    stages: list
    start: np.ndarray
    form: np.ndarray

    def means(self):
        """Its expectation after 0, 1, ... iterations."""
        return changing_means(*self, len(self.stages))

    def deviation(self):
        """Its standard deviation in the end."""
        return changing_deviations(*self, len(self.stages))[-1]


class Study(NamedTuple):
    """Moments of a method, and the matrix that reads thetas - theta* from a state."""

    moments: Moments
    reading: np.ndarray

    def mean_squares(self, n_iterations):
        """E sum_i |theta_i - theta*|^2 after 0, ..., n_iterations iterations."""
        return self.moments.means(self.form, n_iterations)

    def deviations(self, n_iterations):
        """Standard deviations of the same sums."""
        return self.moments.deviations(self.form, n_iterations)

    @property
    def form(self):
        """sum_i |theta_i - theta*|^2."""
        return self.reading.T @ self.reading


def line_case(graph, norms, sigma=1.0, n_features=2, seed=0, loss="squared", weight=1.0):
    """Regression on rows of given norms, one list of norms per node."""
    generator = np.random.default_rng(seed)
    shards = []
    for node in norms:
        rows = generator.standard_normal((len(node), n_features))
        rows *= np.array(node)[:, None] / np.linalg.norm(rows, axis=1, keepdims=True)
        shards.append((rows, generator.standard_normal(len(node)), np.full(len(node), weight)))
    return make_case(graph, loss, shards=shards, sigma=sigma)


def interpolating_case(graph):
    """Two rows in the plane, on one node or on two, that an absolute loss fits exactly."""
    norms = {"single": [[1.0, 0.5]], "path:2": [[1.0], [0.5]]}[graph]
    return line_case(graph, norms, [1.0, 2.0][: len(norms)], loss="absolute", weight=1e3)


def prepare(name, case, rule, schedule="shared"):
    """The package's method with the parameters of a rule, where a message takes half a step."""
    adfs.algorithms()  # registers them
    setting = MethodSetting(rule, 0.5, "nonblocking", Delays(tau=0.5), 0, schedule)
    return get_algorithm(name)(case.problem, setting)


def events_per_iteration(name, method):
    """An epoch of Katyusha is so many events; its rho is that of one."""
    return round(method.parameters.every) + 1 if name == "katyusha" else 1


def minimiser(case):
    return augmented.minimiser(case.shards, case.problem.sigma, "squared")


def edges_of(case):
    return [(int(k), int(l)) for k, l in case.problem.topology.edges]


def optimal_nodes(case):
    """grad f_i(theta*), one row per node."""
    theta, sigma = minimiser(case), case.problem.sigma
    rows = enumerate(case.shards)
    return np.array([msda.node_gradient(shard, sigma[i], "squared", theta) for i, shard in rows])


def inverse_hessians(case):
    """grad f_i^* of a squared loss is linear: a block-diagonal matrix."""
    shards, sigma = case.shards, case.problem.sigma
    d = np.shape(shards[0][0])[1]
    whole = np.zeros((len(shards) * d, len(shards) * d))
    for i, (rows, _, weights) in enumerate(shards):
        part = slice(i * d, (i + 1) * d)
        whole[part, part] = np.linalg.inv((rows.T * weights) @ rows + sigma[i] * np.eye(d))
    return whole


def joined(*arrays):
    return np.concatenate([np.ravel(array) for array in arrays])


class Adfs:
    """Algorithm 1, and its continuized form."""

    def __init__(self, case, chosen, slow=1.0):
        oracle = literal(case, chosen)
        self.oracle = oracle._replace(rho=slow * oracle.rho)
        self.case, theta = case, minimiser(case)
        self.optimal = augmented.optimal_rows(case.shards, case.problem.sigma, "squared", theta)
        self.fixed = joined(self.optimal, self.optimal)

    def step(self, edge, state):
        x_and_v = state.reshape(2, *self.optimal.shape)
        *_, (x, v, _) = algorithm1.iterates(*self.oracle, [edge], start=x_and_v)
        return joined(x, v)

    def jump(self, edge, state):
        """What an event of the continuized form does in no time."""
        x_and_v = state.reshape(2, *self.optimal.shape)
        ((x, v),) = continuized.strongly_convex(
            *self.oracle, [(0.0, edge)], [1e-300], start=x_and_v
        )
        return joined(x, v)

    def events(self, change):
        return [
            (p, linear_part(lambda state, edge=edge: change(edge, state), self.fixed))
            for edge, p in enumerate(self.oracle.p)
        ]

    def reading(self, weight_of_v):
        """Centre rows of (x + weight v) / (1 + weight), divided by sigma."""
        n, d = len(self.case.shards), self.optimal.shape[1]
        centres = np.eye(n * d, self.optimal.size) / np.repeat(self.case.problem.sigma, d)[:, None]
        return np.hstack([centres, weight_of_v * centres]) / (1 + weight_of_v)

    def study(self):
        """The output is y."""
        moments = Moments([self.events(self.step)], -self.fixed)
        return Study(moments, self.reading(self.oracle.rho))

    def continuized(self):
        """x' = rho (v - x), v' = rho (x - v) between events; the output is x."""
        mix = self.oracle.rho * np.array([[-1.0, 1.0], [1.0, -1.0]])
        flow = np.kron(mix, np.eye(self.optimal.size))
        moments = ContinuousMoments(self.events(self.jump), flow, -self.fixed)
        return Study(moments, self.reading(0.0))


class CompiledAdfs:
    """The compiled algorithm itself: its events are tried out on states that are put into it."""

    def __init__(self, case, chosen, schedule="shared"):
        self.case, self.chosen = case, chosen
        self.algorithm = Algorithm(case.problem, chosen, schedule)
        rows = augmented.optimal_rows(
            case.shards, case.problem.sigma, "squared", minimiser(case)
        )  # fmt: skip
        n = len(case.shards)
        coefficients = [row @ x / (x @ x) for row, x in zip(rows[n:], self.rows, strict=True)]
        self.optimal = joined(rows[:n], coefficients)
        self.fixed = joined(self.optimal, self.optimal)

    @property
    def rows(self):
        return np.vstack([features for features, *_ in self.case.shards])

    def put(self, vector):
        """State at time 0 with these x and v: centres, then one coefficient per sample."""
        x, v = vector.reshape(2, -1)
        state = self.algorithm.init()
        n = state.centres.pairs.size // 2
        for k, both in enumerate((x + v, x - v)):
            state.centres.pairs[:, k::2] = both[:n].reshape(len(self.case.shards), -1)
            state.lines[:, (edge.SUM, edge.DIFFERENCE)[k]] = both[n:]
        return state

    def read(self, state):
        """x and v again; Algorithm 1 shows y, from which line 4 gives x."""
        (y, v), (y_samples, v_samples) = self.algorithm.nodes(state), self.algorithm.virtual(state)
        first, second = joined(y, y_samples), joined(v, v_samples)
        if not self.algorithm.continuized:
            first = (1 + self.chosen.rho) * first - self.chosen.rho * second
        return joined(first, second)

    def after(self, events):
        """Linear part of a block of events from time 0."""
        return linear_part(
            lambda vector: self.read(self.algorithm.step(self.put(vector), events)), self.fixed
        )  # fmt: skip

    def events(self, ticks=None, stop=None):
        """(p_e, A_e), edges first, with the probabilities of the schedule."""
        chosen, found = self.chosen, []
        for number, p in enumerate(chosen.p_edge):
            found.append((p, self.after(single_event(number, -1, ticks, stop))))
        for node, p in enumerate(chosen.p_node):
            weights = chosen.importance_of(node)
            for sample, weight in enumerate(weights / weights.sum()):
                event = single_event(len(chosen.p_edge) + node, sample, ticks, stop)
                found.append((p * weight, self.after(event)))
        return found

    def rate(self):
        """Per iteration; per unit of time in the continuized form."""
        if not self.algorithm.continuized:
            return Moments([self.events()], -self.fixed).rate()
        idle = Events(0, *np.empty((2, 0), np.int32), np.empty(0, np.int64), 1)
        flow = logm(self.after(idle)).real
        events = self.events(np.zeros(1, np.int64), 0)
        return ContinuousMoments(events, flow, -self.fixed).rate()


def single_event(which, sample, ticks=None, stop=None):
    numbers = (np.array([number], np.int32) for number in (which, sample))
    return Events(0, *numbers, ticks, stop) if ticks is not None else Events(0, *numbers)


def of_esdacd(case, chosen, slow=1.0):
    """State (x, v); the output is grad f_i^*(y_i)."""
    optimal, rho = optimal_nodes(case), slow * chosen.rho
    fixed = joined(optimal, optimal)

    def step(edge):
        def exchange(state):
            *_, (x, v, _) = esdacd.iterates(
                case.shards, case.problem.sigma, "squared", edges_of(case), EDGE_MU2,
                chosen.p_edge, rho, chosen.sigma_A, [edge], state.reshape(2, *optimal.shape),
            )  # fmt: skip
            return joined(x, v)

        return linear_part(exchange, fixed)

    inverse = inverse_hessians(case)
    events = [(p, step(edge)) for edge, p in enumerate(chosen.p_edge)]
    return Study(Moments([events], -fixed), np.hstack([inverse, rho * inverse]) / (1 + rho))


def of_dual_gossip(case, chosen, slow=1.0):
    """MSDA: state (x, y); the reading is that of x."""
    laplacian = case.problem.topology.laplacian().toarray()
    gossip = msda.gossip_matrix(laplacian, 1.0 / chosen.inverse_scale, chosen.rounds)
    inverse, d = inverse_hessians(case), np.shape(case.shards[0][0])[1]
    descent = np.eye(len(inverse)) - slow * chosen.eta * np.kron(gossip, np.eye(d)) @ inverse
    momentum = chosen.momentum * np.eye(len(inverse))
    once = np.block([[descent + momentum @ descent, -momentum], [descent, 0 * descent]])
    optimal = optimal_nodes(case)
    study = Moments([[(1.0, once)]], -joined(optimal, optimal))
    return Study(study, np.hstack([inverse, 0 * inverse]))


def of_dsba(case, chosen, slow=1.0, theta=0.0):
    """State (z, w, table) with z+ = Wt z - w - alpha g and w+ = w + U z+, from a model."""
    p = dsba.mixed(case.shards, "squared", chosen.beta)
    network = dsba.Network(case.shards, case.problem.sigma, edges_of(case), "squared", p)
    z = np.tile(minimiser(case), (len(case.shards), 1))
    alpha, table = slow * chosen.alpha, network.table(z)
    means = np.array([part.mean(axis=0) for part in table])
    fixed = joined(z, -alpha * (means + network.ridge[:, None] * z), *table)
    cuts = np.cumsum([z.size, z.size, *(part.size for part in table)])[:-1]

    def step(samples, state):
        z_now, w, *phi = (part.reshape(-1, z.shape[1]) for part in np.split(state, cuts))
        start = network.w_tilde @ z_now - w
        z_next, _, phi = network.backward(start, alpha, phi, samples)
        return joined(z_next, w + z_next - network.w_tilde @ z_next, *phi)

    events = [
        (probability, linear_part(lambda state, j=j: step(j, state), fixed))
        for j, probability in network.outcomes()
    ]
    begin = np.zeros_like(z) + theta
    start = joined(begin, 0 * z, *network.table(begin)) - fixed
    return Study(Moments([events], start), np.eye(z.size, len(fixed)))


def of_point_saga(case, chosen, slow=1.0):
    """State (x, table); every node is given x."""
    samples, n, mu = point_saga.mean_form(case.shards, case.problem.sigma)
    theta, gamma, p = minimiser(case), slow * chosen.gamma, np.full(n, 1 / n)
    if chosen.rule == "tuned":
        smoothness = augmented.smoothness(case.shards, "squared")
        p = point_saga.equal_rates(smoothness, chosen.gamma, mu)[1]

    def table_at(x):
        return np.array([point_saga.gradient("squared", sample, x) for sample in samples])

    def step(k, state):
        x, table = state[: len(theta)], state[len(theta) :].reshape(n, -1)
        return joined(
            *point_saga.ridge_apart_step(samples, "squared", mu, gamma, x, table, k, p)
        )  # fmt: skip

    fixed = joined(theta, table_at(theta))
    events = [
        (p[k], linear_part(lambda state, k=k: step(k, state), fixed)) for k in range(n)
    ]  # fmt: skip
    start = joined(0 * theta, table_at(0 * theta)) - fixed
    reading = np.tile(np.eye(len(theta), len(fixed)), (len(case.shards), 1))
    return Study(Moments([events], start), reading)


def of_katyusha(case, plan, slow=1.0):
    """State (y, z, w, sum of theta^k (y_k - theta*)); an iteration is an epoch."""
    best, inner = minimiser(case), _rounds(case, plan, slow)
    zero, length = 0 * best, round(plan.every)
    powers = plan.theta ** np.arange(length)

    def after(round_of, power):
        def step(state):
            y, z, w, total = state.reshape(4, -1)
            y, z = round_of(y, z, w)
            return joined(y, z, w, total + power * (y - best))

        return linear_part(step, fixed)

    def snapshot(state):
        y, z, _, total = state.reshape(4, -1)
        return joined(y, z, best + total / powers.sum(), zero)

    fixed = joined(best, best, best, zero)
    stages = [[(p, after(one, power)) for p, one in inner] for power in powers]
    moments = Moments([*stages, [(1.0, linear_part(snapshot, fixed))]], -fixed)
    return Study(moments, _common(case, 4))


def of_l_katyusha(case, plan, slow=1.0):
    """State (y, z, w): with probability p the snapshot moves to y, then an inner round."""
    best, inner = minimiser(case), _rounds(case, plan, slow)
    fixed = joined(best, best, best)

    def after(round_of, coin):
        def step(state):
            y, z, w = state.reshape(3, -1)
            w = y if coin else w
            return joined(*round_of(y, z, w), w)

        return linear_part(step, fixed)

    events = [
        (p * weight, after(one, coin))
        for p, one in inner
        for coin, weight in ((True, plan.p), (False, 1 - plan.p))
        if weight > 0
    ]
    return Study(Moments([events], -fixed), _common(case, 3))


def _rounds(case, plan, slow):
    """All inner rounds (y, z, w) -> (y, z) with their probabilities."""
    data = katyusha.data_of(case.shards, case.problem.sigma, "squared")
    c = katyusha.Constants(plan.tau1, plan.tau2, slow * plan.alpha, plan.theta)

    def round_with(batches):
        return lambda y, z, w: katyusha.inner_round(data, c, y, z, w, batches)

    return [(p, round_with(batches)) for batches, p in katyusha.all_batches(data, plan.batch)]


def _common(case, n_parts):
    """All nodes are given the first of the parts of a state."""
    d = np.shape(case.shards[0][0])[1]
    return np.tile(np.eye(d, n_parts * d), (len(case.shards), 1))


class Apcg:
    """Generalized APCG on x'Hx / 2 - b'x without a penalty, told on the range of H.

    State (x, v). What lies in Ker(H) stands still or moves without any effect.
    """

    def __init__(self, hessian, linear, chosen, slow=1.0):
        self.hessian, self.linear, self.chosen, self.slow = hessian, linear, chosen, slow
        self.best = np.linalg.pinv(hessian) @ linear
        self.fixed = joined(self.best, self.best)
        self.projector = np.kron(np.eye(2), np.linalg.pinv(hessian) @ hessian)

    def events(self, alpha, beta, eta_of):
        """(p_i, A_i) of an iteration with these numbers; eta_i is eta_of(p_i)."""
        chosen, found = self.chosen, []
        for i, p in enumerate(chosen.p):

            def step(state, i=i, p=p):
                x_and_v = state.reshape(2, -1, 1)
                numbers = alpha, beta, eta_of(p), chosen.R[i], p
                return joined(*apcg.step(self._slope, _keep, *x_and_v, i, *numbers))

            found.append((p, self.projector @ linear_part(step, self.fixed)))
        return found

    def _slope(self, i, y):
        return self.hessian[i] @ y - self.linear[i]

    def study(self):
        """Corollary 1; the reading is x."""
        rho, sigma_a = self.slow * self.chosen.rho, self.chosen.sigma_A
        events = self.events(rho, rho, lambda p: rho / (sigma_a * p))
        return Study(Moments([events], -self.fixed), self.reading())

    def linear_gaps(self, n_iterations):
        """Corollary 1: f(x_t) - f*."""
        rho, sigma_a = self.slow * self.chosen.rho, self.chosen.sigma_A
        events = self.events(rho, rho, lambda p: rho / (sigma_a * p))
        return Gaps([events] * n_iterations, -self.fixed, self.form())

    def form(self):
        """f(x) - f*."""
        return np.kron(np.diag([1.0, 0.0]), self.hessian / 2)

    def gaps(self, n_iterations):
        """Corollary 2: f(x_t) - f*, t = 0, ..., n_iterations."""
        chosen, b_0 = self.chosen, 1.0
        s = chosen.S / self.slow
        big_a, _ = apcg.convex_start(s, chosen.R, chosen.p, b_0)
        stages = []
        for _ in range(n_iterations):
            a = apcg.next_a(big_a, b_0, s, 0.0)
            big_a += a
            stages.append(self.events(a / big_a, 0.0, lambda p, a=a: a / (b_0 * p)))
        return Gaps(stages, -self.fixed, self.form())

    def reading(self):
        n = len(self.best)
        return np.eye(n, 2 * n) @ self.projector


def _keep(i, eta, z):
    """The proximal step of no penalty."""
    return z


class NsAdfs:
    """Algorithm 3 on the absolute loss where no dual coefficient ever meets its bound.

    The rows are independent and the weights so large that the optimum interpolates: theta* is the
    shortest of X theta = y, every proximal step is a shift, and every event an affine map.
    """

    def __init__(self, case, chosen, slow=1.0):
        oracle = non_smooth.literal(case, chosen)
        self.oracle = oracle._replace(s=oracle.s / slow, a_0=oracle.a_0 * slow**2)
        total, labels = sum(oracle.sigma), np.concatenate([y for _, y, _ in case.shards])
        self.theta = np.linalg.pinv(oracle.rows) @ labels
        c = -total * np.linalg.solve(oracle.rows @ oracle.rows.T, labels)
        self.optimal = algorithm3.optimal_rows(case.shards, oracle.sigma, self.theta, c)
        self.fixed = joined(self.optimal, self.optimal)

    def stages(self, n_iterations):
        """(p_e, A_e) of each iteration."""
        growth = algorithm3.weights(self.oracle.a_0, self.oracle.s, n_iterations)
        return [
            [
                (p, linear_part(lambda state, e=e, a=a: self.step(a, e, state), self.fixed))
                for e, p in enumerate(self.oracle.p)
            ]
            for a in growth[:-1]
        ]

    def step(self, big_a, edge, state):
        x_and_v = state.reshape(2, *self.optimal.shape)
        oracle = self.oracle._replace(a_0=big_a)
        *_, (x, v, _) = algorithm3.iterates(*oracle, [edge], start=x_and_v)
        return joined(x, v)

    def gaps(self, n_iterations):
        """F*(x_t) - F*, t = 0, ..., n_iterations: half of sum_i |x^(i) - v*^(i)|^2 / sigma_i."""
        inverse = np.zeros(len(self.optimal))
        inverse[: len(self.oracle.sigma)] = 1 / np.asarray(self.oracle.sigma)
        width = self.optimal.shape[1]
        form = np.kron(np.diag([0.5, 0.0]), np.kron(np.diag(inverse), np.eye(width)))
        return Gaps(self.stages(n_iterations), -self.fixed, form)


STUDIES = {
    "adfs": lambda *arguments: Adfs(*arguments).study(),
    "esdacd": of_esdacd,
    "msda": of_dual_gossip,
    "ssda": of_dual_gossip,
    "dsba": of_dsba,
    "point-saga": of_point_saga,
    "katyusha": of_katyusha,
    "l-katyusha": of_l_katyusha,
}
