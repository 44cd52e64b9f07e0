"use strict";

{
  const {
    INK, BLUE, ORANGE, PAPER, number,
    rounded, labellers, ALPHAS, UP_TO_20, controls, plot,
  } = explore;

  // Where the paper has simulated, and where it has data.
  const TABLE = [5, 10, 50].flatMap((m) => [1, 10, 100, 1000].map((alpha0) => [m, alpha0]));
  const CLINICIANS = [7, 5.47];

  explore.figures.worth = {
    name: "Worth of the votes over m and α₀",
    controls: {
      alpha0: { ...controls.alpha0, stops: [...ALPHAS, 200, 300, 500, 1000] },
      m: {
        ...controls.m,
        stops: [...UP_TO_20, 25, 30, 35, 40, 50, 60, 70, 80, 90, 100],
      },
    },
    start: { alpha0: 3, m: 20 },
    surface: { x: "m", y: "alpha0" },

    draw({ alpha0, m }, width) {
      const levels = [1.1, 1.5, 2, 3, 5, 10, 20, 50];
      const worth = softlabel.relativeEfficiency(m, alpha0);
      return plot(width, {
        height: Math.min(400, width),
        x: {
          type: "log", domain: [1, 100], label: "labellers m",
          ticks: [1, 2, 5, 10, 20, 50, 100], tickFormat: "d",
        },
        y: {
          type: "log", domain: [0.1, 1000], label: "overdispersion parameter α₀",
          ticks: [0.1, 1, 10, 100, 1000], tickFormat: "~r",
        },
        marks: [
          // The regions above the levels lie on one another and add up.
          Plot.contour({
            value: softlabel.relativeEfficiency,
            x1: 1, x2: 100, y1: 0.1, y2: 1000,
            thresholds: levels, pixelSize: 4,
            fill: BLUE, fillOpacity: 0.1, stroke: BLUE, strokeWidth: 1,
          }),
          Plot.line([[1, 1], [100, 100]], { stroke: INK, strokeDasharray: "6,4" }),
          Plot.text([[1, 1]], {
            text: ["m = α₀"], dx: 6, dy: -34, textAnchor: "start",
          }),
          // Where each contour leaves the picture on the right.
          Plot.text(levels, {
            x: 100, y: (c) => (100 * (c - 1)) / (100 - c),
            text: number, dx: 5, textAnchor: "start",
          }),
          Plot.dot(TABLE, { r: 4, stroke: INK, strokeWidth: 1.5, fill: PAPER }),
          Plot.dot([CLINICIANS], { r: 7, symbol: "star", fill: INK }),
          Plot.ruleX([m], { stroke: ORANGE }),
          Plot.ruleY([alpha0], { stroke: ORANGE }),
          Plot.dot([[m, alpha0]], { r: 6, fill: ORANGE, stroke: PAPER, strokeWidth: 2 }),
          Plot.text([[m, alpha0]], {
            text: [number(worth)],
            dx: m > 30 ? -10 : 10, dy: alpha0 > 300 ? 13 : -13,
            textAnchor: m > 30 ? "end" : "start",
            fontSize: 17, fontWeight: 600, fill: INK, stroke: PAPER, strokeWidth: 5,
          }),
        ],
      });
    },

    key: [
      ["line", "equal worth, in true labels"],
      ["dot", "where the sliders stand"],
      ["circle", "cells of Table 1"],
      ["star", "seven clinicians"],
    ],

    say({ alpha0, m }) {
      const worth = number(softlabel.relativeEfficiency(m, alpha0));
      return `${labellers(m)} at α₀ = ${number(alpha0)} ${m === 1 ? "is" : "are"} `
        + `worth ${worth} true label${worth === "1" ? "" : "s"}. `
        + `However many there are, they stay below ${alpha0 < 99 ? number(1 + alpha0) : rounded(1 + alpha0)}.`;
    },
  };
}
