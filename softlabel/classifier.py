"""A classifier of scikit-learn that takes votes as y. It needs the extra ``sklearn``; ``import softlabel`` does not load it.

Scikit-learn's rules hold here: the columns of ``predict_proba`` and the sign of ``coef_`` go by ``classes_``, which is sorted.
"""

import warnings
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_softmax, softmax

from softlabel.patient import explain_no_convergence, fit_patiently
from softlabel.separation import explain_separation
from softlabel.validation import (
    Array,
    ConvergenceWarning,
    SeparationWarning,
    align,
    as_numbers,
    as_positive,
    is_real,
    listed,
    optional,
    place,
    same,
)
from softlabel.worth import fit_votes_and_truth

optional("sklearn", "sklearn", "SoftLabelClassifier")  # else without a word on which extra has it

from sklearn.base import BaseEstimator, ClassifierMixin  # noqa: E402
from sklearn.exceptions import ConvergenceWarning as NotConverged  # noqa: E402
from sklearn.linear_model import LogisticRegression  # noqa: E402
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data  # noqa: E402

Classes = NDArray[Any]


class SoftLabelClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Logistic regression on votes, on proportions of votes or on labels, as an estimator of scikit-learn.

    Parameters
    ----------
    penalty : float
        Ridge penalty: ``penalty / 2`` times the sum of the squared coefficients, without the intercept, is taken from the
        log-likelihood of the votes. That is a normal prior of variance ``1 / penalty`` for each coefficient in the units of
        its feature, so scale features first. Scikit-learn's ``C`` is ``1 / penalty``; 0 is maximum likelihood, for two
        classes only.

    Attributes
    ----------
    classes_ : (g,) ndarray
        Labels of the classes, sorted.
    coef_ : (1, p) ndarray
        Coefficients of the log-odds of ``classes_[1]``; (g, p), a row for each class, if there are three or more.
    intercept_ : (1,) or (g,) ndarray
        Intercepts.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : (p,) ndarray
        Their names, if X was a DataFrame.

    Notes
    -----
    Without a penalty this is :func:`~softlabel.fit_logistic`, which also has standard errors; with one, scikit-learn's
    ``LogisticRegression`` on a row for each item and class, weighted by its votes, multinomial for three or more classes.

    The columns of ``predict_proba`` are in the order of ``classes_``: of two columns of votes without names, the first is the
    label 1, and its probability comes second.

    ``cross_val_score`` and ``GridSearchCV`` split votes as they split labels, but do not stratify y of two or more columns:
    ``cv=5`` means five folds in the order of the rows. Shuffle them if rows are sorted, by
    ``cv=KFold(5, shuffle=True, random_state=0)``, or give the parts of a ``StratifiedKFold`` on the majority.
    ``cross_val_predict`` of probabilities puts ranks in the place of votes before any estimator sees them: use it for labels
    only, and for votes ``cross_validate(..., return_estimator=True)``.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.model_selection import GridSearchCV
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from softlabel import TwoClassNormal, sample_votes
    >>> model = TwoClassNormal.canonical(2.0)
    >>> X, y = model.sample(300, rng=0)
    >>> votes = pd.DataFrame(sample_votes(model.posterior(X), 5, 3.0, rng=1), columns=["malignant", "benign"])
    >>> pipeline = make_pipeline(StandardScaler(), SoftLabelClassifier())
    >>> grid = {"softlabelclassifier__penalty": [0, 1, 10, 100]}
    >>> search = GridSearchCV(pipeline, grid, scoring=neg_log_loss_of_votes).fit(X, votes)
    >>> search.predict(X[:3])
    array(['benign', 'malignant', 'malignant'], dtype=object)
    """

    def __init__(self, penalty: float = 0.0) -> None:
        self.penalty = penalty

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = bool(self.penalty != 0)
        return tags

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None, truth: ArrayLike | None = None) -> Self:
        """Fit the rule.

        Parameters
        ----------
        X : (n, p) array_like or DataFrame
            Features, without a column for the intercept.
        y : (n,) or (n, g) array_like
            A label for each item; or a column for each class, with numbers of votes or their proportions. The names of the
            columns are the labels, as in ``pandas.crosstab(item, label)``. Two columns without names are the votes for the
            labels 1 and 0, in this order, as everywhere in softlabel. Pandas objects are matched to ``X`` by index; behind a
            transformer that returns arrays, rows go by position.
        sample_weight : (n,) array_like, optional
            Weight of each item: of proportions, the number of votes.
        truth : (n,) array_like, optional
            True labels of some items, missing where unknown: then the rule is that of :func:`~softlabel.fit_votes_and_truth`,
            from whole numbers of votes for two classes, without weights or penalty. ``cross_val_score`` and the like take it
            by ``params``.

        Returns
        -------
        SoftLabelClassifier
            Itself.

        Raises
        ------
        ValueError
            If an argument is not valid, a class has no votes, or without penalty a column is constant or a linear combination
            of others.

        Warns
        -----
        SeparationWarning
            If there is no penalty, and the features separate the votes: no maximum exists.
        TruthWarning
            As :func:`~softlabel.fit_votes_and_truth`.
        """
        penalty = as_positive(self.penalty, "penalty", or_zero=True)
        _must_be_numbers(X)
        x: Array = validate_data(self, X, dtype=float)
        votes, classes = _read_votes(X, y, sample_weight)
        if len(x) != len(votes):
            raise ValueError(f"X has {len(x)} items but y has {len(votes)}: one label or one row of votes an item")
        if len(classes) < 2:
            raise ValueError(f"y has only one class, {listed(classes)}: there must be votes for two at least")
        if not votes.any(axis=0).all():
            raise ValueError(f"y has no votes for the class {listed(classes[~votes.any(axis=0)])}: each must have some")
        if len(classes) > 2 and not penalty:  # it would have to be found out whether a maximum exists
            raise ValueError(
                f"Only binary classification is supported, unless penalty is above 0: y has the classes {listed(classes)}"
            )
        if truth is not None:
            if len(classes) > 2 or penalty or sample_weight is not None or (votes != np.floor(votes)).any():
                raise ValueError(
                    "truth goes with labels or whole numbers of votes for two classes, with penalty=0 and no sample_weight"
                )
            known = _read_truth(align(X, truth, ("X", "truth")), classes, len(votes))
            coef = fit_votes_and_truth(x, votes[:, ::-1], known).coef[None]
        elif not penalty:
            names = getattr(self, "feature_names_in_", None)
            coef = _maximum_likelihood(x if names is None else pd.DataFrame(x, columns=names), votes)[None]
        else:
            coef = _penalised(x, votes, penalty)
        self.classes_, self.intercept_, self.coef_ = classes, coef[:, 0], coef[:, 1:]
        return self

    def decision_function(self, X: ArrayLike) -> Array:
        """Log-odds (n,) of ``classes_[1]``; of three or more classes, their linear predictors (n, g)."""
        check_is_fitted(self)
        _must_be_numbers(X)
        scores: Array = validate_data(self, X, dtype=float, reset=False) @ self.coef_.T + self.intercept_
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def _linear_predictors(self, X: ArrayLike) -> Array:
        scores = self.decision_function(X)
        return np.column_stack([np.zeros(len(scores)), scores]) if scores.ndim == 1 else scores

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The most probable label (n,) of each item."""
        scores = self._linear_predictors(X)
        return np.asarray(self.classes_[scores.argmax(axis=1)])

    def predict_proba(self, X: ArrayLike) -> Array:
        """Probabilities (n, g) of the classes, in the order of ``classes_``."""
        return np.asarray(softmax(self._linear_predictors(X), axis=1))

    def predict_log_proba(self, X: ArrayLike) -> Array:
        """Logarithms (n, g) of the probabilities."""
        return np.asarray(log_softmax(self._linear_predictors(X), axis=1))

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Share of the votes, or of the labels, that agree with the predicted labels; arguments as in :meth:`fit`."""
        votes, classes = _read_votes(X, y, sample_weight)
        agree = self.predict(X)[:, None] == classes
        return float(votes[agree].sum() / votes.sum())


def neg_log_loss_of_votes(estimator: Any, X: ArrayLike, y: ArrayLike) -> float:
    """Mean log-probability that a classifier gives to each vote: a scorer, to be maximised.

    Parameters
    ----------
    estimator : classifier
        A fitted one with ``classes_`` and ``predict_log_proba``: a :class:`SoftLabelClassifier`, or a pipeline of it.
    X, y
        As in :meth:`SoftLabelClassifier.fit`. Each vote counts once, so proportions count each item once.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If ``y`` has votes for a class that the classifier does not know, or none at all.

    Notes
    -----
    It says how well votes are predicted. How well the truth is, votes do not tell.

    Examples
    --------
    >>> X, votes = [[0.0], [1.0], [2.0], [3.0]], [[1, 6], [3, 4], [3, 4], [6, 1]]
    >>> neg_log_loss_of_votes(SoftLabelClassifier().fit(X, votes), X, votes)
    -0.56...
    """
    votes, classes = _read_votes(X, y)
    column = {label: k for k, label in enumerate(estimator.classes_.tolist())}
    if unknown := [label for label in classes.tolist() if label not in column]:
        raise ValueError(f"y has the class {listed(unknown)}, but the classifier was fitted to {listed(estimator.classes_)}")
    log_probability = estimator.predict_log_proba(X)[:, [column[label] for label in classes.tolist()]]
    return float(np.sum(votes * log_probability) / votes.sum())


def _must_be_numbers(X: ArrayLike) -> None:
    """An error that names the column of a frame that holds something else."""
    for name, column in X.items() if isinstance(X, pd.DataFrame) else ():
        try:
            if not is_real(column):
                raise TypeError
            column.astype(float)
        except (TypeError, ValueError):
            raise ValueError(f"X has column {name!r} of type {column.dtype}: features must be real numbers") from None


def _read_votes(X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> tuple[Array, Classes]:
    """Weighted votes (n, g), of a label one, and the classes of their columns, sorted."""
    if y is None:
        raise ValueError("SoftLabelClassifier requires y to be passed, but the target y is None")
    y = align(X, y, ("X", "y"))
    try:
        values: Any = y if hasattr(y, "columns") else np.asanyarray(y)  # a mask is not lost
    except ValueError:
        raise ValueError(f"y must be an array of labels or of votes, got {type(y).__name__} of rows that differ") from None
    one_column = len(values.shape) == 1 or values.shape[1:] == (1,)
    votes, classes = _read_labels(values) if one_column else _read_columns(values)
    if sample_weight is not None:
        weight = as_numbers(align(X, sample_weight, ("X", "sample_weight")), "sample_weight", (1,))
        if len(weight) != len(votes):
            raise ValueError(f"sample_weight has {len(weight)} values but y has {len(votes)} items: one weight an item")
        if weight.min() < 0 or not weight.any():
            k = int(weight.argmin())
            wrong = f"sample_weight[{k}] is {weight[k]:g}" if weight[k] else "every sample_weight is zero"
            raise ValueError(f"{wrong}: weights must be at least 0, and some above")
        votes = votes * weight[:, None]
    if not votes.any():
        raise ValueError("y has no votes at all: at least one item must have a vote")
    return votes, classes


def _read_labels(y: Any) -> tuple[Array, Classes]:
    given, y = y, np.asarray(y).ravel()
    if (missing := pd.isna(y) | np.ma.getmaskarray(given).ravel()).any():
        raise ValueError(f"y[{int(missing.argmax())}] is missing: every item must have a label")
    kind = pd.api.types.infer_dtype(y)
    number = y.astype(float) if kind == "floating" else np.zeros(len(y))
    wrong = np.isinf(number) | (number != np.floor(number)) | (kind not in ("string", "boolean", "integer", "floating"))
    if wrong.any():
        raise ValueError(
            f"Unknown label type: y[{int(wrong.argmax())}] is {listed(y[wrong][:1])}. Labels must be text or whole numbers; "
            "of proportions, y has a column for each class, and sample_weight the numbers of votes"
        )
    classes, code = np.unique(column_or_1d(given, warn=True), return_inverse=True)
    return np.eye(len(classes))[code], classes


def _read_columns(y: Any) -> tuple[Array, Classes]:
    votes = as_numbers(y, "y", (1, 2))
    columns = getattr(y, "columns", None)
    names = np.asarray([1, 0] if columns is None else columns)
    if isinstance(columns, pd.RangeIndex) or len(names) != votes.shape[1]:
        raise ValueError(f"y has {votes.shape[1]} columns without names: give a DataFrame, its columns named as the classes")
    if (votes < 0).any():
        at = tuple(np.argwhere(votes < 0)[0])
        where = place("y", at, None if columns is None else names.tolist())
        raise ValueError(f"{where} is {votes[at]:g}: votes and proportions must be at least 0")
    try:
        classes, order = np.unique(names, return_index=True)
    except TypeError:
        raise ValueError(f"y has columns that cannot be sorted ({listed(names)}): let all names be text") from None
    if len(classes) < len(names):
        raise ValueError(f"y has more than one column of the same name: {listed(names)}")
    return votes[:, order], classes


def _read_truth(truth: ArrayLike, classes: Classes, n: int) -> Array:
    """1 for the second class and 0 for the first, nan where unknown."""
    values = np.asarray(truth, object)
    if values.shape != (n,):
        raise ValueError(f"truth has shape {values.shape} but y has {n} items: one true label an item, missing if unknown")
    numbers, (first, second) = np.full(n, np.nan), classes.tolist()
    for k in np.flatnonzero(~pd.isna(values)):
        numbers[k] = 1 if same(values[k], second) else 0 if same(values[k], first) else np.nan
        if np.isnan(numbers[k]):
            raise ValueError(f"truth[{k}] is {listed([values[k]])}: it must be among {listed(classes)}, or missing if unknown")
    return numbers


def _maximum_likelihood(X: Array | pd.DataFrame, votes: Array) -> Array:
    """Coefficients (p + 1,) of two classes, by Newton's method, which takes whole numbers of votes: as many as are needed."""
    if (votes != np.floor(votes)).any() or votes.max() > 2.0**50:
        votes = np.rint(votes * (2.0**50 / votes.max()))  # multiples of all votes have the same estimate
    try:
        fit = fit_patiently(X, votes[:, ::-1])  # whose words recommend what is not offered here
    except ValueError as error:
        raise ValueError(f"{error}; or give a penalty above 0") from None
    if fit.separation != "none":
        warnings.warn(
            f"{explain_separation(fit.separation, np.asarray(X), votes[:, ::-1], fit.feature_names)}; give a penalty above 0",
            SeparationWarning,
            stacklevel=3,
        )
    elif not fit.converged:
        warnings.warn(f"{explain_no_convergence(fit, 'y')}; or give a penalty above 0", ConvergenceWarning, stacklevel=3)
    return fit.coef


def _penalised(X: Array, votes: Array, penalty: float) -> Array:
    """Coefficients (1 or g, p + 1), from a row for each item and class that has votes."""
    rows, label = np.nonzero(votes)
    centre = X.mean(axis=0)
    x = X - centre
    unit = float(max(np.abs(x).max(), penalty**0.5))  # neither large features nor a large penalty make the solver give up
    model = LogisticRegression(C=unit * (unit / penalty), solver="newton-cholesky", tol=1e-8)
    with warnings.catch_warnings(record=True) as caught:  # where one solver gives up, another goes on
        warnings.simplefilter("always")
        model.fit((x / unit)[rows], label, sample_weight=votes[rows, label])
    if any(issubclass(warning.category, NotConverged) for warning in caught):
        warnings.warn(
            f"no convergence: penalty={penalty:g} is small beside features as large as {unit:.3g}; scale the features",
            ConvergenceWarning,
            stacklevel=3,
        )
    coef = model.coef_ / unit
    return np.column_stack([model.intercept_ - coef @ centre, coef])
