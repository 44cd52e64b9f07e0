/* The five figures of explore.html. Each takes the place of a drawn figure,
   which stays for print and for readers without JavaScript. */

"use strict";

(function () {
  const INK = "currentColor";
  const BLUE = "var(--explore-blue)";
  const ORANGE = "var(--explore-orange)";
  const PAPER = "var(--pst-color-background)";

  const digits = d3.format(".3~r");
  const number = (x) => (x === Infinity ? "∞" : digits(x));
  const percent = (x) =>
    x < 0.01 ? "under 1%" : x > 0.99 ? "over 99%" : d3.format(".0%")(x);
  const count = (k, what) => `${k} ${what}${k === 1 ? "" : "s"}`;
  const rounded = d3.format(",.0f");
  const labellers = (m) => count(m, "labeller");

  /* The places a slider stops at: its step is one place, whatever the scale. */
  const ALPHAS = [
    0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100,
  ];
  const UP_TO_20 = d3.range(1, 21);
  const controls = {
    alpha0: { label: "overdispersion parameter <i>α</i>₀", stops: ALPHAS },
    m: { label: "labellers <i>m</i>", stops: [...UP_TO_20, 25, 30] },
    tau: {
      label: "posterior <i>τ</i>₁",
      stops: d3.range(2, 99).map((i) => i / 100),
    },
    delta: {
      label: "distance Δ",
      stops: d3.range(2, 51).map((i) => i / 10),
    },
    price: {
      label: "price of an item, in votes",
      stops: [0.1, 0.2, 0.5, 1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100],
    },
  };

  /* What all plots have in common. */
  function plot(width, options) {
    const svg = Plot.plot({
      width,
      marginTop: 28,
      marginLeft: 48,
      marginRight: 34,
      marginBottom: 44,
      style: { fontSize: "13px", fontFamily: "inherit", overflow: "visible" },
      ...options,
      x: { labelAnchor: "center", labelArrow: "none", ...options.x },
      y: { labelArrow: "none", ...options.y },
    });
    // The picture around it has a name, and the sentence says what it shows.
    svg.setAttribute("aria-hidden", "true");
    return svg;
  }

  const figures = {};

  figures["fig-explore-votes"] = {
    name: "Probability of each number of positive votes",
    controls: {
      alpha0: { ...controls.alpha0, stops: [...ALPHAS, 300, 1000, Infinity] },
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
      return plot(width, {
        height: 300,
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
      });
    },

    key: [
      ["bar", "votes of this item's labellers"],
      ["ring", "independent votes, <i>α</i>₀ = ∞"],
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

  figures["fig-explore-worth"] = {
    name: "Worth of the votes over m and α₀",
    controls: {
      alpha0: { ...controls.alpha0, stops: [...ALPHAS, 200, 300, 500, 1000] },
      m: {
        ...controls.m,
        stops: [...UP_TO_20, 25, 30, 35, 40, 50, 60, 70, 80, 90, 100],
      },
    },
    start: { alpha0: 5, m: 7 },
    surface: { x: "m", y: "alpha0" },

    draw({ alpha0, m }, width) {
      const levels = [1.5, 2, 3, 5, 10, 20, 50];
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
          Plot.line([[1, 1], [100, 100]], { stroke: INK, strokeDasharray: "2,4" }),
          Plot.text([[1, 1]], {
            text: ["m = α₀"], dx: 6, dy: -34, textAnchor: "start",
          }),
          // Where each contour leaves the picture on the right.
          Plot.text(levels, {
            x: 100, y: (c) => (100 * (c - 1)) / (100 - c),
            text: number, dx: 5, textAnchor: "start",
          }),
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

    key: [["line", "equal worth, in true labels"], ["dot", "where the sliders stand"]],

    say({ alpha0, m }) {
      const worth = number(softlabel.relativeEfficiency(m, alpha0));
      return `${labellers(m)} at α₀ = ${number(alpha0)} ${m === 1 ? "is" : "are"} `
        + `worth ${worth} true label${worth === "1" ? "" : "s"}. `
        + `However many there are, they stay below ${alpha0 < 99 ? number(1 + alpha0) : rounded(1 + alpha0)}.`;
    },
  };

  const ITEMS = 300;
  figures["fig-explore-noise"] = {
    name: "Where the wrong labels are",
    controls: { delta: controls.delta },
    start: { delta: 2 },

    draw({ delta }, width) {
      const ys = d3.range(-6, 6.001, 0.05);
      const x = { domain: [-6, 6], ticks: d3.range(-6, 7, 2) };
      const items = softlabel.items(ITEMS, delta);
      const wrong = (d) => d.label !== d.truth;
      return [
        plot(width, {
          height: 190,
          marginBottom: 8,
          x: { ...x, axis: null },
          y: { label: "density", domain: [0, 0.4], ticks: 4 },
          marks: [
            Plot.areaY(ys, {
              x: ys, y: (y) => softlabel.wrongDensity(y, delta),
              fill: ORANGE, fillOpacity: 0.55,
            }),
            Plot.line(ys, { x: ys, y: (y) => softlabel.density(y, delta), stroke: BLUE }),
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
            Plot.dot(items.filter((d) => !wrong(d)), {
              x: "y1", y: "y2", r: 2.2, fill: BLUE, fillOpacity: 0.6,
            }),
            Plot.dot(items.filter(wrong), {
              x: "y1", y: "y2", symbol: "times", r: 4.5, stroke: ORANGE,
              strokeWidth: 2,
            }),
          ],
        }),
      ];
    },

    key: [
      ["line", "all items"],
      ["area", "wrong labels"],
      ["cross", "one wrong label"],
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

  const BUDGET = 1000;
  figures["fig-explore-budget"] = {
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

  figures["fig-explore-split"] = {
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

  /* From here on nothing knows what the figures show. */

  function element(tag, attributes, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      made.setAttribute(name, value);
    }
    made.append(...children);
    return made;
  }

  function slider(id, { label, stops }, value, onInput) {
    const input = element("input", {
      type: "range", id, min: 0, max: stops.length - 1, step: 1,
    });
    const output = element("output", { for: id });
    const words = element("label", { for: id });
    words.innerHTML = label;
    const show = () => {
      const text = number(stops[input.value]);
      output.textContent = text;
      input.setAttribute("aria-valuetext", text === "∞" ? "infinite" : text);
    };
    const set = (wanted) => {
      input.value = d3.leastIndex(stops, (s) => Math.abs(Math.log(s / wanted)));
      show();
    };
    input.addEventListener("input", () => {
      show();
      onInput();
    });
    set(value);
    return { nodes: [words, input, output], set, get: () => stops[input.value] };
  }

  function mount(figure, { name, controls, start, draw, key, say, surface }) {
    const picture = element("div", {
      class: "explore-picture", role: "img", "aria-label": name,
    });
    const sentence = element("p", {
      class: "explore-sentence", "aria-live": "polite",
    });
    const legend = element("p", { class: "explore-key" });
    legend.innerHTML = key
      .map(([mark, text]) => `<span><i class="explore-${mark}"></i>${text}</span>`)
      .join(" ");

    let shown;
    const update = () => {
      const state = Object.fromEntries(
        Object.entries(sliders).map(([which, s]) => [which, s.get()]),
      );
      const width = Math.round(picture.clientWidth) || 640;
      const wanted = JSON.stringify([width, Object.values(state).map(String)]);
      if (wanted === shown) return;
      shown = wanted;
      picture.replaceChildren(...[draw(state, width)].flat());
      sentence.textContent = say(state);
    };
    const sliders = {};
    for (const [which, control] of Object.entries(controls)) {
      sliders[which] = slider(`${figure.id}-${which}`, control, start[which], update);
    }
    const box = element(
      "div", { class: "explore" },
      element("div", { class: "explore-controls" },
        ...Object.values(sliders).map((s) => element("div", {}, ...s.nodes))),
      sentence, legend, picture,
    );
    update();
    figure.prepend(box);
    figure.classList.add("explore-on");
    update();
    new ResizeObserver(update).observe(picture);
    if (surface) followPointer(picture, sliders, surface, update);
  }

  /* A tap or a drag on the picture moves two sliders at once. */
  function followPointer(picture, sliders, surface, update) {
    const move = (event) => {
      const svg = picture.querySelector("svg");
      const [px, py] = d3.pointer(event, svg);
      sliders[surface.x].set(svg.scale("x").invert(px));
      sliders[surface.y].set(svg.scale("y").invert(py));
      update();
    };
    picture.classList.add("explore-surface");
    picture.addEventListener("pointerdown", (event) => {
      picture.setPointerCapture(event.pointerId);
      move(event);
    });
    picture.addEventListener("pointermove", (event) => {
      if (picture.hasPointerCapture(event.pointerId)) move(event);
    });
  }

  for (const [id, figure] of Object.entries(figures)) {
    const place = document.getElementById(id);
    if (place) mount(place, figure);
  }
})();
