"""Every wrong input to APCG is answered by one sentence."""

import re

import numpy as np
import pytest
import scipy.sparse as sp

from adfs.apcg.penalties import Penalty, ProxPenalty
from adfs.apcg.smooth import LeastSquares, Quadratic, SmoothFunction
from adfs.apcg.solver import apcg
from adfs.errors import AdfsError

H = np.array([[2.0, 1.0, 0.0], [1.0, 3.0, 0.0], [0.0, 0.0, 1.0]])
SINGULAR = np.array([[1.0, -1.0, 0.0], [-1.0, 2.0, -1.0], [0.0, -1.0, 1.0]])
B = np.array([1.0, 0.0, -1.0])
NAN = float("nan")

BUILT = {
    "asymmetric": (lambda: Quadratic(H + np.eye(3, k=1)), r"H must be symmetric"),
    "asymmetric sparse": (lambda: Quadratic(sp.csr_array(np.triu(H))), r"H must be symmetric"),
    "not square": (lambda: Quadratic(H[:2]), r"H has shape \(2, 3\); it must be square"),
    "NaN in H": (lambda: Quadratic(H * NAN), r"H has 9 entries .* all must be finite"),
    "inf in sparse H": (lambda: Quadratic(sp.csr_array(H) * np.inf), r"H has entries .* finite"),
    "text": (lambda: Quadratic([["a"]]), r"H must be real numbers"),
    "complex": (lambda: Quadratic(H * 1j), r"H must be real numbers; its type is complex128"),
    "complex sparse": (lambda: LeastSquares(sp.csr_array(H) * 1j, B), r"K must be real .* complex"),
    "object": (lambda: Quadratic(np.array([[{}]])), r"H must be real numbers; ndarray is not"),
    "ragged": (lambda: Quadratic([[1.0], [1.0, 2.0]]), r"H must be real numbers; list is not"),
    "complex b": (lambda: Quadratic(H, B + 1j), r"b must be real numbers; its type is complex128"),
    "a vector as H": (lambda: Quadratic(B), r"H must be a matrix; it has 1 dimensions"),
    "negative diagonal": (lambda: Quadratic(-H), r"H\[0, 0\]=-2 in a row that is not zero"),
    "short b": (lambda: Quadratic(H, B[:2]), r"b has shape \(2,\); H has 3 rows"),
    "NaN in b": (lambda: Quadratic(H, B * NAN), r"b has 3 entries .* finite"),
    "K and b": (lambda: LeastSquares(H[:2], B), r"b has shape \(3,\); K has 2 rows"),
    "empty K": (lambda: LeastSquares(np.zeros((3, 0)), B), r"K has no columns"),
    "negative ridge": (lambda: LeastSquares(H, B, -1.0), r"ridge must be >= 0 .* entry is -1"),
    "M": (lambda: SmoothFunction(lambda i, y: 0.0, [1.0, 0.0]), r"M must hold one number > 0"),
    "gradient": (lambda: SmoothFunction(3, [1.0]), r"must be callable as gradient\(i, y\)"),
    "value": (lambda: SmoothFunction(abs, [1.0], value=3), r"value=3 must be callable as value\(x"),
    "value of psi": (lambda: ProxPenalty(abs, value=3), r"value=3 must be callable as value\(i, x"),
    "prox": (lambda: ProxPenalty(None), r"must be callable as prox\(i, eta, z\)"),
    "negative l1": (lambda: Penalty(l1=-0.1), r"l1 must be >= 0 .* -0.1"),
    "H huge": (
        lambda: Quadratic(H * 1e200),
        r"H has 3e\+200 as its largest magnitude; it must be b",
    ),
    "H nearly too large": (lambda: Quadratic(H * 5e307), r"H has 1.5e\+308 as its largest"),
    "H tiny": (lambda: Quadratic(H * 1e-200), r"H has 3e-200 .* between 1e-50 and 1e\+50"),
    "H subnormal": (lambda: Quadratic(H * 1e-320), r"H has 3e-320 as its largest"),
    "K huge": (lambda: LeastSquares(sp.csr_array(H) * 1e200, B), r"K has 3e\+200 as its largest"),
    "K tiny": (lambda: LeastSquares(H * 1e-200, B * 1e-200), r"K has 3e-200 as its largest"),
    "b huge": (lambda: Quadratic(H, B * 1e300), r"b has 1e\+300 as its largest magnitude"),
    "b tiny": (lambda: LeastSquares(H, B * 1e-60), r"b has 1e-60 .* Choose other units"),
    "M tiny": (lambda: SmoothFunction(abs, [1e-60]), r"M has 1e-60 as its largest magnitude"),
    "ridge huge": (lambda: LeastSquares(H, B, 1e60), r"ridge has 1e\+60 .* at most 1e\+50"),
    "l2 huge": (lambda: Penalty(l2=1e60), r"l2 has 1e\+60 .* at most 1e\+50"),
    "NaN bound": (lambda: Penalty(low=NAN), r"low has 1 entries .* not NaN"),
}


@pytest.mark.parametrize("name", BUILT)
def test_what_cannot_be_built(name):
    build, sentence = BUILT[name]
    with pytest.raises(AdfsError, match=sentence):
        build()


RUN = {
    "f": ({"f": H}, r"f=ndarray must be a Quadratic, a LeastSquares or a SmoothFunction"),
    "psi": ({"psi": 3}, r"psi=3 must be 'zero', \('l1', strength\), .* a Penalty, a ProxPenalty"),
    "psi without number": ({"psi": "l1"}, r"psi='l1' must be 'zero', \('l1', strength\)"),
    "psi with too many": ({"psi": ("box", 1.0)}, r"psi=\('box', 1.0\) must be .*'box', low, high"),
    "psi unknown": ({"psi": ("l3", 1.0)}, r"psi=\('l3', 1.0\) must be 'zero'"),
    "psi empty": ({"psi": ()}, r"psi=\(\) must be 'zero'"),
    "psi text": ({"psi": ("l1", "a")}, r"l1 must be real numbers"),
    "psi size": ({"psi": Penalty(l1=[1.0, 2.0])}, r"l1 has shape \(2,\); .* each of the 3"),
    "empty box": ({"psi": Penalty(low=1, high=0)}, r"box of coordinate 0 is empty: low=1 and"),
    "active": ({"psi": ProxPenalty(abs, [True])}, r"active must hold one True or False for each"),
    "p sum": ({"p": [0.5, 0.4, 0.2]}, r"p sums to 1.1; probabilities must sum to 1"),
    "p negative": ({"p": [1.5, -0.5, 0.0]}, r"p must be >= 0 everywhere; .* -0.5"),
    "p zero": (
        {"p": [0.5, 0.5, 0.0]},
        r"p\[2\]=0 must be >= .* so it must be sampled",
    ),
    "p rare": ({"p": [1e-300, 0.5, 0.5]}, r"p\[0\]=1e-300 must be >= 1.99e-08"),
    "p rare, convex": (
        {"p": [1e-300, 0.5, 0.5], "form": "convex"},
        r"p\[0\]=1e-300 must be >=",
    ),
    "p size": ({"p": [0.5, 0.5]}, r"p has shape \(2,\)"),
    "p name": ({"p": "best"}, r"p='best' is unknown; give 'uniform'"),
    "p NaN": ({"p": [NAN, 0.5, 0.5]}, r"p has 1 entries .* finite"),
    "R above 1": ({"R": [1, 1, 2], "sigma_A": 0.1}, r"R must be <= 1, .* entry is 2"),
    "R negative": ({"R": [1, 1, -1], "sigma_A": 0.1}, r"R must be >= 0"),
    "Assumption 1": (
        {"psi": Penalty(l1=1.0), "R": [1, 1, 0.5], "sigma_A": 0.1},
        r"Assumption 1 needs R_i = 1 or psi_i = 0: coordinate 2 has a penalty and R=0.5",
    ),
    "R alone": ({"R": [1, 1, 0.5]}, r"R is given without sigma_A, and is neither 1 nor"),
    "sigma_A": ({"sigma_A": 1.2}, r"sigma_A=1.2 is above 1, the strong convexity"),
    "sigma_A and M": (
        {"sigma_A": 1.2, "R": np.ones(3)},
        r"sigma_A=1.2 is too large: .* coordinate 2 has R=1 and M=1",
    ),
    "sigma_A negative": ({"sigma_A": -1.0}, r"sigma_A=-1 must be a finite number >= 0"),
    "form": ({"form": "fast"}, r"form='fast' is unknown; choose auto, strongly-convex or convex"),
    "no sigma_A": (
        {"f": SmoothFunction(lambda i, y: y[i], np.ones(3)), "form": "strongly-convex"},
        r"needs sigma_A > 0 and none was found",
    ),
    "rho too large": ({"rho": 0.9}, r"S=1.11111 is below .* coordinate \d binds.*lower rho"),
    "rho outside": ({"rho": 1.0}, r"rho=1.0 must be a number in \(0, 1\)"),
    "rho and S": ({"rho": 0.1, "S": 3.0}, r"Give rho or S, not both"),
    "rho when convex": ({"rho": 0.1, "form": "convex"}, r"convex form has no rho; give S"),
    "S too small": ({"S": 0.5, "form": "convex"}, r"S=0.5 is below .* = max_i sqrt\(M_i R_i\)"),
    "rho tiny": (
        {"sigma_A": 1e-300, "form": "strongly-convex"},
        r"rho=.*e-151 is outside \[1e-15, 1\), .* use form='convex'",
    ),
    "S": ({"S": -1.0}, r"S=-1 must be a finite number > 0"),
    "indefinite": ({"f": Quadratic([[1.0, 2], [2, 1]])}, r"least eigenvalue is -1. f_A is not con"),
    "unbounded": (
        {"f": Quadratic(SINGULAR, [1.0, 0, 0])},
        r"f_A is unbounded below: H is singular",
    ),
    "x0 size": ({"x0": [0.0]}, r"x0 has shape \(1,\); there are 3 coordinates"),
    "x0 outside": ({"psi": Penalty(low=1.0), "x0": np.zeros(3)}, r"x0 is outside the box"),
    "x0 huge": ({"x0": [1e200, 0, 0]}, r"x0 has 1e\+200 as its largest magnitude"),
    "far box": ({"psi": ("box", 1e60, 1e61)}, r"The point of the box nearest to zero has 1e\+60"),
    "tol": ({"tol": -1.0}, r"tol=-1 must be a finite number >= 0"),
    "no limit": ({"tol": 0.0}, r"tol=0 never stops a run"),
    "max_iter": ({"max_iter": 1.5}, r"max_iter=1.5 must be a whole number >= 0"),
    "check_every": ({"check_every": 0}, r"check_every=0 must be a whole number >= 1"),
    "time_limit": ({"time_limit": 0.0}, r"time_limit=0 must be a finite number > 0; .*seconds"),
    "seed": ({"seed": -1}, r"seed=-1 must be a whole number"),
    "restart": ({"restart": "no"}, r"restart='no' must be True or False"),
    "callback": ({"callback": 3}, r"callback=3 must be callable as callback\(point\)"),
    "time_limit text": ({"time_limit": "1"}, r"time_limit='1' must be a finite number > 0"),
    "rho text": ({"rho": "a"}, r"rho='a' must be a number in \(0, 1\)"),
    "S text": ({"S": "a"}, r"S='a' must be a finite number > 0"),
    "S beyond floats": ({"S": 10**400, "form": "convex"}, r"S=1000.* must be a finite number > 0"),
    "max_iter infinite": ({"max_iter": np.inf}, r"max_iter=inf must be a whole number"),
}
RUN |= {
    f"{name} text": ({name: "a"}, f"{name}='a' must be a {kind}number >= ")
    for name, kind in (
        ("tol", "finite "), ("sigma_A", "finite "), ("max_iter", "whole "),
        ("check_every", "whole "), ("seed", "whole "),
    )
}  # fmt: skip


def called(function):
    """By name of the call: arguments of `apcg` with a function that returns what this one does."""

    def partial(i, y):
        return H[i] @ np.asarray(y) - B[i]

    return {
        "gradient(i, y)": {"f": SmoothFunction(lambda i, y: function(), np.diag(H))},
        "value(x)": {"f": SmoothFunction(partial, np.diag(H), lambda x: function())},
        "prox(i, eta, z)": {"psi": ProxPenalty(lambda i, eta, z: function())},
        "value(i, x)": {"psi": ProxPenalty(lambda i, eta, z: z, value=lambda i, x: function())},
    }


@pytest.mark.parametrize("name", RUN)
def test_what_cannot_be_run(name):
    changes, sentence = RUN[name]
    with pytest.raises(AdfsError, match=sentence):
        apcg(**{"f": Quadratic(H, B), **changes})


RETURNED = {
    "None": (None, r"it returned None"),
    "text": ("a", r"it returned 'a'"),
    "True": (True, r"it returned True"),
    "complex": (1j, r"it returned 1j"),
    "length 1": (np.ones(1), r"it returned an array of shape \(1,\) and type float64"),
}


@pytest.mark.parametrize("name", RETURNED)
@pytest.mark.parametrize("call", called(None))
def test_what_functions_may_not_return(call, name):
    value, sentence = RETURNED[name]
    with pytest.raises(AdfsError, match=rf"^{re.escape(call)} must return .*{sentence}\.$"):
        apcg(**{"f": Quadratic(H, B), **called(lambda: value)[call]})


@pytest.mark.parametrize("call", ["value(x)", "value(i, x)"])
def test_a_value_is_not_nan(call):
    with pytest.raises(AdfsError, match=rf"^{re.escape(call)} returned NaN at a finite point"):
        apcg(**{"f": Quadratic(H, B), **called(lambda: NAN)[call]})


@pytest.mark.parametrize("kind", [float, np.float32, np.array])
def test_functions_may_return_any_kind_of_single_number(kind):
    f = SmoothFunction(
        lambda i, y: kind(H[i] @ np.asarray(y) - B[i]), np.diag(H), lambda x: kind(x @ H @ x / 2)
    )
    psi = ProxPenalty(lambda i, eta, z: kind(z), value=lambda i, x: kind(0))
    np.testing.assert_allclose(apcg(f, psi, tol=1e-5).x, np.linalg.solve(H, B), rtol=0, atol=1e-5)


def test_a_penalty_makes_an_unbounded_function_bounded():
    f = Quadratic(SINGULAR, [1.0, 0.0, 0.0])
    result = apcg(f, Penalty(low=-1.0, high=1.0), tol=1e-9)
    assert (result.status, result.parameters.form) == ("converged", "convex")
    np.testing.assert_allclose(result.x, [1.0, 1.0, 1.0], rtol=0, atol=1e-8)
