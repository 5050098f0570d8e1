"""Parameters in words: what they are, which formula gave them, and what binds."""

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from adfs.theory.non_smooth import NonSmoothParameters
    from adfs.theory.parameters import Parameters


def describe(parameters: "Parameters") -> str:
    """A short table for people."""
    conditioning, spectrum = parameters.conditioning, parameters.topology.spectrum
    lines = [
        f"ADFS parameters ({parameters.how}) on {parameters.topology.name}, "
        f"tau={parameters.tau:g}, {parameters.clock} clock",
        f"  kappa_s   {conditioning.kappa_s:<12.6g} stochastic condition number",
        f"  gamma     {spectrum.gamma:<12.6g} eigengap of the graph",
        f"  alpha     {parameters.alpha.min():<12.6g} least mu_ij^2 / L_ij",
        f"  sigma_A   {parameters.sigma_A:<12.6g} strong convexity of the dual",
        f"  p_comm    {parameters.p_comm:<12.6g} share of communications",
        f"  rho       {parameters.rho:<12.6g} rate; {parameters.binding} binds",
    ]
    if math.isfinite(parameters.time_per_efold):
        lines.append(f"  time      {parameters.time_per_efold:<12.6g} idealized, per factor e")
    if math.isfinite(parameters.gain):
        lines.append(f"  gain      {parameters.gain:<12.4g} times faster than `paper` (predicted)")
    return "\n".join(lines)


def describe_non_smooth(parameters: "NonSmoothParameters") -> str:
    """The same for NS-ADFS."""
    spectrum = parameters.topology.spectrum
    return "\n".join([
        f"NS-ADFS parameters ({parameters.how}) on {parameters.topology.name}, "
        f"tau={parameters.tau:g}, {parameters.clock} clock",
        f"  gamma     {spectrum.gamma:<12.6g} eigengap of the graph",
        f"  mu_ij^2   {parameters.mu2.min():<12.6g} least, on virtual edges; 1/2 on the others",
        f"  p_comm    {parameters.p_comm:<12.6g} share of communications",
        f"  p_R       {parameters.p_least:<12.6g} least p / R",
        f"  S         {math.sqrt(parameters.smoothness):<12.6g} {parameters.binding} binds",
        f"  A_0       {parameters.start:<12.6g} 3 / (S p_R)^2; the dual gap falls as 1 / A_t",
        f"  rho       {parameters.rho:<12.6g} p_R / 500 or less: sizes budgets, is no theorem",
    ])  # fmt: skip
