"use strict";

{
  const {
    BLUE, ORANGE, PAPER, number,
    count, rounded, labellers, controls, plot,
  } = explore;

  const BUDGET = 1000;
  explore.figures.budget = {
    name: "What a budget buys, by labellers an item",
    controls: { alpha0: controls.alpha0, price: controls.price },
    start: { alpha0: 5, price: 20 },

    draw({ alpha0, price }, width) {
      const worth = (m) => softlabel.worth(BUDGET, m, alpha0, price);
      const best = softlabel.bestWhole(alpha0, price);
      const near = nearlyAsGood(alpha0, price);
      const top = d3.max(near, worth) * 1.25;
      return plot(width, {
        height: 300,
        x: {
          type: "log", domain: [1, 200], label: "labellers an item, m",
          ticks: [1, 2, 5, 10, 20, 50, 100, 200], tickFormat: "d",
        },
        y: { label: "true labels the budget is worth", domain: [0, top], ticks: 5 },
        marks: [
          Plot.ruleY([0]),
          Plot.areaY(near, {
            x: (m) => m, y: worth, fill: BLUE, fillOpacity: 0.2,
          }),
          Plot.line(d3.range(1, 201), {
            x: (m) => m, y: worth, stroke: BLUE, strokeWidth: 2,
          }),
          Plot.ruleX([best], { y1: 0, y2: worth(best), stroke: ORANGE }),
          Plot.dot([best], {
            x: best, y: worth(best), r: 6, fill: ORANGE, stroke: PAPER, strokeWidth: 2,
          }),
          Plot.text([best], {
            x: best, y: worth(best), text: [`m = ${best}`], dy: -16,
            textAnchor: best < 2 ? "start" : "middle", fontSize: 15, fontWeight: 600,
          }),
        ],
      });
    },

    key: [["band", "within 5% of the best"], ["dot", "the best"]],

    say({ alpha0, price }) {
      const best = softlabel.bestWhole(alpha0, price);
      const near = nearlyAsGood(alpha0, price);
      const worth = (m) => rounded(softlabel.worth(BUDGET, m, alpha0, price));
      const whole = softlabel.design(BUDGET, alpha0, price);
      const left = whole.m === best ? "" : `; with ${count(best, "vote")} each some of the budget would be left`;
      return `An item costs as much as ${number(price)} vote${price === 1 ? "" : "s"}, `
        + `and α₀ = ${number(alpha0)}: ask ${labellers(best)} an item. A budget of `
        + `1,000 votes is then worth ${worth(best)} true labels`
        + (best === 1 ? "" : `, against ${worth(1)} with one labeller an item`)
        + `. From ${near[0]} to ${labellers(near.at(-1))} it loses at most 5%. `
        + `In whole items: ${count(whole.n, "item")} with ${count(whole.m, "vote")} `
        + `each, worth ${d3.format(".1f")(whole.worth)} true labels${left}.`;
    },
  };

  /* The numbers of labellers that get 95% of what the best one gets. */
  function nearlyAsGood(alpha0, price) {
    const worth = (m) => softlabel.worth(BUDGET, m, alpha0, price);
    const enough = 0.95 * worth(softlabel.bestWhole(alpha0, price));
    return d3.range(1, 401).filter((m) => worth(m) >= enough);
  }
}
