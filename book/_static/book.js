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
