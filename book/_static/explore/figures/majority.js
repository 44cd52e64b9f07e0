"use strict";

{
  const {
    INK, BLUE, ORANGE, PAPER, number,
    percent, labellers, ALPHAS_TO_INFINITY, controls, plot,
  } = explore;

  const MS = d3.range(1, 26);
  const pooled = softlabel.relativeEfficiency;

  explore.figures.majority = {
    name: "Worth of pooled votes and of their majority over m",
    controls: {
      alpha0: { ...controls.alpha0, stops: ALPHAS_TO_INFINITY },
      m: { ...controls.m, stops: MS },
      delta: { ...controls.delta, stops: d3.range(5, 41).map((i) => i / 10) },
    },
    start: { alpha0: 10, m: 9, delta: 2 },

    draw({ alpha0, m, delta }, width) {
      const fine = d3.range(0, 101).map((i) => 25 ** (i / 100));
      const all = (k) => pooled(k, alpha0);
      const one = (k) => softlabel.majorityWorth(k, alpha0, delta);
      const both = [all(m), one(m)];
      const label = (k, dy) => Plot.text([[m, both[k]]], {
        text: [number(both[k])], dy, dx: m === 1 ? 12 : 0, fontSize: 17, fontWeight: 600,
        fill: INK, stroke: PAPER, strokeWidth: 5,
      });
      return plot(width, {
        height: 360,
        x: {
          type: "log", domain: [1, 25], label: "labellers m", ticks: [1, 2, 5, 10, 20], tickFormat: "d",
        },
        y: {
          type: "log", domain: [0.7, 30], label: "worth in true labels",
          ticks: [1, 2, 5, 10, 20], tickFormat: "d",
        },
        marks: [
          Plot.ruleX([m], { y1: both[0], y2: both[1], stroke: INK, strokeWidth: 1.5 }),
          Plot.line(fine, {
            x: fine, y: (k) => Math.sqrt(all(k)), stroke: INK, strokeWidth: 1.5, strokeDasharray: "2,4",
          }),
          Plot.line(fine, {
            x: fine, y: all, stroke: ORANGE, strokeWidth: 2.5, strokeDasharray: "6,4",
          }),
          Plot.dot(MS, { x: MS, y: one, r: 3.5, fill: BLUE }),
          Plot.dot([[m, both[0]]], { r: 6, fill: ORANGE, stroke: PAPER, strokeWidth: 2 }),
          Plot.dot([[m, both[1]]], { r: 6, fill: BLUE, stroke: PAPER, strokeWidth: 2 }),
          label(0, -19),
          label(1, 19),
        ],
      });
    },

    key: [
      ["dash2", "votes pooled"],
      ["point", "their majority"],
      ["dotted", "square root of the pooled worth"],
    ],

    say({ alpha0, m, delta }) {
      if (m === 1) return "One vote is its own majority: there is nothing to throw away.";
      const [all, one] = [pooled(m, alpha0), softlabel.majorityWorth(m, alpha0, delta)];
      return `${labellers(m)} at α₀ = ${number(alpha0)} and Δ = ${number(delta)}: pooled, their votes are worth `
        + `${number(all)} true labels, their majority ${number(one)}. `
        + `The majority throws away ${number(all - one)} of them, which is ${percent(1 - one / all)}.`
        + (m % 2 ? "" : " It would be worth the same without the last labeller.");
    },
  };
}
