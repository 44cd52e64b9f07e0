"""Tables of other libraries, matched by name as those of pandas, and indices that pandas does not compare."""

import numpy as np
import pandas as pd
import pytest

from softlabel import analyse_votes, fit_dirichlet_multinomial, fit_logistic

RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.normal(size=(80, 2)), columns=["size", "shape"])
Y = (RNG.random(80) < 1 / (1 + np.exp(-2 * X["size"]))).astype(int).to_numpy()
FIT = fit_logistic(X, Y)


class Other:
    """What polars and pyarrow have in common: an Arrow stream, which is not read, names, and columns by name."""

    def __init__(self, frame, names="columns"):
        self.frame = frame
        setattr(self, names, list(frame.columns))

    def __arrow_c_stream__(self, requested_schema=None):
        raise AssertionError

    def __getitem__(self, name):
        return self.frame[name].to_numpy()


def polars(frame):
    return pytest.importorskip("polars").DataFrame({name: frame[name].to_list() for name in frame})


def arrow(frame):
    return pytest.importorskip("pyarrow").table({name: frame[name].to_list() for name in frame})


KINDS = [Other, lambda frame: Other(frame, "column_names"), polars, arrow]


@pytest.mark.parametrize("table", KINDS)
def test_columns_are_found_by_name(table):
    swapped = table(X[["shape", "size"]])
    np.testing.assert_allclose(FIT.posterior(swapped), FIT.posterior(X), rtol=1e-12)
    np.testing.assert_array_equal(FIT.predict(swapped), FIT.predict(X))
    assert np.abs(FIT.posterior(X[["shape", "size"]].to_numpy()) - FIT.posterior(X)).max() > 0.1  # by position
    assert fit_logistic(swapped, Y).feature_names == ["shape", "size"]
    counts = pd.DataFrame({"yes": 2 * Y, "no": 3 - 2 * Y})
    np.testing.assert_allclose(fit_logistic(table(X), table(counts)).coef, fit_logistic(X, counts).coef, rtol=1e-10)
    joint = fit_dirichlet_multinomial(table(X), table(counts))
    np.testing.assert_allclose(joint.coef, fit_dirichlet_multinomial(X, counts).coef, rtol=1e-8)
    with pytest.raises(ValueError, match="X has no column 'size'"):
        FIT.posterior(table(X[["shape"]]))
    with pytest.raises(ValueError, match=r"X\[1, 0\] \(column 'size'\) is nan"):
        fit_logistic(table(X.assign(size=X["size"].where(X.index != 1, np.nan))), Y)


@pytest.mark.parametrize("table", KINDS)
def test_reports_read_them(table):
    votes = pd.DataFrame({"item": np.repeat(np.arange(80), 3), "annotator": list("ABC") * 80})
    votes["label"] = np.where(RNG.random(240) < np.repeat(0.2 + 0.6 * Y, 3), "y", "n")
    features = X.assign(item=np.arange(80))
    plain = analyse_votes(votes, features, positive="y")
    pd.testing.assert_frame_equal(analyse_votes(table(votes), table(features), positive="y").table(), plain.table())


HUGE = np.arange(80, dtype="uint64") + np.uint64(10124420001034504343)


@pytest.mark.parametrize(
    "first, second, words",
    [
        (HUGE, HUGE[::-1].astype(float), "the index of y_or_counts has 1.01.* more than once"),
        (HUGE, pd.MultiIndex.from_arrays([range(80), range(80)]), "y_or_counts has no row for"),
        (["a", *range(79)], range(80), "y_or_counts has no row for 'a'"),
        (range(79), range(80), "y_or_counts has a row for 79, which is not in the index of X"),
        (range(80), [0, 0, *range(2, 80)], "the index of y_or_counts has 0 more than once: rows cannot be matched to X"),
    ],
)
def test_indices_that_pandas_does_not_compare(first, second, words):
    features = X.iloc[: len(first)].set_axis(first)
    with pytest.raises(ValueError, match=words) as error:
        fit_logistic(features, pd.Series(Y, second))
    assert "np." not in str(error.value)
