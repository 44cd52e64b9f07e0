/* What the figures with sliders have in common. Each figure is a file of its own
   in figures/, and takes the place of a drawn one, which stays for print and for
   readers without JavaScript. book.js loads a figure when a reader comes near. */

"use strict";

var explore = (function () {
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
  const ALPHAS_TO_INFINITY = [...ALPHAS, 300, 1000, Infinity];
  const UP_TO_20 = d3.range(1, 21);
  const controls = {
    alpha0: { label: "overdispersion parameter <i>α</i>₀", stops: ALPHAS },
    m: { label: "labellers <i>m</i>", stops: [...UP_TO_20, 25, 30] },
    tau: {
      label: "posterior <i>τ</i>₁",
      stops: d3.range(2, 99).map((i) => i / 100),
    },
    delta: {
      label: "distance of the classes Δ",
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

  function element(tag, attributes, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      made.setAttribute(name, value);
    }
    made.append(...children);
    return made;
  }

  function slider(id, { label, stops, show: write = number }, value, onInput) {
    const input = element("input", {
      type: "range", id, min: 0, max: stops.length - 1, step: 1,
    });
    const output = element("output", { for: id });
    const words = element("label", { for: id });
    words.innerHTML = label;
    const show = () => {
      const text = write(stops[input.value]);
      output.textContent = text;
      input.setAttribute("aria-valuetext", text === "∞" ? "infinite" : text);
    };
    const set = (wanted) => {
      input.value = d3.leastIndex(stops, (s) => Math.abs(s === wanted ? 0 : Math.log(s / wanted)));
      show();
    };
    input.addEventListener("input", () => {
      show();
      onInput();
    });
    set(value);
    return { nodes: [words, input, output], set, get: () => stops[input.value] };
  }

  const figures = {};

  /* The figure of this name in the place of a drawn one. What `gather` collects
     begins anew when a slider moves, and goes to `draw` and `say`. */
  function mount(place, name) {
    if (place.classList.contains("explore-on")) return;
    const figure = figures[name];
    const picture = element("div", {
      class: "explore-picture", role: "img", "aria-label": figure.name,
    });
    const sentence = element("p", {
      class: "explore-sentence", "aria-live": "polite",
    });
    const legend = element("p", { class: "explore-key" });
    legend.innerHTML = figure.key
      .map(([mark, text]) => `<span><i class="explore-${mark}"></i>${text}</span>`)
      .join(" ");

    const sliders = {};
    const gathered = figure.gather && buttons(figure.gather, sentence, () => update());
    let shown, settings;
    const update = () => {
      const state = Object.fromEntries(
        Object.entries(sliders).map(([which, s]) => [which, s.get()]),
      );
      const width = Math.round(picture.clientWidth) || 640;
      const now = JSON.stringify(Object.values(state).map(String));
      if (gathered && now !== settings) gathered.begin(state);
      settings = now;
      const wanted = [width, now, gathered?.found.length].join();
      if (wanted === shown) return;
      shown = wanted;
      picture.replaceChildren(...[figure.draw(state, width, gathered?.found)].flat());
      sentence.textContent = figure.say(state, gathered?.found);
    };
    for (const [which, control] of Object.entries(figure.controls)) {
      sliders[which] = slider(`${place.id}-${which}`, control, figure.start[which], update);
    }
    const box = element(
      "div", { class: "explore" },
      element("div", { class: "explore-controls" },
        ...Object.values(sliders).map((s) => element("div", {}, ...s.nodes))),
      ...(gathered ? [gathered.node] : []),
      sentence, legend, picture,
    );
    update();
    place.prepend(box);
    place.classList.add("explore-on");
    update();
    new ResizeObserver(update).observe(picture);
    if (figure.surface) followPointer(picture, sliders, figure.surface, update);
  }

  /* Buttons that add to a collection: once, again and again up to `most`, and
     one that empties it. Who asks for less motion gets the end at once. */
  function buttons({ add, batch, most, words }, sentence, update) {
    const still = matchMedia("(prefers-reduced-motion: reduce)");
    const found = [];
    let state, random, timer;
    const more = () => found.push(...add(state, random, Math.min(batch, most - found.length)));
    const stop = () => {
      clearInterval(timer);
      timer = undefined;
      run.textContent = "run";
      sentence.setAttribute("aria-live", "polite");
    };
    const button = (text, act) => {
      const made = element("button", { type: "button" }, text);
      made.addEventListener("click", () => {
        act();
        once.disabled = run.disabled = found.length >= most;
        update();
      });
      return made;
    };
    const once = button(words, more);
    const run = button("run", () => {
      if (timer) return stop();
      if (still.matches) {
        while (found.length < most) more();
        return;
      }
      // Not every step is read aloud, but where it ends.
      sentence.setAttribute("aria-live", "off");
      run.textContent = "stop";
      timer = setInterval(() => {
        more();
        if (found.length >= most) {
          stop();
          once.disabled = run.disabled = true;
        }
        update();
      }, 150);
    });
    const clear = button("clear", () => {
      stop();
      found.length = 0;
      random = softlabel.generator(1);
    });
    const begin = (now) => {
      stop();
      found.length = 0;
      random = softlabel.generator(1);
      state = now;
      once.disabled = run.disabled = false;
      more();
    };
    return { node: element("div", { class: "explore-buttons" }, once, run, clear), found, begin };
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

  return {
    INK, BLUE, ORANGE, PAPER, number, percent, count, rounded, labellers,
    ALPHAS, ALPHAS_TO_INFINITY, UP_TO_20, controls, plot, figures, mount,
  };
})();
