/* Excerpts of the search show the sentences of a page, not its code. */
"use strict";

if (typeof Search !== "undefined") {
  const textOf = Search.htmlToText;
  Search.htmlToText = (page, anchor) => {
    const parsed = new DOMParser().parseFromString(page, "text/html");
    const apart = ".bd-header-article, nav, footer, div.cell_input, details.hide, div.highlight, p.reading-line, p.box-tests";
    for (const part of parsed.querySelectorAll(apart)) part.remove();
    return textOf(parsed.documentElement.outerHTML, anchor);
  };
}
