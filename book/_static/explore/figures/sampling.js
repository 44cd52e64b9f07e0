"use strict";

{
  const {
    BLUE, ORANGE, number, count,
    rounded, ALPHAS_TO_INFINITY, controls, plot,
  } = explore;

  const DELTA = 2;
  const MOST = 400;
  const PER_DECADE = 10;
  const [LOW, HIGH] = [-3.5, 1]; // of the logarithm, in percentage points
  const BINS = PER_DECADE * (HIGH - LOW);

  const binOf = (value) =>
    Math.min(Math.max(Math.floor(PER_DECADE * (Math.log10(100 * value) - LOW)), 0), BINS - 1);
  const heights = (values) => {
    const found = d3.range(BINS).map(() => 0);
    for (const value of values) found[binOf(value)] += 1;
    return found;
  };

  /* A dot for each value, one above the other, in so many columns for each bin. */
  function stack(values, columns) {
    const found = d3.range(BINS).map(() => 0);
    return values.map((value) => {
      const bin = binOf(value);
      const column = found[bin] % columns;
      const row = (found[bin] - column) / columns;
      found[bin] += 1;
      return {
        x: 10 ** (LOW + (bin + (column + 0.5) / columns) / PER_DECADE),
        y: (row + 0.5) * columns,
      };
    });
  }

  const limits = ({ alpha0, m, n }) => {
    const limit = softlabel.excessLimit(DELTA) / n;
    return [limit, limit / softlabel.relativeEfficiency(m, alpha0)];
  };

  explore.figures.sampling = {
    name: "Excess errors of the rules from each data set",
    controls: {
      alpha0: { ...controls.alpha0, stops: ALPHAS_TO_INFINITY },
      m: controls.m,
      n: { label: "items <i>n</i>", stops: [60, 100, 200, 300, 500, 1000] },
    },
    start: { alpha0: 10, m: 5, n: 500 },
    gather: {
      words: "draw 20 data sets",
      batch: 20,
      most: MOST,
      add: ({ alpha0, m, n }, random, size) =>
        d3.range(size).map(() => softlabel.bothExcesses(random, n, DELTA, m, alpha0)),
    },

    draw(state, width, found) {
      const both = [0, 1].map((k) => found.map((pair) => pair[k]));
      const height = 120; // of a panel, without its margins
      const bin = (width - 82) / BINS;
      // As few columns as let the highest heap fit, of dots as wide as they are high.
      const highest = d3.max(both.flatMap(heights));
      const topOf = (columns) => (columns * columns * height) / bin;
      const columns = d3.range(1, 20).find((c) => highest <= topOf(c) - c);
      const r = (0.45 * bin) / columns;
      const mean = found.length ? softlabel.ratioOfMeans(found) : {};
      return ["first", "second"].map((which, k) => plot(width, {
        height: height + (k ? 72 : 36),
        marginBottom: k ? 44 : 8,
        x: {
          type: "log", domain: [10 ** LOW, 10 ** HIGH],
          label: "excess error, percentage points", axis: k ? "bottom" : null,
          ticks: [0.001, 0.01, 0.1, 1, 10], tickFormat: "~r",
        },
        y: {
          label: k ? "number of rules from votes" : "number of rules from true labels", ticks: 3,
          domain: [0, topOf(columns)], tickFormat: "d",
        },
        marks: [
          Plot.dot(stack(both[k], columns), k
            ? { x: "x", y: "y", r, fill: BLUE }
            : { x: "x", y: "y", r: r - 0.4, stroke: ORANGE, strokeWidth: 1.3 }),
          Plot.ruleX([100 * limits(state)[k]], { strokeDasharray: "5,3", strokeWidth: 2 }),
          Plot.ruleX(found.length ? [100 * mean[which]] : [], { strokeWidth: 2 }),
          Plot.ruleY([0]),
        ],
      }));
    },

    key: [
      ["hollow", "a rule from true labels"],
      ["point", "a rule from votes"],
      ["ink", "mean"],
      ["dash", "its limit by Theorem 2"],
    ],

    say({ alpha0, m, n }, found) {
      const fixed = d3.format(".3f");
      const wanted = number(softlabel.relativeEfficiency(m, alpha0));
      if (!found.length) return `No data set is drawn. The formula promises a ratio of ${wanted}.`;
      const { first, second, ratio, se } = softlabel.ratioOfMeans(found);
      return `${found.length} data sets of ${rounded(n)} items: on average rules from true labels lose `
        + `${fixed(100 * first)} points, rules from ${count(m, "vote")} an item ${fixed(100 * second)}. The `
        + `ratio is ${d3.format(".2f")(ratio)}, with standard error ${d3.format(".2f")(se)}; `
        + `the formula promises ${wanted}.`;
    },
  };
}
