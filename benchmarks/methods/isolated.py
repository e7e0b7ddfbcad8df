"""Run code of other packages without output and with seeded global random numbers."""

from __future__ import annotations

import contextlib
import io
import logging
import random
import warnings
from collections.abc import Iterator

import numpy as np


@contextlib.contextmanager
def isolated(seed: int) -> Iterator[None]:
    """Silence output and seed the global random numbers that other packages draw from."""
    before = np.random.get_state(), random.getstate()  # noqa: NPY002
    np.random.seed(seed)  # noqa: NPY002
    random.seed(seed)
    loud = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    silence = io.StringIO()
    try:
        with contextlib.redirect_stdout(silence), contextlib.redirect_stderr(silence), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(loud)
        np.random.set_state(before[0])  # noqa: NPY002
        random.setstate(before[1])
