/* What scrolls sideways on a narrow screen can be reached with the keyboard.
   The theme sees to code, outputs and tables; figures are ours. */
"use strict";

for (const box of document.querySelectorAll(".bd-article figure")) {
  const update = () => {
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
  };
  new ResizeObserver(update).observe(box);
  // A picture further down has no width before it is loaded.
  box.querySelector("img")?.addEventListener("load", update);
}
