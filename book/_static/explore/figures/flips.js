"use strict";

{
  const { INK, BLUE, ORANGE, PAPER, number, plot } = explore;

  const DISTANCE = d3.range(5, 41).map((i) => i / 10);
  const percents = d3.format(".0%");
  const two = d3.format(".2f");
  const cut = ([b0, b1]) => -b0 / b1;

  explore.figures.flips = {
    name: "Fitted curve and boundary from flipped labels and from posterior labels",
    controls: {
      e1: {
        label: "flips in class 1", show: percents, stops: d3.range(0, 41, 2).map((i) => i / 100),
      },
      e2: {
        label: "flips in class 2", show: percents, stops: d3.range(0, 41, 2).map((i) => i / 100),
      },
      prior1: {
        label: "prior of class 1", show: percents, stops: d3.range(5, 96, 5).map((i) => i / 100),
      },
      delta: { label: "distance of the classes Δ", stops: DISTANCE },
    },
    start: { e1: 0.3, e2: 0.3, prior1: 0.5, delta: 2 },

    draw({ e1, e2, prior1, delta }, width) {
      const best = softlabel.trueLine(delta, prior1);
      const fit = softlabel.flippedLine(delta, prior1, e1, e2);
      const ys = d3.range(-5, 5.001, 0.05);
      const curve = ([b0, b1]) => (y) => softlabel.posterior(b0 + b1 * y, 1);
      const tau = curve(best);
      const cuts = [best, fit].map(cut).map((y) => (Math.abs(y) < 5 ? [[y, 0.5]] : []));
      return plot(width, {
        height: 300,
        x: { label: "feature y", domain: [-5, 5], ticks: d3.range(-4, 5, 2) },
        y: { label: "probability of label 1", domain: [0, 1], ticks: [0, 0.5, 1] },
        marks: [
          Plot.ruleY([0.5], { strokeOpacity: 0.3 }),
          Plot.ruleX(cuts[0], { x: "0", stroke: BLUE, strokeWidth: 1.5, y1: 0, y2: 1 }),
          Plot.ruleX(cuts[1], {
            x: "0", stroke: ORANGE, strokeWidth: 1.5, strokeDasharray: "6,4", y1: 0, y2: 1,
          }),
          Plot.line(ys, {
            x: ys, y: (y) => softlabel.flipped(tau(y), e1, e2), stroke: INK,
            strokeWidth: 1.5, strokeDasharray: "2,4",
          }),
          Plot.line(ys, { x: ys, y: tau, stroke: BLUE, strokeWidth: 2.5 }),
          Plot.line(ys, {
            x: ys, y: curve(fit), stroke: ORANGE, strokeWidth: 2.5, strokeDasharray: "6,4",
          }),
          Plot.dot(cuts[0], { r: 5, fill: BLUE, stroke: PAPER, strokeWidth: 1.5 }),
          Plot.dot(cuts[1], {
            r: 5, fill: ORANGE, stroke: PAPER, strokeWidth: 1.5, symbol: "diamond",
          }),
        ],
      });
    },

    key: [
      ["line", "truth, and the fit to labels from the posterior"],
      ["dotted", "share of flipped labels that say 1"],
      ["dash2", "the fit to them"],
    ],

    say({ e1, e2, prior1, delta }) {
      const best = softlabel.trueLine(delta, prior1);
      const fit = softlabel.flippedLine(delta, prior1, e1, e2);
      const wrong = prior1 * e1 + (1 - prior1) * e2;
      const places = [best, fit].map((b) => two(cut(b)));
      const loss = softlabel.lineError(fit, delta, prior1) - softlabel.lineError(best, delta, prior1);
      if (e1 + e2 === 0) return "No label is flipped: both fits are the truth.";
      return `Flips: ${percents(wrong)} of the labels are wrong. The more items, the nearer the slope comes to `
        + `${two(fit[1])} (the true one is ${number(delta)}), the boundary `
        + (Math.abs(cut(fit) - cut(best)) < 0.005 ? `stays at ${places[0]}` : `moves from ${places.join(" to ")}`)
        + (loss < 0.00005 ? ", and no error is left. " : `, and ${two(100 * loss)} points of error are left. `)
        + "Labels from the posterior move neither.";
    },
  };
}
