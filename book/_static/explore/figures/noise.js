"use strict";

{
  const { INK, BLUE, ORANGE, number, percent, controls, plot } = explore;

  const ITEMS = 300;
  explore.figures.noise = {
    name: "Where the wrong labels are",
    controls: { delta: controls.delta },
    start: { delta: 2 },

    draw({ delta }, width) {
      const ys = d3.range(-6, 6.001, 0.05);
      const x = { domain: [-6, 6], ticks: d3.range(-6, 7, 2) };
      const items = softlabel.items(ITEMS, delta);
      const labelled = (value, right) =>
        items.filter((d) => d.label === value && (d.truth === value) === right);
      const [one, two] = [ORANGE, BLUE];
      const pale = { x: "y1", y: "y2", r: 2.8, fillOpacity: 0.4 };
      const cross = { x: "y1", y: "y2", symbol: "times", r: 4.5, strokeWidth: 2.2 };
      return [
        plot(width, {
          height: 150,
          marginBottom: 8,
          x: { ...x, axis: null },
          y: { label: "P(wrong | y₁)", domain: [0, 0.6], ticks: [0, 0.25, 0.5] },
          marks: [
            Plot.areaY(ys, {
              x: ys, y: (y) => softlabel.wrongAt(y, delta), fill: INK, fillOpacity: 0.15,
            }),
            Plot.line(ys, {
              x: ys, y: (y) => softlabel.wrongAt(y, delta), stroke: INK, strokeWidth: 2,
            }),
            Plot.ruleY([0]),
            Plot.ruleX([0], { strokeDasharray: "2,4" }),
          ],
        }),
        plot(width, {
          height: 260,
          x: { ...x, label: "feature y₁" },
          y: {
            label: "feature y₂", domain: [-3, 3], ticks: [-2, 0, 2], tickFormat: "d",
          },
          marks: [
            Plot.ruleX([0], { strokeDasharray: "2,4" }),
            Plot.dot(labelled(1, true), { ...pale, symbol: "triangle", fill: one }),
            Plot.dot(labelled(0, true), { ...pale, symbol: "square", fill: two }),
            Plot.dot(labelled(1, false), { ...cross, stroke: one }),
            Plot.dot(labelled(0, false), { ...cross, stroke: two }),
          ],
        }),
      ];
    },

    key: [
      ["triangle", "labelled class 1"],
      ["square", "labelled class 2"],
      ["cross", "wrong label, in the colour of what it says"],
    ],

    say({ delta }) {
      const wrong = softlabel
        .items(ITEMS, delta)
        .filter((d) => d.label !== d.truth).length;
      return `At Δ = ${number(delta)}, ${percent(softlabel.wrongShare(delta))} of `
        + `the labels are wrong; among these ${ITEMS} items ${wrong} are. The best `
        + `rule errs on ${percent(softlabel.bayesError(delta))} of the items.`;
    },
  };
}
