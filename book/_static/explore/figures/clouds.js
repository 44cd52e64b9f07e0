"use strict";

{
  const {
    INK, BLUE, ORANGE, number,
    rounded, labellers, ALPHAS_TO_INFINITY, controls, plot,
  } = explore;

  // The two normal classes and the number of items of the chapter.
  const PAIR = {
    mean1: [1.5, 0.5], mean2: [-0.5, 0], cov: [[1, 0.3], [0.3, 1]], prior1: 0.4,
  };
  const SLOPES = softlabel.solve(PAIR.cov, [0, 1].map((k) => PAIR.mean1[k] - PAIR.mean2[k]));
  const ITEMS = 1500;
  const POINTS = 300;
  const RADIUS = Math.sqrt(-2 * Math.log(0.05)); // holds 95% of standard normal pairs
  const information = softlabel.fisherInformation(PAIR);
  const [circles, dots] = [1, 2].map((seed) => {
    const random = softlabel.generator(seed);
    return d3.range(POINTS).map(() => softlabel.normalPair(random));
  });
  const turn = d3.range(0, 121).map((i) => (2 * Math.PI * i) / 120);
  const ring = turn.map((t) => [RADIUS * Math.cos(t), RADIUS * Math.sin(t)]);

  explore.figures.clouds = {
    name: "Estimates of the two slopes from true labels and from votes",
    controls: {
      alpha0: { ...controls.alpha0, stops: ALPHAS_TO_INFINITY },
      m: controls.m,
    },
    start: { alpha0: 2, m: 10 },

    draw({ alpha0, m }, width) {
      const worth = softlabel.relativeEfficiency(m, alpha0);
      const [ofTruth, ofVotes] = [1, worth].map((factor) => {
        const cov = softlabel.slopeCovariance(information, factor, ITEMS);
        return (points) => softlabel.spread(cov, points).map((p) => p.map((v, k) => v + SLOPES[k]));
      });
      return plot(width, {
        height: Math.min(400, width),
        x: { label: "first slope", domain: [1.65, 2.45], ticks: 6 },
        y: { label: "second slope", domain: [-0.4, 0.2], ticks: 4 },
        marks: [
          Plot.dot(ofTruth(circles), {
            r: 2.5, stroke: ORANGE, strokeOpacity: 0.7,
          }),
          Plot.dot(ofVotes(dots), { r: 2, fill: BLUE, fillOpacity: 0.7 }),
          Plot.line(ofTruth(ring), { stroke: ORANGE, strokeWidth: 2.5, strokeDasharray: "6,4" }),
          Plot.line(ofVotes(ring), { stroke: BLUE, strokeWidth: 2.5 }),
          Plot.dot([SLOPES], { symbol: "plus", r: 8, stroke: INK, strokeWidth: 2 }),
        ],
      });
    },

    key: [
      ["hollow", "from true labels"],
      ["point", "from votes"],
      ["dash2", "ellipse of <b><i>I</i></b><sub>LR</sub>"],
      ["line", "ellipse of <b><i>I</i></b><sub><i>M</i></sub>"],
    ],

    say({ alpha0, m }) {
      const worth = softlabel.relativeEfficiency(m, alpha0);
      const se = [1, worth].map((factor) =>
        Math.sqrt(softlabel.slopeCovariance(information, factor, ITEMS)[0][0]));
      const fixed = d3.format(".4f");
      if (m === 1) {
        return "One vote is a draw from the posterior, whatever α₀ is: the variances are "
          + "those from true labels, and their ratio is 1.";
      }
      return `${labellers(m)} at α₀ = ${number(alpha0)}: true labels leave ${number(worth)} `
        + `times the variance that the votes leave, in each slope and each direction. The standard error of `
        + `the first slope is ${fixed(se[0])} from ${rounded(ITEMS)} true labels and `
        + `${fixed(se[1])} from votes on as many items.`;
    },
  };
}
