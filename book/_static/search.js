/* Excerpts of the search show the sentences of a page, not its code. */
"use strict";

if (typeof Search !== "undefined") {
  const textOf = Search.htmlToText;
  Search.htmlToText = (page, anchor) => {
    const parsed = new DOMParser().parseFromString(page, "text/html");
    for (const part of parsed.querySelectorAll("div.cell_input, details.hide, div.highlight, p.reading-line, p.box-tests, nav")) part.remove();
    return textOf(parsed.documentElement.outerHTML, anchor);
  };
}
