"""The simulated heat exchanger is the paper's to the digit."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import heat_exchanger as control


def by_hand(theta: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The closed loop sample by sample, another way than by filters of the whole."""
    K, Td, beta, Ti, gamma = theta
    T = control.STEP

    def tustin(a2: float, a1: float, a0: float) -> np.ndarray:
        """Coefficients of z^2, z, 1 of a2 s^2 + a1 s + a0 at s = 2/T (z-1)/(z+1), times (z+1)^2."""
        c = 2 / T
        return np.array([a2 * c * c + a1 * c + a0, 2 * a0 - 2 * a2 * c * c, a2 * c * c - a1 * c + a0])

    plant = 5 * tustin(0, 0, 1), tustin(90, 33, 1)
    lead = K * tustin(Td * Ti, Td + Ti, 1), tustin(beta * Td * Ti, beta * Td * gamma + Ti, gamma)
    y, u, x, e = (np.zeros(len(w)) for _ in range(4))

    def filtered(ba: tuple[np.ndarray, np.ndarray], inputs: np.ndarray, outputs: np.ndarray, k: int) -> float:
        (b, a), past = ba, range(3)
        total = sum(b[i] * inputs[k - i] for i in past if k >= i) - sum(a[i] * outputs[k - i] for i in (1, 2) if k >= i)
        return float(total / a[0])

    delayed = np.zeros(len(w))
    for k in range(len(w)):
        delayed[k] = u[k - control.DEAD] if k >= control.DEAD else 0.0
        x[k] = filtered(plant, delayed, x, k)
        y[k] = x[k] + w[k]
        e[k] = 1 - y[k]
        u[k] = filtered(lead, e, u, k)
    return y, u


def test_filters_of_the_whole_loop_are_the_loop() -> None:
    w = np.random.default_rng(3).normal(0, 0.01, 400)
    for theta in (control.START, control.PAPERS):
        for whole, single in zip(control.simulated(theta, w), by_hand(theta, w), strict=True):
            np.testing.assert_allclose(whole, single, atol=1e-6)


def test_the_papers_figures_come_out_to_the_digit() -> None:
    start, found = control.response(control.START), control.response(control.PAPERS)
    assert [f"{v:.4f}" for v in (start.error, start.effort)] == ["0.0128", "2.8355"]
    assert f"{start.settling:.1f} {100 * start.overshoot:.1f}" == "797.2 33.8" and not start.passes
    assert [f"{v:.4f}" for v in (found.error, found.effort)] == ["0.0093", "0.9620"]
    assert f"{found.settling:.1f} {100 * found.overshoot:.2f}" == "8.0 18.56" and found.passes


def test_the_papers_controller_fails_under_two_of_ten_noises_and_the_start_under_all() -> None:
    failing = [noise for noise in control.NOISES if not control.response(control.PAPERS, noise).passes]
    assert failing == [2, 4] and control.robustness(control.PAPERS) == 0.8
    assert control.robustness(control.START) == 0.0


def test_an_unstable_loop_fails_without_a_word(recwarn: pytest.WarningsRecorder) -> None:
    assert control.Plant().predict(np.array([[60.0, 4.0, 0.005, 15.0, 0.05]]))[0] == 0
    assert len(recwarn) == 0


@pytest.mark.parametrize("n", [1, 0])
def test_a_history_has_as_many_that_pass_as_it_says(n: int) -> None:
    points, labels = control.history(n, seed=1)
    assert len(points) == 30 and labels.sum() == n
    assert (control.Plant().predict(points) == labels).all()


AT_THE_LIMITS = {"error": 0.01, "rise": 20.0, "settling": 50.0, "overshoot": 0.2, "effort": 2.0}  # section 5


def test_what_is_at_the_papers_five_limits_passes_and_what_is_beyond_one_does_not() -> None:
    assert control.Response(**AT_THE_LIMITS).passes
    for name, limit in AT_THE_LIMITS.items():
        assert not control.Response(**AT_THE_LIMITS | {name: 1.01 * limit}).passes, name
