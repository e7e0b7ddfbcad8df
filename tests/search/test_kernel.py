"""The kernel against scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import Matern as SklearnMatern

from acex.search.kernel import KernelName, Matern


@pytest.mark.parametrize("name", ["matern52", "matern32"])
def test_kernel_is_that_of_scikit_learn(name: KernelName) -> None:
    rng = np.random.default_rng(0)
    A, B = rng.normal(size=(5, 4)), rng.normal(size=(6, 4))
    nu = {"matern52": 2.5, "matern32": 1.5}[name]
    assert_allclose(Matern(2.0, 0.8, name)(A, B), 2.0 * SklearnMatern(0.8, nu=nu)(A, B), rtol=1e-12)
