"use strict";

{
  const {
    INK, BLUE, ORANGE, PAPER, number,
    percent, labellers, ALPHAS_TO_INFINITY, controls, plot,
  } = explore;

  explore.figures.votes = {
    name: "Density of the probability that labellers share, and of the number of positive votes",
    controls: {
      alpha0: { ...controls.alpha0, stops: ALPHAS_TO_INFINITY },
      m: controls.m,
      tau: controls.tau,
    },
    start: { alpha0: 2, m: 7, tau: 0.7 },

    draw({ alpha0, m, tau }, width) {
      const votes = d3.range(m + 1).map((k) => ({
        k,
        p: softlabel.votePmf(k, m, tau, alpha0),
        alone: softlabel.votePmf(k, m, tau, Infinity),
      }));
      const top = d3.max(votes, (d) => Math.max(d.p, d.alone));
      const ps = d3.range(2, 999).map((i) => i / 1000);
      const density = (p) => softlabel.sharedDensity(p, tau, alpha0);
      // Near 0 and 1 it may have no end; the axis ends above what lies between.
      const highest = alpha0 === Infinity ? 5 : d3.max(ps.slice(50, -50), density);
      const end = [5, 10, 20, 50].find((h) => highest <= h);
      return [
        plot(width, {
          height: 160,
          x: { label: "probability p of a positive vote", domain: [0, 1], ticks: 6 },
          y: { label: "density of p", domain: [0, end], ticks: 3 },
          marks: [
            Plot.ruleX([tau], { stroke: INK, strokeDasharray: "5,3" }),
            alpha0 === Infinity
              ? Plot.ruleX([tau], { stroke: BLUE, strokeWidth: 3 })
              : Plot.areaY(ps, {
                x: ps, y: (p) => Math.min(density(p), end),
                fill: BLUE, fillOpacity: 0.3, stroke: BLUE, strokeWidth: 2,
              }),
            Plot.ruleY([0]),
          ],
        }),
        plot(width, {
          height: 230,
          x: {
            label: "positive votes",
            domain: d3.range(m + 1),
            ticks: d3.range(0, m + 1, m > 12 ? 5 : 1),
          },
          y: {
            label: "probability",
            // Few heights, so that the axis stays while a slider moves.
            domain: [0, [0.2, 0.4, 0.6, 0.8, 1].find((h) => top <= h) ?? 1],
            ticks: 5,
          },
          marks: [
            Plot.barY(votes, { x: "k", y: "p", fill: BLUE, fillOpacity: 0.75 }),
            Plot.dot(votes, {
              x: "k", y: "alone", r: 4, stroke: ORANGE, strokeWidth: 2, fill: PAPER,
            }),
            Plot.ruleY([0]),
          ],
        }),
      ];
    },

    key: [
      ["bar", "votes of this item's labellers"],
      ["ring", "independent votes, <i>α</i>₀ = ∞"],
      ["dash", "posterior"],
    ],

    say({ alpha0, m, tau }) {
      if (m === 1) return "One labeller has nobody to agree with: α₀ does not matter.";
      const agree = (a) =>
        softlabel.votePmf(0, m, tau, a) + softlabel.votePmf(m, m, tau, a);
      return `${labellers(m)} at α₀ = ${number(alpha0)} and τ₁ = ${number(tau)} `
        + `are unanimous on ${percent(agree(alpha0))} of such items; if they `
        + `voted independently, on ${percent(agree(Infinity))}. Either way the `
        + `mean is ${number(m * tau)} positive votes.`;
    },
  };
}
