"""What a page weighs and where its formulas are cut or parted from what touches them, in a browser.

python tests/measures.py [SITE]     a line for each page of _build/html
"""

import gzip
from urllib.parse import unquote, urlsplit

# Signs that stand at the end of what they belong to, and those at the beginning.
CLOSING = ".,;:!?)]}%’”…"
OPENING = "([{‘“"

# Parts of formulas that hold together; MathJax's are there for comparison.
PARTS = "article .katex-base, article mjx-math"

# A box that cuts a formula off at its edge, and does not say that it scrolls.
CLIPPED = """
const says = box => getComputedStyle(box, '::before').content.includes('scroll');
const cut = new Set();
for (const part of document.querySelectorAll(arguments[0])) {
  const formula = part.closest('.katex-display, .katex, mjx-container'), own = part.getBoundingClientRect();
  if (!own.width) continue;
  for (let box = part.parentElement; box && box.tagName !== 'ARTICLE'; box = box.parentElement) {
    if (getComputedStyle(box).overflowX === 'visible') continue;
    const room = box.getBoundingClientRect();
    if (own.right > room.right + 1 || own.left < room.left - 1) {
      if (!says(box)) cut.add(formula);
      break;
    }
  }
}
const name = e => (e.closest('[id]')?.id ?? '') + ': '
  + (e.querySelector('annotation')?.textContent ?? e.textContent).trim().slice(0, 40);
return [...cut].map(name);
"""

# A sign that begins a line, though the formula to which it belongs ends the one before; or the other way about.
PARTED = """
const [parts, closing, opening] = arguments;
const formulas = [...document.querySelectorAll(parts)].map(e => e.closest('.katex, mjx-container'));
const found = [];
const sign = (formula, after) => {
  const block = formula.closest('p, li, td, th, dd, dt, h1, h2, h3, h4, figcaption, caption, summary, div');
  const walker = document.createTreeWalker(block, NodeFilter.SHOW_TEXT);
  walker.currentNode = formula;
  let text;
  if (after) {
    while ((text = walker.nextNode()) && (formula.contains(text) || !text.data));
  } else {
    while ((text = walker.previousNode()) && !text.data);
  }
  if (!text || text.parentElement.closest('.katex, mjx-container, .headerlink, .eqno')) return null;
  const at = after ? 0 : text.data.length - 1;
  const range = new Range();
  range.setStart(text, at);
  range.setEnd(text, at + 1);
  return [text.data[at], range.getBoundingClientRect()];
};
for (const formula of new Set(formulas)) {
  if (formula.closest('.katex-display, div.math')) continue;
  const own = [...formula.querySelectorAll('.katex-base, mjx-math')].map(e => e.getBoundingClientRect());
  const first = own[0], last = own[own.length - 1];
  if (!first.width) continue;
  const after = sign(formula, true), before = sign(formula, false);
  const words = formula.closest('p, li, td, th, dd, dt, h2, h3, h4')?.textContent.trim().slice(0, 50);
  if (after && closing.includes(after[0]) && after[1].width && after[1].left < last.right - 1)
    found.push(`${after[0]} begins a line: ${words}`);
  if (before && opening.includes(before[0]) && before[1].width && before[1].right > first.left + 1)
    found.push(`${before[0]} ends a line: ${words}`);
}
return found;
"""

# All that was loaded, once nothing new has come for a while.
LOADED = """
const done = arguments[0], entries = () => performance.getEntriesByType('resource');
(function wait(known) {
  if (entries().length === known && document.readyState === 'complete')
    done([location.href, ...entries().map(e => e.name)].filter(name => !name.startsWith('data:')));
  else setTimeout(wait, 400, entries().length);
})(-1);
"""


def clipped(driver):
    """Formulas of which a part cannot be seen, without a word that it is there."""
    return driver.execute_script(CLIPPED, PARTS)


def parted(driver):
    """Signs that a line's end parts from their formula."""
    return driver.execute_script(PARTED, PARTS, CLOSING, OPENING)


def weight(driver, site, address):
    """Bytes that a page loads when it is opened: as they are stored, and as a server sends them that compresses text."""
    driver.get(address)
    paths = {site / unquote(urlsplit(name).path)[1:] for name in driver.execute_async_script(LOADED)}
    texts = {".html", ".css", ".js", ".svg", ".json"}
    raw = {path: path.read_bytes() for path in paths if path.is_file()}
    sent = (gzip.compress(data, 6) if path.suffix in texts else data for path, data in raw.items())
    return sum(map(len, raw.values())), sum(map(len, sent))


def main():
    import sys
    from pathlib import Path

    from conftest import ROOT, browser, serving
    from test_browser import WIDTHS, all_pages, look, resize

    site = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "_build" / "html"
    print(f"{'page':40} {'bytes':>9} {'sent':>8}   cut, parted at {', '.join(map(str, WIDTHS))} px")
    totals = [0] * 2 * len(WIDTHS)
    with browser() as driver, serving(site, []) as address:
        for name in all_pages(site):
            resize(driver, WIDTHS[0])
            raw, sent = weight(driver, site, f"{address}/{name}")
            counts = []
            for width in WIDTHS:
                look(driver, f"{address}/{name}", width)
                counts += [len(clipped(driver)), len(parted(driver))]
            totals = [a + b for a, b in zip(totals, counts)]
            print(f"{name:40} {raw:9,} {sent:8,}   " + " ".join(f"{count:3}" for count in counts), flush=True)
    print(f"{'all':60}   " + " ".join(f"{count:3}" for count in totals))


if __name__ == "__main__":
    main()
