"use strict";

{
  const { INK, BLUE, ORANGE, PAPER, count, rounded, controls, plot } = explore;

  explore.figures.split = {
    name: "What a budget is worth, by the number of true labels bought",
    controls: {
      alpha0: controls.alpha0,
      price: controls.price,
      truth: {
        label: "price of a true label, in votes",
        stops: [1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200],
      },
      ceiling: {
        label: "true labels that votes never reach",
        stops: [10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500, 700, 1000, 3000, Infinity],
      },
      budget: {
        label: "budget, in votes",
        stops: [300, 500, 700, 1000, 1500, 2000, 3000, 5000, 7000, 10000],
      },
    },
    start: { alpha0: 5, price: 10, truth: 10, ceiling: 100, budget: 1000 },

    draw({ alpha0, price, truth, ceiling, budget }, width) {
      const best = softlabel.split(budget, alpha0, price, truth, ceiling);
      const worth = (k) => softlabel.splitWorth(k, budget, alpha0, price, truth, ceiling);
      const end = budget / (price + truth);
      const ks = d3.range(0, 201).map((i) => (end * i) / 200);
      const right = best.k > end / 2;
      return plot(width, {
        height: 300,
        x: { label: "true labels bought", domain: [0, end], ticks: 5 },
        y: {
          label: "worth, true labels", ticks: 5,
          domain: [0, 1.2 * Math.max(best.worth, d3.max(ks, worth))],
        },
        marks: [
          Plot.areaY(ks, { x: (k) => k, y1: (k) => k, y2: worth, fill: BLUE, fillOpacity: 0.2 }),
          Plot.line([[0, 0], [end, end]], { stroke: INK, strokeDasharray: "2,4" }),
          Plot.line(ks, { x: (k) => k, y: worth, stroke: BLUE, strokeWidth: 2 }),
          Plot.ruleY([0]),
          Plot.ruleX([best.k], { y1: 0, y2: best.worth, stroke: ORANGE }),
          Plot.dot([best], {
            x: "k", y: "worth", r: 6, fill: ORANGE, stroke: PAPER, strokeWidth: 2,
          }),
          Plot.text([best], {
            x: "k", y: "worth", text: [rounded(best.worth)], dy: -16,
            textAnchor: right ? "end" : "start", fontSize: 15, fontWeight: 600,
          }),
        ],
      });
    },

    key: [
      ["line", "votes and true labels"],
      ["band", "what the votes add"],
      ["dot", "the best plan"],
    ],

    say({ alpha0, price, truth, ceiling, budget }) {
      const best = softlabel.split(budget, alpha0, price, truth, ceiling);
      const promised = softlabel.split(budget, alpha0, price, truth, Infinity).allVotes;
      const buy = [
        best.n ? `${count(best.n, "item")} with ${count(best.m, "vote")} each` : "",
        best.k ? count(best.k, "true label") : "",
      ].filter(Boolean).join(" and ");
      return `A budget of ${rounded(budget)} votes buys ${buy}, worth ${rounded(best.worth)} true `
        + `labels. Votes alone are worth ${rounded(best.allVotes)}, true labels alone `
        + `${rounded(best.allTruth)}. `
        + (ceiling === Infinity
          ? "Here the mean of the votes is taken as right."
          : `If the mean of the votes were right, votes alone would be worth ${rounded(promised)}.`);
    },
  };
}
