"""Types of what goes round: arrays by what they hold, and rows."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

FloatArray: TypeAlias = npt.NDArray[np.float64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]
IntArray: TypeAlias = npt.NDArray[np.intp]
Rows: TypeAlias = Any  # DataFrame, Series, mapping, list of mappings, 1-D or 2-D array
