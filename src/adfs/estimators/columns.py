"""Rows of several ranks have the same columns, layout and type of number, as one array would."""

from typing import Any

import numpy as np
from scipy.sparse import csr_matrix, issparse

from adfs.errors import DataError
from adfs.estimators.company import Company


def as_one_array(rows: Any, names: Any, company: Company) -> Any:
    """This rank's rows as they would be in one array of all ranks' rows.

    CSR on one rank is CSR on all; float64 on one rank is float64 on all. ``names`` are those of the
    columns, None where they have none.
    """
    if company.alone:
        return rows
    own = None if names is None else [str(name) for name in names]
    told = company.peers.gather([rows.shape[1], issparse(rows), rows.dtype.str, own])
    company.each(lambda: _require_same_columns(told))
    if any(sparse for _, sparse, _, _ in told) and not issparse(rows):
        rows = csr_matrix(rows)
    kind = np.result_type(*[dtype for _, _, dtype, _ in told])
    return rows.astype(kind, copy=False)


def _require_same_columns(told: list[Any]) -> None:
    width, _, _, names = told[0]
    for rank, (other, _, _, others) in enumerate(told):
        if other != width:
            raise DataError(
                f"X has {other} features on rank {rank} but {width} on rank 0; all ranks need the "
                "same columns (pad with zeros)."
            )
        if others != names:
            raise DataError(
                f"The columns of X have other names on rank {rank} than on rank 0; give all ranks "
                "the same columns in the same order."
            )
