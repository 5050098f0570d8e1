"""Lemma 1 (Appendix A): x_t^(i) as a convex combination of v_0^(i), ..., v_t^(i) where R_i = 1."""

from . import apcg


def strengths(chosen_form, p, r, s, sigma_a, n_steps):
    """(alpha_t, beta_t) for t < n_steps, from the recursion of Appendix A."""
    if chosen_form == "convex":
        (big_a, big_b), sigma_a = apcg.convex_start(s, r, p), 0.0
    else:
        big_a, big_b = apcg.strongly_convex_start(sigma_a)
    found = []
    for _ in range(n_steps):
        a = apcg.next_a(big_a, big_b, s, sigma_a)
        big_a, big_b = big_a + a, big_b + sigma_a * a
        found.append((a / big_a, sigma_a * a / big_b))
    return found


def deltas(pairs, p_i):
    """[delta_t(0), ..., delta_t(t)] of a coordinate for t = 0, ..., len(pairs).

    x_{t+1} = alpha/p v_{t+1} + alpha (1 - beta) / (1 - alpha beta) (1 - 1/p) v_t
              + (1 - alpha beta / p) (1 - alpha) / (1 - alpha beta) x_t.
    The text puts alpha_t / p for delta_t(t), which is alpha_{t-1} / p.
    """
    found = [[1.0]]
    for alpha, beta in pairs:
        keep = (1 - alpha * beta / p_i) * (1 - alpha) / (1 - alpha * beta)
        new = [keep * value for value in found[-1]]
        new[-1] += alpha * (1 - beta) / (1 - alpha * beta) * (1 - 1 / p_i)
        found.append([*new, alpha / p_i])
    return found
