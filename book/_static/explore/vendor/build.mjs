/* Writes plot.min.js and LICENSES: npm ci && npm run build. */
import { readFileSync, writeFileSync } from "node:fs";
import { build } from "esbuild";

const { metafile } = await build({
  entryPoints: ["entry.js"],
  outfile: "plot.min.js",
  bundle: true,
  minify: true,
  metafile: true,
  target: "es2020",
});

/* A package that is in the file may carry others in itself, which it names as
   its dependencies. The two at the top name more than was taken. */
const read = (name, file) => readFileSync(`node_modules/${name}/${file}`, "utf8");
const top = ["@observablehq/plot", "d3"];
const found = new Set(top);
function add(name) {
  if (found.has(name)) return;
  found.add(name);
  const { dependencies = {} } = JSON.parse(read(name, "package.json"));
  Object.keys(dependencies).forEach(add);
}
for (const path of Object.keys(metafile.outputs["plot.min.js"].inputs)) {
  const name = path.match(/node_modules\/((?:@[^/]+\/)?[^/]+)/)?.[1];
  if (name) add(name);
}
const part = (name) => {
  const { version } = JSON.parse(read(name, "package.json"));
  return `${name} ${version}\n\n${read(name, "LICENSE").trim()}\n`;
};
writeFileSync("LICENSES", [...found].sort().map(part).join(`\n${"-".repeat(72)}\n\n`));
