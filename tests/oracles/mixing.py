"""Mixing matrices of a graph, entry by entry from a list of edges.

metropolis: W_ij = 1 / (1 + max(degree_i, degree_j)) on edges (Xiao, Boyd, Lall 2005).
laplacian: W = I - 2 / (lmin + lmax) L, lmin the smallest nonzero eigenvalue of the Laplacian L
(the best constant weight of Xiao and Boyd 2004).
max-degree: W = I - L / (1 + largest degree), the matrix of Duchi, Agarwal, Wainwright (2012).
Each has rows and columns of sum one; a diagonal entry is what its row lacks.
"""

import numpy as np


def degrees(n, edges):
    """Number of neighbours of each node."""
    found = [0] * n
    for i, j in edges:
        found[i] += 1
        found[j] += 1
    return found


def laplacian_matrix(n, edges):
    """Degrees on the diagonal, -1 for each edge."""
    matrix = np.zeros((n, n))
    for i, j in edges:
        matrix[i, i] += 1
        matrix[j, j] += 1
        matrix[i, j] -= 1
        matrix[j, i] -= 1
    return matrix


def of_weights(n, weights):
    """W from a dictionary edge -> weight."""
    matrix = np.zeros((n, n))
    for (i, j), weight in weights.items():
        matrix[i, j] = matrix[j, i] = weight
    for i in range(n):
        matrix[i, i] = 1 - sum(matrix[i, j] for j in range(n) if j != i)
    return matrix


def metropolis(n, edges):
    """1 / (1 + the larger degree of the two ends)."""
    degree = degrees(n, edges)
    return of_weights(n, {(i, j): 1 / (1 + max(degree[i], degree[j])) for i, j in edges})


def laplacian(n, edges):
    """2 / (lmin + lmax) on each edge."""
    if not edges:
        return np.eye(n)
    eigenvalues = np.sort(np.linalg.eigvalsh(laplacian_matrix(n, edges)))
    largest = eigenvalues[-1]
    smallest = min(value for value in eigenvalues if value > 1e-9 * largest)
    return of_weights(n, {edge: 2 / (smallest + largest) for edge in edges})


def max_degree(n, edges):
    """1 / (1 + the largest degree) on each edge."""
    largest = max(degrees(n, edges))
    return of_weights(n, {edge: 1 / (1 + largest) for edge in edges})


def second_largest_modulus(W):
    """The largest |eigenvalue| of W - 11'/n (slem)."""
    n = len(W)
    return float(np.max(np.abs(np.linalg.eigvals(W - np.ones((n, n)) / n))))
