"use strict";

// What scrolls sideways on a narrow screen can be reached with the keyboard.
// The theme sees to code, outputs and tables; figures and formulas are ours.
for (const box of document.querySelectorAll(".bd-article :is(figure, .katex-display)")) {
  const update = () => {
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
  };
  new ResizeObserver(update).observe(box);
  // Neither pictures nor the signs of formulas have their widths before they are loaded.
  box.querySelector("img")?.addEventListener("load", update);
  document.fonts.ready.then(update);
}

// A figure named fig-explore-NAME, or fig-explore-NAME-PLACE, becomes one with sliders when a reader comes near it or gives
// it the focus. Until then, and if a file does not come, the drawn one stands there; a page without one loads nothing.
{
  const folder = new URL("explore/", document.currentScript.src);
  const asked = {};
  const load = (name) => (asked[name] ??= new Promise((resolve, reject) => {
    const style = name.endsWith(".css");
    const element = document.createElement(style ? "link" : "script");
    if (style) element.rel = "stylesheet";
    else element.async = false; // each is run after those asked for before
    element[style ? "href" : "src"] = new URL(name, folder).href;
    element.addEventListener("load", resolve);
    element.addEventListener("error", reject);
    document.head.append(element);
  }));
  const start = async (figure) => {
    const name = figure.id.split("-")[2];
    const files = ["explore.css", "vendor/plot.min.js", "model.js", "explore.js", `figures/${name}.js`];
    await Promise.all(files.map(load));
    // Its height is another one. If its top is in view, that stays where it is; else what is in view does.
    const { classList } = document.documentElement;
    if (figure.getBoundingClientRect().top > -9) classList.add("explore-still");
    explore.mount(figure, name);
    requestAnimationFrame(() => requestAnimationFrame(() => classList.remove("explore-still")));
  };
  const near = new IntersectionObserver(
    (entries) => entries.forEach(({ isIntersecting, target }) => {
      if (!isIntersecting) return;
      near.unobserve(target);
      start(target).catch(() => {});
    }),
    { rootMargin: "100% 0px" },
  );
  for (const figure of document.querySelectorAll("figure[id^=fig-explore-]")) {
    near.observe(figure);
    figure.addEventListener("focusin", () => start(figure).catch(() => {}), { once: true });
  }
}

// Paper is white: no light text on it.
{
  const { dataset } = document.documentElement;
  let theme;
  addEventListener("beforeprint", () => { theme = dataset.theme; dataset.theme = "light"; });
  addEventListener("afterprint", () => { dataset.theme = theme; });
}

// A result of the search quotes the text: no code, no source of a formula. Of a
// place without text, such as an entry of the index, it quotes the page.
if (typeof Search === "object") {
  Search.htmlToText = (html, anchor) => {
    const page = new DOMParser().parseFromString(html, "text/html");
    page.querySelectorAll(".katex-mathml, .headerlink, .reading-line, .box-tests, .cell, .highlight").forEach((e) => e.remove());
    const text = (place) => page.querySelector(place)?.textContent.trim();
    return (anchor && text(`article ${anchor}`)) || text("article") || "";
  };
}
