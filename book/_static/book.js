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

// A result of the search quotes a formula as it is read, not its source too.
if (typeof Search === "object") {
  const textOf = Search.htmlToText;
  const source = /<span class="katex-mathml">.*?<\/math><\/span>/gs;
  Search.htmlToText = (html, anchor) => textOf(html.replace(source, ""), anchor);
}
