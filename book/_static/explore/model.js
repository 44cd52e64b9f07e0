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

  /* Logarithm of the gamma function, after Lanczos (g = 7, nine terms). */
  const LANCZOS = [
    0.99999999999980993, 676.5203681218851, -1259.1392167224028,
    771.32342877765313, -176.61502916214059, 12.507343278686905,
    -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7,
  ];
  function logGamma(x) {
    const t = x + 6.5;
    const sum = LANCZOS.reduce((s, c, k) => s + c / (x - 1 + k));
    return Math.log(Math.sqrt(2 * Math.PI) * sum) + (x - 0.5) * Math.log(t) - t;
  }

  /* Density of the probability p that the labellers of an item share. */
  function sharedDensity(p, tau, alpha0) {
    const [a, b] = [alpha0 * tau, alpha0 * (1 - tau)];
    const beta = logGamma(a) + logGamma(b) - logGamma(alpha0);
    return Math.exp((a - 1) * Math.log(p) + (b - 1) * Math.log1p(-p) - beta);
  }

  /* What m votes are worth, in true labels. */
  const relativeEfficiency = (m, alpha0) => 1 + (m - 1) / (1 + m / alpha0);

  /* Standard normal distribution function: Marsaglia's series (2004), to
     machine precision for |x| < 7, beyond which it is 0 or 1 to 12 digits. */
  function normalCdf(x) {
    if (Math.abs(x) > 8) return x > 0 ? 1 : 0;
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
     class 1 at y, and the density of all items. */
  const posterior = (y, delta) => expit(delta * y);
  const density = (y, delta) =>
    (normalPdf(y - delta / 2) + normalPdf(y + delta / 2)) / 2;

  /* Probability that a label drawn from the posterior at y is wrong. */
  const wrongAt = (y, delta) => 2 * posterior(y, delta) * posterior(-y, delta);

  const bayesError = (delta) => normalCdf(-delta / 2);

  /* Expected share of wrong labels. The trapezoid rule, whose error is far
     below rounding for a function as smooth as this one. */
  function wrongShare(delta) {
    const end = delta / 2 + 9;
    const n = 600;
    const step = (2 * end) / n;
    let sum = 0;
    for (let i = 0; i <= n; i++) {
      const y = i * step - end;
      sum += wrongAt(y, delta) * density(y, delta);
    }
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

  /* The x of A x = b, by elimination; A is positive definite. */
  function solve(A, b) {
    const rows = A.map((row, i) => [...row, b[i]]);
    const n = rows.length;
    for (let k = 0; k < n; k++) {
      for (let i = 0; i < n; i++) {
        if (i === k) continue;
        const factor = rows[i][k] / rows[k][k];
        for (let j = k; j <= n; j++) rows[i][j] -= factor * rows[k][j];
      }
    }
    return rows.map((row, k) => row[n] / row[k]);
  }

  /* Fisher information of logistic regression, for one true label: two normal
     classes with two features, by the trapezoid rule over the plane. */
  function fisherInformation({ mean1, mean2, cov: [[a, b], [, d]], prior1 }) {
    const det = a * d - b * b;
    const part = (y1, y2, [m1, m2], prior) => {
      const [u, v] = [y1 - m1, y2 - m2];
      const square = (d * u * u - 2 * b * u * v + a * v * v) / det;
      return (prior * Math.exp(-square / 2)) / (2 * Math.PI * Math.sqrt(det));
    };
    const step = 0.15;
    const range = (k, variance) => {
      const low = Math.min(mean1[k], mean2[k]) - 9 * Math.sqrt(variance);
      const high = Math.max(mean1[k], mean2[k]) + 9 * Math.sqrt(variance);
      const n = Math.ceil((high - low) / step);
      return Array.from({ length: n }, (_, i) => low + i * step);
    };
    const total = [0, 1, 2].map(() => [0, 0, 0]);
    const second = range(1, d);
    for (const y1 of range(0, a)) {
      for (const y2 of second) {
        const f1 = part(y1, y2, mean1, prior1);
        const f2 = part(y1, y2, mean2, 1 - prior1);
        const weight = f1 + f2 > 0 ? ((f1 * f2) / (f1 + f2)) * step * step : 0;
        const x = [1, y1, y2];
        for (let i = 0; i < 3; i++) {
          for (let j = 0; j < 3; j++) total[i][j] += weight * x[i] * x[j];
        }
      }
    }
    return total;
  }

  /* Covariance of the two slopes from n items, each of which carries `factor`
     times the information of a true label. */
  function slopeCovariance(information, factor, n) {
    const inverse = [0, 1, 2].map((k) => solve(information, [0, 1, 2].map((i) => +(i === k))));
    return [1, 2].map((i) => [1, 2].map((j) => inverse[i][j] / (factor * n)));
  }

  /* A lower triangular root of a 2 x 2 covariance matrix, applied to points. */
  function spread([[a, b], [, d]], points) {
    const r = Math.sqrt(a);
    const s = Math.sqrt(d - (b * b) / a);
    return points.map(([u, v]) => [r * u, (b / r) * u + s * v]);
  }

  /* Two normal classes at +-delta / 2, class 1 with the prior probability
     prior1: coefficients of its posterior, and the error rate of a rule. */
  const trueLine = (delta, prior1) => [Math.log(prior1 / (1 - prior1)), delta];
  function lineError([b0, b1], delta, prior1) {
    const miss = (side) => normalCdf((side * b0 - (b1 * delta) / 2) / Math.abs(b1));
    return prior1 * miss(-1) + (1 - prior1) * miss(1);
  }

  /* Probability of a label "class 1" where true labels are flipped, those of
     class 1 with probability e1, those of class 2 with e2. */
  const flipped = (tau, e1, e2) => e2 + (1 - e1 - e2) * tau;

  /* The line to which logistic regression on such labels tends: Newton's
     method on the mean score, by the trapezoid rule. */
  function flippedLine(delta, prior1, e1, e2) {
    const best = trueLine(delta, prior1);
    const end = 9 + delta / 2;
    const n = 600;
    const nodes = Array.from({ length: n + 1 }, (_, i) => {
      const y = (2 * end * i) / n - end;
      const f = prior1 * normalPdf(y - delta / 2) + (1 - prior1) * normalPdf(y + delta / 2);
      return { y, f, q: flipped(expit(best[0] + best[1] * y), e1, e2) };
    });
    let b = [0, 0];
    for (let round = 0; round < 50; round++) {
      let [g0, g1, h00, h01, h11] = [0, 0, 0, 0, 0];
      for (const { y, f, q } of nodes) {
        const t = expit(b[0] + b[1] * y);
        const w = f * t * (1 - t);
        g0 += f * (q - t);
        g1 += f * (q - t) * y;
        h00 += w;
        h01 += w * y;
        h11 += w * y * y;
      }
      const step = solve([[h00, h01], [h01, h11]], [g0, g1]);
      b = [b[0] + step[0], b[1] + step[1]];
      if (Math.hypot(...step) < 1e-12) break;
    }
    return b;
  }

  /* Probability that the majority of m votes is positive; a coin settles ties. */
  function majority(m, tau, alpha0) {
    let sum = m % 2 ? 0 : votePmf(m / 2, m, tau, alpha0) / 2;
    for (let k = Math.floor(m / 2) + 1; k <= m; k++) sum += votePmf(k, m, tau, alpha0);
    return sum;
  }

  /* The limit of a fit to a response with mean q(eta), where q(-eta) = 1 - q(eta),
     and variance q (1 - q) / votes; equal priors. Its slopes are `stretch` times
     the true ones, by Newton's method, and it is worth `worth` true labels: sums
     by the trapezoid rule over one half of a symmetric whole. */
  function responseLimit(q, votes, delta) {
    const n = 400;
    const nodes = Array.from({ length: n + 1 }, (_, i) => {
      const y = ((9 + delta / 2) * i) / n;
      const eta = delta * y;
      return { eta, f: density(y, delta) * (i ? 1 : 0.5), q: q(eta), w0: wrongAt(y, delta) / 2 };
    });
    const mean = (value) => nodes.reduce((sum, node) => sum + node.f * value(node), 0);
    let stretch = 0;
    for (let turn = 0; turn < 50; turn++) {
      const score = mean((d) => d.eta * (d.q - expit(stretch * d.eta)));
      const slope = mean((d) => d.eta ** 2 * expit(stretch * d.eta) * expit(-stretch * d.eta));
      stretch += score / slope;
      if (Math.abs(score / slope) < 1e-12) break;
    }
    const h = mean((d) => expit(stretch * d.eta) * expit(-stretch * d.eta));
    const g = mean((d) => (d.q * (1 - d.q)) / votes + (d.q - expit(stretch * d.eta)) ** 2);
    return { stretch, worth: (stretch * h) ** 2 / (mean((d) => d.w0) * g) };
  }

  /* Worth of the majority of m votes as a label. */
  const majorityWorth = (m, alpha0, delta) =>
    responseLimit((eta) => majority(m, expit(eta), alpha0), 1, delta).worth;

  /* Worth to the rule of m votes by labellers who multiply their log-odds by s. */
  const temperedWorth = (s, delta, m, alpha0) =>
    responseLimit((eta) => expit(s * eta), relativeEfficiency(m, alpha0), delta).worth;

  /* Numbers between 0 and 1 that look random, the same ones for each seed
     (the generator mulberry32), and pairs of normal ones made of them. */
  function generator(seed) {
    let state = seed;
    return () => {
      state = (state + 0x6d2b79f5) | 0;
      let t = Math.imul(state ^ (state >>> 15), 1 | state);
      t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
      return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
    };
  }
  function normalPair(random) {
    const radius = Math.sqrt(-2 * Math.log(1 - random()));
    const angle = 2 * Math.PI * random();
    return [radius * Math.cos(angle), radius * Math.sin(angle)];
  }

  /* n items with their truth, and m votes on each, drawn from Pólya's urn. */
  function draw(random, n, delta, m, alpha0) {
    const repeat = 1 / alpha0;
    return Array.from({ length: n }, () => {
      const truth = random() < 0.5 ? 1 : 0;
      const [u, y2] = normalPair(random);
      const y1 = (truth - 0.5) * delta + u;
      const tau = posterior(y1, delta);
      let votes = 0;
      for (let i = 0; i < m; i++) {
        if (random() * (1 + i * repeat) < tau + votes * repeat) votes += 1;
      }
      return { y1, y2, truth, votes };
    });
  }

  /* Logistic regression of count(item) positive votes out of m, by Newton's
     method. */
  function fit(items, count, m) {
    let b = [0, 0, 0];
    for (let round = 0; round < 30; round++) {
      const g = [0, 0, 0];
      const h = [0, 1, 2].map(() => [0, 0, 0]);
      for (const item of items) {
        const x = [1, item.y1, item.y2];
        const t = expit(b[0] + b[1] * x[1] + b[2] * x[2]);
        const w = m * t * (1 - t);
        const rest = count(item) - m * t;
        for (let i = 0; i < 3; i++) {
          g[i] += rest * x[i];
          for (let j = 0; j < 3; j++) h[i][j] += w * x[i] * x[j];
        }
      }
      const step = solve(h, g);
      b = b.map((value, i) => value + step[i]);
      if (Math.hypot(...step) < 1e-9) break;
    }
    return b;
  }

  /* What the rule b errs more than the best, and the limit of n times the mean
     of it for true labels (Theorem 2; equal priors, two features). */
  function excess([b0, b1, b2], delta) {
    const size = Math.hypot(b1, b2);
    const miss = (side) => normalCdf((side * b0 - (b1 * delta) / 2) / size);
    return (miss(-1) + miss(1)) / 2 - bayesError(delta);
  }
  const excessLimit = (delta) => normalPdf(delta / 2) / delta / wrongShare(delta);

  /* The excess errors of the two rules from one data set. */
  function bothExcesses(random, n, delta, m, alpha0) {
    const items = draw(random, n, delta, m, alpha0);
    return [
      excess(fit(items, (d) => d.truth, 1), delta),
      excess(fit(items, (d) => d.votes, m), delta),
    ];
  }

  /* Ratio of the means of pairs, and its standard error by linearisation. */
  function ratioOfMeans(pairs) {
    const n = pairs.length;
    const mean = (f) => pairs.reduce((sum, pair) => sum + f(pair), 0) / n;
    const [first, second] = [mean((p) => p[0]), mean((p) => p[1])];
    const ratio = first / second;
    const square = mean((p) => (p[0] - ratio * p[1]) ** 2);
    return { first, second, ratio, se: Math.sqrt(square / (n - 1)) / second };
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
    votePmf, sharedDensity, relativeEfficiency, normalCdf, posterior, density,
    wrongAt, bayesError, wrongShare, items, fisherInformation, slopeCovariance,
    spread, solve, trueLine, lineError, flipped, flippedLine,
    majority, responseLimit, majorityWorth, temperedWorth, generator,
    normalPair, draw, fit, excess, excessLimit, bothExcesses, ratioOfMeans,
    worth, bestRoot, bestWhole, design, splitWorth, split,
  };
})();
