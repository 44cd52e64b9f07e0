/* What figures.js uses, and nothing else of either library. */
import {
  areaY, barY, contour, dot, line, plot, ruleX, ruleY, text,
} from "@observablehq/plot";
import { format, leastIndex, max, pointer, range } from "d3";

globalThis.d3 = { format, leastIndex, max, pointer, range };
globalThis.Plot = { areaY, barY, contour, dot, line, plot, ruleX, ruleY, text };
