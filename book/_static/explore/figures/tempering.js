"use strict";

{
  const {
    INK, BLUE, ORANGE, PAPER, number, percent, ALPHAS_TO_INFINITY, controls, plot,
  } = explore;

  const SURE = 0.8; // where truth and fit are compared
  const TIMES = [
    0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.1, 1.25, 1.5, 1.75, 2, 2.5, 3, 3.5, 4,
  ];
  const sure = (s) => softlabel.posterior(Math.log(SURE / (1 - SURE)), s);

  explore.figures.tempering = {
    name: "Curve of votes with multiplied log-odds, and what they are worth to the rule",
    controls: {
      s: { label: "log-odds are multiplied by <i>s</i>", stops: TIMES },
      delta: { ...controls.delta, stops: d3.range(5, 61).map((i) => i / 10) },
      m: controls.m,
      alpha0: { ...controls.alpha0, stops: ALPHAS_TO_INFINITY },
    },
    start: { s: 2, delta: 2, m: 5, alpha0: 10 },

    draw({ s, delta, m, alpha0 }, width) {
      const ys = d3.range(-5, 5.001, 0.05);
      const at = Math.log(SURE / (1 - SURE)) / delta;
      const fine = d3.range(-40, 41).map((i) => 4 ** (i / 40));
      const worth = (t) => softlabel.temperedWorth(t, delta, m, alpha0);
      const top = worth(1) <= 4 ? 50 : 400;
      const [textAnchor, dy] = s < 0.5 ? ["start", 20] : ["middle", -18];
      return [
        plot(width, {
          height: 240,
          x: { label: "feature y", domain: [-5, 5], ticks: d3.range(-4, 5, 2) },
          y: { label: "probability of class 1, of a vote for it", domain: [0, 1], ticks: [0, 0.5, 1] },
          marks: [
            Plot.ruleY([0.5], { strokeOpacity: 0.3 }),
            Plot.ruleX([0], { strokeOpacity: 0.3 }),
            Plot.ruleX([at], { y1: SURE, y2: sure(s), stroke: INK, strokeWidth: 1.5 }),
            Plot.line(ys, {
              x: ys, y: (y) => softlabel.posterior(y, delta), stroke: BLUE, strokeWidth: 2.5,
            }),
            Plot.line(ys, {
              x: ys, y: (y) => softlabel.posterior(y, s * delta), stroke: ORANGE,
              strokeWidth: 2.5, strokeDasharray: "6,4",
            }),
            Plot.dot([[at, SURE]], { r: 5, fill: BLUE, stroke: PAPER, strokeWidth: 1.5 }),
            Plot.dot([[at, sure(s)]], { r: 5, fill: ORANGE, stroke: PAPER, strokeWidth: 1.5 }),
          ],
        }),
        plot(width, {
          height: 290,
          x: {
            type: "log", domain: [0.25, 4], label: "s", ticks: [0.25, 0.5, 1, 2, 4], tickFormat: "~r",
          },
          y: {
            type: "log", domain: [0.02, top], label: "worth in true labels",
            ticks: [0.1, 1, 10, 100].filter((t) => t <= top), tickFormat: "~r",
          },
          marks: [
            Plot.ruleY([1], { stroke: INK, strokeDasharray: "2,4", strokeWidth: 1.5 }),
            Plot.line(fine, { x: fine, y: worth, stroke: INK, strokeWidth: 2 }),
            Plot.dot([[1, worth(1)]], { r: 5, fill: PAPER, stroke: INK, strokeWidth: 2 }),
            Plot.dot([[s, worth(s)]], { r: 6, fill: ORANGE, stroke: PAPER, strokeWidth: 2 }),
            Plot.text([[s, worth(s)]], {
              text: [number(worth(s))], textAnchor, dy,
              fontSize: 17, fontWeight: 600, fill: INK, stroke: PAPER, strokeWidth: 5,
            }),
          ],
        }),
      ];
    },

    key: [
      ["line", "posterior"],
      ["dash2", "votes, and the fit to them"],
      ["ink", "worth of the votes to the rule"],
      ["circle", "honest votes"],
      ["dotted", "a true label"],
    ],

    say({ s, delta, m, alpha0 }) {
      const votes = (what) => `${m} ${what} vote${m === 1 ? " is" : "s are"}`;
      const labels = (x) => `${number(x)} true label${number(x) === "1" ? "" : "s"}`;
      const honest = softlabel.relativeEfficiency(m, alpha0);
      if (s === 1) {
        return `Honest labellers: the slope tends to the true one, ${number(delta)}. `
          + `To the rule ${votes("honest")} worth ${labels(honest)}.`;
      }
      return `The slope tends to ${number(s)} times the true one, ${number(s * delta)} in place of ${number(delta)}: `
        + `where the truth is ${percent(SURE)}, the fit tends to ${percent(sure(s))}. The boundary stays. `
        + `To the rule ${votes("such")} worth ${labels(softlabel.temperedWorth(s, delta, m, alpha0))}, `
        + `${m} honest one${m === 1 ? "" : "s"} ${number(honest)}.`;
    },
  };
}
