"""Each symbolic and numeric test behind a mark of a theorem fails when the formula that it tests is wrong.

MUTANTS says how it is made wrong, a line each: the test, what is replaced in its module, and by what, given the right one.
A numeric test knows its formula to a few standard errors only: where 10% would be less, the mutant is further off.
"""

import inspect
import pkgutil
from dataclasses import replace
from itertools import chain, product

import pytest
import sympy as sp
import yaml
from conftest import ROOT
from test_beyond_models import excess_of_three_classes  # noqa: F401
from test_boxes import excess_errors  # noqa: F401  # fixtures of the tests
from test_sharper_theorem import correlated_fits  # noqa: F401
from test_theorems import truth_fits, votes_fits  # noqa: F401

MORE = sp.Rational(11, 10)


def scaled(found, factor):
    if isinstance(found, dict):
        return {k: factor * v for k, v in found.items()}
    return tuple(factor * v for v in found) if isinstance(found, tuple) else factor * found


def times(factor):
    """A number, or all that a function returns, by a factor."""
    return lambda right: (lambda *args: scaled(right(*args), factor)) if inspect.isroutine(right) else factor * right


def at(place, factor):
    """A function of which one argument is by a factor off."""
    return lambda right: lambda *args: right(*args[:place], factor * args[place], *args[place + 1 :])


def limit(**factors):
    """``fit_limit`` with some of its numbers by a factor off."""

    def mutant(right):
        def wrong(*args):
            found = right(*args)
            return replace(found, **{name: factor * getattr(found, name) for name, factor in factors.items()})

        return wrong

    return mutant


def flip(right):
    """One label in ten flipped."""
    return lambda tau, z, rng: right(0.9 * tau + 0.1 * tau[..., ::-1], z, rng)


def sharpen(right):
    """Labels from 1.1 tau - 1 / 30, for three classes."""
    return lambda labeller: right(lambda tau: labeller([MORE * t - sp.Rational(1, 30) for t in tau]))


def curve(right):
    """A tenth of a square beside the straight line."""
    return lambda eta, a, c: right(eta, a, c) + eta**2 / 10


def one_alpha0(right):
    """The factor at alpha0 = 2, whatever alpha0 is."""
    return right.subs(sp.Symbol("alpha0", positive=True), 2)


def other_factor(right):
    """Other numbers in the place of 1 and 1."""
    m, a = sp.symbols("m alpha0", positive=True)
    return m * (3 + a) / (m + 7 * a)


def one_slope(right):
    """Whatever the slope, it is one."""
    return lambda intercept, slope, place: right(intercept, 1, place)


def one_rho(right):
    """The same correlation of the votes on all items."""
    return lambda tau: 0 * right(tau) + 0.5


def one_less(right):
    """One split item less."""
    return lambda n, p, splits, rng: right(n, p, splits - 1, rng)


MUTANTS = {
    "test_theorems": [
        ("test_joint_distribution_symbolically", "joint_distributions", sharpen),
        ("test_joint_distribution_numerically", "draw_labels", flip),
        ("test_estimates_and_error_rates_have_the_same_distribution", "draw_labels", flip),
        ("test_labels_from_the_posterior_are_often_wrong_and_yet_harmless", "draw_labels", flip),
        ("test_votes_have_mean_m_tau_and_inflated_variance", "FACTOR", times(MORE)),
        ("test_theorem_1_symbolically", "FACTOR", times(MORE)),
        ("test_theorem_1_numerically", "godambe_information", times(0.8)),
        ("test_theorem_1_elsewhere", "godambe_information", times(0.7)),
        ("test_theorem_2_symbolically", "FACTOR", times(MORE)),
        ("test_theorem_2_symbolically", "FACTOR", one_alpha0),
        ("test_theorem_2_symbolically", "FACTOR", other_factor),
        ("test_theorem_2_symbolically", "curvature", times(MORE)),
        ("test_theorem_2_numerically", "MODEL.__class__.error_curvature", times(0.8)),
        ("test_theorem_2_numerically", "relative_efficiency", times(0.8)),
        ("test_curvature_without_normal_classes", "curvature_of", times(1.01)),
        ("test_curvature_without_normal_classes", "curvature_of", at(0, 1.01)),
        ("test_curvature_without_normal_classes", "curvature_of", at(2, 1.1)),
    ],
    "test_boxes": [
        ("test_moments_of_three_classes_symbolically", "FACTOR", times(MORE)),
        ("test_floor_and_ceiling_symbolically", "bounds", at(1, 0.9)),
        ("test_floor_and_ceiling_symbolically", "bounds", times(MORE)),
        ("test_floor_and_ceiling_numerically", "smallest_gain", at(2, 1.1)),
        ("test_converse_for_all_coefficients_symbolically", "changes_of_worth", at(0, MORE)),
        ("test_converse_for_all_coefficients_leaves_one_variance", "eta_of", one_slope),
        ("test_excess_is_bounded_by_an_integrable_score_symbolically", "largest_excess", times(1 / MORE)),
        ("test_excess_is_bounded_by_an_integrable_score_symbolically", "moments_of_the_score", at(2, MORE)),
        ("test_tails_vanish_without_a_third_moment", "heavy_limit", times(1.1)),
        ("test_tails_of_the_excess_vanish", "MODEL.__class__.excess_error", times(1.25)),
    ],
    "test_vote_models": [
        ("test_mean_and_covariance_by_enumeration", "variance_inflation", times(1.1)),
        ("test_moments_of_votes", "variance_inflation", times(1.1)),
    ],
    "test_sharper_theorem": [
        ("test_information_symbolically", "effective", times(MORE)),
        ("test_information_symbolically", "effective", at(1, MORE)),
        ("test_information_of_correlated_votes", "effective", times(1.1)),
        ("test_information_of_correlated_votes_elsewhere", "effective", times(0.7)),
        ("test_converse_symbolically", "forced_variance", times(MORE)),
        ("test_variance_not_proportional_to_tau_one_minus_tau_is_rejected", "rho_of", one_rho),
    ],
    "test_beyond_harm": [
        ("test_direction_survives_symbolically", "regression", curve),
        ("test_worth_symbolically", "worth_of_link", times(MORE)),
        ("test_limit_solves_all_score_equations", "fit_limit", limit(coef=1.1)),
        ("test_limit_solves_all_score_equations", "fit_limit", limit(floor=1.1)),
        ("test_worth_of_majorities_numerically", "fit_limit", limit(rate=0.75)),
        ("test_last_vote_and_stretch_symbolically", "HALF", times(MORE)),
        ("test_last_vote_and_stretch_symbolically", "STRETCH", times(MORE)),
        ("test_a_majority_is_worth_a_square_root", "root_constant", times(1.1)),
        ("test_variance_and_crossing_symbolically", "response_variance", at(2, MORE)),
        ("test_variance_and_crossing_symbolically", "crossing", times(MORE)),
        ("test_worth_of_bad_habits_numerically", "fit_limit", limit(rate=0.75)),
        ("test_worth_is_harmonic_in_m", "response_variance", lambda right: lambda q, u, m: right(q, u, m**1.1)),
        ("test_worth_is_harmonic_in_m", "crossing", times(1.1)),
        ("test_distorter_in_closed_form", "fit_limit", limit(coef=1.1)),
    ],
    "test_beyond_design": [
        ("test_budget_symbolically", "ROOTS", lambda right: right | {"right": MORE * right["right"]}),
        ("test_budget_numerically", "relative_efficiency", at(1, 1.1)),
        ("test_three_rates_symbolically", "covariance_of_the_mean", at(0, MORE)),
        ("test_three_rates_symbolically", "covariance_of_the_mean", at(5, 0)),
        ("test_shared_errors_make_votes_worthless_symbolically", "efficiency_of_shared_errors", at(3, MORE)),
        ("test_shared_errors_make_votes_worthless_symbolically", "covariance_of_the_mean", at(5, MORE)),
        ("test_three_rates_by_enumeration", "covariance_of_the_mean", at(5, MORE)),
        ("test_three_rates_by_enumeration", "covariance_of_the_mean", times(MORE)),
        ("test_floor_of_shared_errors_numerically", "floor", times(1.1)),
        ("test_cover_symbolically", "cover", times(MORE)),
        ("test_cover_by_counting_all_labellings", "cover", times(MORE)),
        ("test_split_items_give_an_estimate", "with_splits", one_less),
    ],
    "test_efficiency": [
        ("test_is_the_best_of_all_designs", "design_votes", lambda right: lambda alpha0, **k: right(alpha0=1.1 * alpha0, **k)),
    ],
    "test_report": [
        ("test_one_more_vote_symbolically", "in_favour_of_votes", at(1, MORE)),
        ("test_one_more_vote_pays_as_long_as_the_products_rule_says", "in_favour_of_votes", at(1, 1.1)),
        ("test_efficiency_of_unequal_votes_against_sandwich_and_fisher_information", "pooled_efficiency", times(1.1)),
    ],
    "test_beyond_models": [
        ("test_information_of_three_classes_symbolically", "FACTOR", times(MORE)),
        ("test_information_of_three_classes_numerically", "relative_efficiency", times(1.1)),
        ("test_estimates_of_three_classes_have_that_covariance", "relative_efficiency", times(1.5)),
        ("test_curvature_of_three_classes", "HALF_OF_THE_STRIP", times(1.1)),
        ("test_curvature_of_three_classes", "PRIOR", lambda right: right[::-1]),
        ("test_limit_of_the_mean_of_three_classes", "HALF_OF_THE_STRIP", times(1.25)),
        ("test_limit_of_the_mean_of_three_classes", "relative_efficiency", times(0.8)),
        ("test_another_mean_symbolically", "multiple", times(MORE)),
        ("test_another_mean_numerically", "multiple", times(1.1)),
        ("test_another_mean_numerically", "uniform_errors", lambda right: lambda tau: right(tau) * (1.02, 1, 0.98)),
        ("test_another_mean_by_simulation", "fit_three_classes", times(1.1)),
        ("test_unequal_numbers_symbolically", "pooled", times(MORE)),
        ("test_unequal_numbers_symbolically", "weighted", times(MORE)),
        ("test_unequal_numbers_numerically", "pooled", times(0.8)),
        ("test_bounds_of_unequal_numbers", "pooled", times(1.1)),
        ("test_gain_of_weights_symbolically", "bound", times(MORE)),
        ("test_gain_of_weights_symbolically", "bound", at(2, MORE)),
        ("test_gain_of_weights_numerically", "bound", at(2, 1.1)),
        ("test_gain_of_weights_numerically", "bound", at(1, 0.9)),
        ("test_asking_on_symbolically", "weight", at(1, MORE)),
        ("test_asking_on_numerically", "weight", lambda right: lambda k, alpha0: right(k, alpha0) ** 0.5),
        ("test_joint_information_symbolically", "information_of_one_item", times(MORE)),
        ("test_joint_information_numerically", "joint_information", times(0.7)),
        ("test_joint_fit_is_never_less_informative", "joint_information", times(0.9)),
    ],
}  # fmt: skip


def test_no_named_test_lacks_a_mutant():
    boxes = yaml.safe_load((ROOT / "book" / "_ext" / "box_tests.yml").read_text("utf8"))
    named = {name for kinds in boxes.values() for kind in ("symbolic", "numeric") for name in kinds[kind]}
    assert {f"tests/{module}.py::{test}" for module, mutants in MUTANTS.items() for test, *_ in mutants} == named


def arguments(test, request):
    """Those of each parametrisation, and the fixtures."""
    choices = []
    for mark in getattr(test, "pytestmark", []):
        names, values = mark.args
        names = names.split(", ")
        choices.append([dict(zip(names, value if len(names) > 1 else [value])) for value in values])
    for chosen in product(*choices):
        found = {name: value for one in chosen for name, value in one.items()}
        yield found | {name: request.getfixturevalue(name) for name in inspect.signature(test).parameters if name not in found}


def call_each(function, given):
    for found in given:
        function(**found)


@pytest.mark.parametrize(
    "module, test, target, mutant",
    [pytest.param(module, *line, id=f"{line[0]}-{line[1]}") for module, lines in MUTANTS.items() for line in lines],
)
def test_a_wrong_formula_is_seen(module, test, target, mutant, request, monkeypatch):
    function = pkgutil.resolve_name(f"{module}:{test}")
    given = arguments(function, request)
    first = next(given)  # fixtures come from the right formula
    monkeypatch.setattr(f"{module}.{target}", mutant(pkgutil.resolve_name(f"{module}:{target}")))
    with pytest.raises(AssertionError):
        call_each(function, chain([first], given))
