"""The simulation study: its table, its randomness, its limits and its standard errors."""

import inspect
import os
import subprocess
import sys

import joblib
import numpy as np
import pandas as pd
import pytest

from softlabel import TwoClassNormal, fit_logistic, relative_efficiency, simulate_relative_efficiency
from softlabel.experiments import bootstrap_se, excess_errors

COLUMNS = ["delta", "m", "alpha0", "are", "re", "re_se"]


def test_one_tidy_row_a_cell():
    frame = simulate_relative_efficiency([1, 2.5], [5, 3], [1, np.inf], n=100, n_sims=20, rng=0)
    assert list(frame.columns) == COLUMNS and len(frame) == 8
    cells = set(frame[["delta", "m", "alpha0"]].itertuples(index=False, name=None))
    assert cells == {(d, m, a) for d in (1, 2.5) for m in (5, 3) for a in (1, np.inf)}
    np.testing.assert_allclose(frame["are"], [relative_efficiency(m, a) for m, a in zip(frame["m"], frame["alpha0"])])
    assert frame["m"].dtype.kind == "i" and np.isfinite(frame[["re", "re_se"]]).all(axis=None)


@pytest.mark.parametrize("parameters", [{}, {"n": 60, "p": 1}, {"n": 80, "p": 4}])
def test_numbers_do_not_depend_on_the_workers(parameters):
    arguments = dict(deltas=[1, 2], ms=[5], alphas=[1, 10], n_sims=120, rng=7) | {"n": 100} | parameters
    one = simulate_relative_efficiency(**arguments, n_jobs=1)
    pd.testing.assert_frame_equal(simulate_relative_efficiency(**arguments, n_jobs=2), one, check_exact=True)
    pd.testing.assert_frame_equal(simulate_relative_efficiency(**arguments), one, check_exact=True)


def test_numbers_do_not_depend_on_the_backend():
    arguments = dict(deltas=[2], ms=[5], alphas=[1], n=100, n_sims=120, rng=7)
    one = simulate_relative_efficiency(**arguments, n_jobs=1)
    with joblib.parallel_config(backend="loky", n_jobs=2):
        two = simulate_relative_efficiency(**arguments, n_jobs=2)
    pd.testing.assert_frame_equal(two, one, check_exact=True)


def test_numbers_are_those_of_the_process_that_compiled(tmp_path):
    """A new folder for compiled loops: the first process compiles them, the second finds them there."""
    program = (
        "import numpy as np, softlabel as sl\n"
        "X = np.random.default_rng(1).normal(size=(20, 500, 2))\n"
        "y = np.random.default_rng(2).random((20, 500)) < 0.5\n"
        "print(sl.fit_logistic_batch(X, y).coef.tobytes().hex(), sl.fit_logistic(X[0], y[0]).coef.tobytes().hex())\n"
    )
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    first, second = (
        subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    )
    assert first == second and len(first) > 2 * 8 * 3 * 21


def test_seeds():
    def run(rng):
        return simulate_relative_efficiency([2], [5], [1], n=100, n_sims=60, rng=rng)["re"][0]
    assert run(1) == run(1) == run(np.random.default_rng(1))
    assert run(1) != run(2) and run(None) != run(None)


def test_training_sets_are_all_different():
    """A seed used twice would repeat training sets, and their excess errors with them."""
    model = TwoClassNormal.canonical(2.0)
    rng = np.random.default_rng(0)
    ms, alphas = np.array([5.0, 50.0]), np.array([1.0, 10.0])
    parts = [excess_errors(model, 50, 100, ms, alphas, child) for child in rng.spawn(3)]
    truth = np.concatenate([truth for truth, *_ in parts])
    assert len(np.unique(truth)) == 150 and np.all(truth >= 0)


@pytest.mark.parametrize("delta", [1.0, 3.0])
def test_ratio_is_near_its_limit_at_large_n(delta):
    frame = simulate_relative_efficiency([delta], [5, 50], [1, 1000], n=2000, n_sims=1000, rng=3)
    z = (frame["re"] - frame["are"]) / frame["re_se"]
    # Four standard errors, fixed seed; the standard errors are below 6% of the value.
    assert np.all(np.abs(z) < 4) and np.all(frame["re_se"] < 0.06 * frame["re"])
    # What the test must tell apart: m, 1 + alpha0, and the two swapped in numerator and denominator.
    m, a = frame["m"], frame["alpha0"]
    for wrong in (m, 1 + a, (m + a) / (1 + a), (1 + a) / (m + a)):
        assert (np.abs(frame["re"] - wrong) / frame["re_se"]).max() > 10


def test_excess_errors_are_those_of_single_fits():
    """The study rebuilt for one training set: same seed, the plain functions of the package."""
    model = TwoClassNormal.canonical(2.0)
    truth, votes, *_ = excess_errors(model, 1, 200, np.array([5.0]), np.array([np.inf]), np.random.default_rng(4))
    Y, z = model.sample(200, np.random.default_rng(4), size=1)
    expected = model.error_rate(fit_logistic(Y[0], z[0]).coef) - model.bayes_error()
    # 1e-6 relative: an error of 1e-8 in the predictors is squared, and 0.002 subtracted from 0.16.
    assert truth[0] == pytest.approx(expected, rel=1e-6)
    assert votes.shape == (1, 1, 1) and votes[0, 0, 0] >= 0


def test_excess_errors_approach_the_expansion_of_theorem_2():
    model = TwoClassNormal.canonical(2.0)
    n, size = 1000, 2000
    truth, votes, *_ = excess_errors(model, size, n, np.array([5.0]), np.array([1.0]), np.random.default_rng(5))
    for sample, limit in [(truth, model.excess_error()), (votes[:, 0, 0], model.excess_error() * 6 / 10)]:
        error = n * sample.std() / np.sqrt(size)
        # Four standard errors (2.2% of the limit each) and two per cent for n = 1000 not being infinite.
        assert abs(n * sample.mean() - limit) < 4 * error + 0.02 * limit


@pytest.mark.parametrize("m, alpha0", [(5, 1), (50, 1000)])
def test_bootstrap_error_is_the_delta_method_error(m, alpha0):
    size = 2000
    frame = simulate_relative_efficiency([2], [m], [alpha0], n=300, n_sims=size, rng=6)
    rng = np.random.default_rng(60)
    model = TwoClassNormal.canonical(2.0)
    truth, votes, *_ = excess_errors(model, size, 300, np.array([float(m)]), np.array([float(alpha0)]), rng)
    votes = votes[:, 0, 0]
    ratio = truth.mean() / votes.mean()
    delta_se = (truth / truth.mean() - votes / votes.mean()).std(ddof=1) * ratio / np.sqrt(size)
    # Each has some 4% of noise (1,000 resamples, 2,000 independent training sets with heavy tails).
    assert frame["re_se"][0] == pytest.approx(delta_se, rel=0.15)


def test_bootstrap_resamples_training_sets_as_a_whole():
    """Where both rules err alike on every training set the ratio does not vary; resampled apart, it would."""
    errors = np.random.default_rng(0).exponential(size=500)
    se = bootstrap_se(errors, np.column_stack([2 * errors, errors[::-1]]), np.random.default_rng(1))
    assert se[0] < 1e-14 and se[1] > 0.03


def test_bootstrap_error_falls_with_the_number_of_simulations():
    small, large = (simulate_relative_efficiency([2], [5], [10], n=100, n_sims=k, rng=8)["re_se"][0] for k in (200, 3200))
    assert small / large == pytest.approx(4, rel=0.4)  # sqrt(16); the small one is itself noisy


def test_votes_of_more_labellers_contain_those_of_fewer():
    """Nested votes make the excess errors of m = 5 and m = 50 correlated; both keep their own limit."""
    model = TwoClassNormal.canonical(2.0)
    _, votes, *_ = excess_errors(model, 600, 200, np.array([25.0, 50.0]), np.array([np.inf]), np.random.default_rng(9))
    assert np.corrcoef(votes[:, 0, 0], votes[:, 1, 0])[0, 1] > 0.3
    ratio = votes[:, 0, 0].mean() / votes[:, 1, 0].mean()
    assert ratio == pytest.approx(2, rel=0.2)  # twice the labellers, half the excess; some 5% of noise


def test_order_of_ms_and_alphas_does_not_mislabel_cells():
    frame = simulate_relative_efficiency([2], [50, 1, 10], [1000, 0.01], n=500, n_sims=400, rng=10)
    z = (frame["re"] - frame["are"]) / frame["re_se"]
    assert np.all(np.abs(z) < 4)  # a swap would be tens of standard errors


def test_separated_training_sets_are_not_a_silent_success():
    """Eight items far apart are nearly always separated: the result must say so."""
    with pytest.warns(UserWarning, match="separat|converge"):
        simulate_relative_efficiency([4], [5], [10], n=8, n_sims=50, rng=0)


def test_the_defaults_are_those_of_the_paper():
    default = {name: p.default for name, p in inspect.signature(simulate_relative_efficiency).parameters.items()}
    assert (default["n"], default["p"], default["n_sims"]) == (500, 2, 1000)
