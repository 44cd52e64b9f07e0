/* The formulas behind the figures, as in the Python package softlabel.
   tests/test_explore.py holds each of them against it. */

"use strict";

var softlabel = (function () {
  const expit = (t) => 1 / (1 + Math.exp(-t));

  /* Dirichlet-multinomial probability of k positive votes among m. Written in
     1 / alpha0, so that alpha0 = Infinity is the multinomial. */
  function votePmf(k, m, tau, alpha0) {
    const omega = 1 / alpha0;
    let p = 1;
    for (let i = 0; i < m; i++) {
      p *= i < k
        ? ((tau + i * omega) * (m - i)) / (i + 1)
        : 1 - tau + (i - k) * omega;
      p /= 1 + i * omega;
    }
    return p;
  }

  /* What m votes are worth, in true labels. */
  const relativeEfficiency = (m, alpha0) => 1 + (m - 1) / (1 + m / alpha0);

  /* Standard normal distribution function: Marsaglia's series (2004), to
     machine precision for |x| < 7. */
  function normalCdf(x) {
    let term = x;
    let sum = x;
    for (let k = 3; sum !== sum + term; k += 2) {
      term *= (x * x) / k;
      sum += term;
    }
    return 0.5 + normalPdf(x) * sum;
  }

  const normalPdf = (x) => Math.exp((-x * x) / 2) / Math.sqrt(2 * Math.PI);

  /* Two normal classes at +-delta / 2 with equal priors: the posterior of
     class 1 at y, the density of all items, and the two together. */
  const posterior = (y, delta) => expit(delta * y);
  const density = (y, delta) =>
    (normalPdf(y - delta / 2) + normalPdf(y + delta / 2)) / 2;
  const wrongDensity = (y, delta) =>
    2 * posterior(y, delta) * posterior(-y, delta) * density(y, delta);

  const bayesError = (delta) => normalCdf(-delta / 2);

  /* Expected share of wrong labels. The trapezoid rule, whose error is far
     below rounding for a function as smooth as this one. */
  function wrongShare(delta) {
    const end = delta / 2 + 9;
    const n = 600;
    const step = (2 * end) / n;
    let sum = 0;
    for (let i = 0; i <= n; i++) sum += wrongDensity(i * step - end, delta);
    return sum * step;
  }

  /* Items with labels drawn from the posterior. The numbers are not random
     but evenly spread (Richtmyer's sequence), and the same in every picture:
     as delta moves, the items move with it. */
  function items(n, delta) {
    return Array.from({ length: n }, (_, j) => {
      const [a, b, c, d] = [2, 3, 5, 7].map((p) => ((j + 1) * Math.sqrt(p)) % 1);
      const radius = Math.sqrt(-2 * Math.log(b));
      const truth = a < 0.5 ? 1 : 0;
      const y1 = (truth - 0.5) * delta + radius * Math.cos(2 * Math.PI * c);
      const y2 = radius * Math.sin(2 * Math.PI * c);
      const label = d < posterior(y1, delta) ? 1 : 0;
      return { y1, y2, truth, label };
    });
  }

  /* True labels that a budget is worth. An item costs `price`, a vote 1. */
  const worth = (budget, m, alpha0, price) =>
    (budget / (price + m)) * relativeEfficiency(m, alpha0);

  /* The best number of labellers an item, and the best whole number. */
  const bestRoot = (alpha0, price) => Math.sqrt(alpha0 * price);
  function bestWhole(alpha0, price) {
    const m = Math.max(1, Math.floor(bestRoot(alpha0, price)));
    const cost = (k) => k + (alpha0 * price) / k;
    return cost(m + 1) < cost(m) ? m + 1 : m;
  }

  /* The better of two plans: of the most worth, then of the least cost. */
  function better(found, best) {
    const gain = found.worth / best.worth - 1;
    return gain > 1e-12 || (gain > -1e-12 && found.cost < best.cost) ? found : best;
  }

  /* 33 pays for 30 at 1.1, whatever the binary fractions say. */
  const affordable = (budget, price) => Math.floor((budget * (1 + 4e-15)) / price);

  /* The best design in whole items, from `least` to `most`, and votes, as
     design_votes finds it; of equal ones that with the fewest votes an item. */
  function design(budget, alpha0, price, least = 1, most = Infinity) {
    let best = { n: 0, m: 0, worth: 0, cost: 0 };
    for (let m = 1; m <= budget; m++) {
      const n = Math.min(most, affordable(budget, price + m));
      if (n < least) break;
      const worth = n * relativeEfficiency(m, alpha0);
      best = better({ n, m, worth, cost: n * (price + m) }, best);
    }
    return best;
  }

  /* What k true labels and the votes that the rest of a budget buys are worth,
     if no votes exceed `ceiling` true labels. A true label costs `truth` beside
     its item, a vote 1; true labels are on items with votes first. */
  const together = (k, votes, ceiling) => k + votes / (1 + votes / ceiling);
  function splitWorth(k, budget, alpha0, price, truth, ceiling) {
    const m = Math.max(1, bestRoot(alpha0, price));
    const rest = budget - k * truth;
    const free = rest - k * price; // where true labels have paid for all items
    const votes = rest >= k * (price + m)
      ? worth(rest, m, alpha0, price)
      : free > k ? k * relativeEfficiency(free / k, alpha0) : free;
    return together(k, votes, ceiling);
  }

  /* The best split in whole numbers, as split_budget finds it. In fractions the
     worth is a concave function of k and at least as large: the search goes
     from its top to either side, until it falls below the best plan found. */
  function split(budget, alpha0, price, truth, ceiling) {
    const last = affordable(budget, price + truth);
    const bound = (k) => splitWorth(k, budget, alpha0, price, truth, ceiling);
    let [low, high] = [0, last];
    while (low < high) {
      const k = Math.floor((low + high) / 2);
      if (bound(k + 1) > bound(k)) low = k + 1;
      else high = k;
    }
    const plan = (k) => {
      const paid = k * (price + truth);
      let best = { n: 0, m: 0, k, worth: k, cost: paid };
      const add = (spent, votes) => {
        const all = together(k, votes.worth, ceiling);
        if (votes.n) best = better({ ...votes, k, worth: all, cost: spent + votes.cost }, best);
      };
      add(k * truth, design(budget - k * truth, alpha0, price, Math.max(k, 1)));
      add(paid, design(budget - paid, alpha0, 0, 1, k));
      return best;
    };
    let best = plan(low);
    for (const step of [1, -1]) {
      for (let k = low + step; k >= 0 && k <= last; k += step) {
        if (bound(k) < best.worth * (1 - 1e-12)) break;
        best = better(plan(k), best);
      }
    }
    return { ...best, allVotes: plan(0).worth, allTruth: last };
  }

  return {
    votePmf, relativeEfficiency, normalCdf, posterior, density, wrongDensity,
    bayesError, wrongShare, items, worth, bestRoot, bestWhole, design,
    splitWorth, split,
  };
})();
