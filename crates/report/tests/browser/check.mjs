// Opens reports in a real browser: node check.mjs CHROMIUM REPORT.html…
// Judges: no request, no error, the first plot within a second, axe-core without violations in light and dark, nothing cut off
// at 360 px of width and on A4. Prints what axe could not decide. --pictures DIR keeps screenshots.
import { createRequire } from "node:module";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import puppeteer from "puppeteer-core";

const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const given = process.argv.slice(2);
const at = given.indexOf("--pictures");
const pictures = at < 0 ? null : given.splice(at, 2)[1];
const [chromium, ...pages] = given;
const profile = await mkdtemp(join(tmpdir(), "pgrig-chromium-"));
const browser = await puppeteer.launch({
  executablePath: chromium,
  userDataDir: profile,
  args: ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update",
    "--disable-sync"],
});
const faults = [];
const undecided = new Map();

/// Texts and drawings that stick out of the page or of their drawing.
const cutOff = () => {
  const found = [];
  const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth > width) found.push(`the page is ${document.documentElement.scrollWidth} px wide, the window ${width}`);
  for (const svg of document.querySelectorAll("svg.plot")) {
    const frame = svg.getBoundingClientRect();
    if (frame.width === 0) continue;
    if (frame.right > width + 1) found.push(`a drawing ends at ${frame.right} of ${width}`);
    for (const text of svg.querySelectorAll("text")) {
      const box = text.getBoundingClientRect();
      if (box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1 || box.bottom > frame.bottom + 1) {
        found.push(`"${text.textContent}" at ${[box.left, box.top, box.right, box.bottom].map(Math.round)} is outside of ${svg.getAttribute("aria-label").slice(0, 40)} ${[frame.left, frame.top, frame.right, frame.bottom].map(Math.round)}`);
      }
    }
  }
  return found;
};

for (const file of pages) {
  const name = basename(file, ".html");
  const say = text => faults.push(`${name}: ${text}`);
  const page = await browser.newPage();
  const address = pathToFileURL(resolve(file)).href;
  page.on("request", request => { if (request.url() !== address && !request.url().startsWith("data:")) say(`request of ${request.url()}`); });
  page.on("console", message => { if (["error", "warn"].includes(message.type())) say(`console: ${message.text()}`); });
  page.on("pageerror", error => say(`error: ${error.message}`));
  // Bypassed for axe only: the page itself was loaded under its own policy before.
  await page.setViewport({ width: 800, height: 900 });
  const started = Date.now();
  await page.goto(address);
  await page.waitForSelector("svg.plot.wide");
  const took = Date.now() - started;
  if (took > 1000) say(`the first plot took ${took} ms`);
  for (const [kind, width, media, scheme] of [["light", 800, "screen", "light"], ["dark", 800, "screen", "dark"], ["narrow", 360, "screen", "light"], ["print", 680, "print", "light"]]) {
    await page.setViewport({ width, height: 900 });
    await page.emulateMediaType(media);
    await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
    (await page.evaluate(cutOff)).forEach(text => say(`${kind}: ${text}`));
    if (media === "screen") {
      await page.evaluate(axe);
      const { violations, incomplete } = await page.evaluate(() => globalThis.axe.run());
      for (const { id, nodes } of violations) say(`${kind}: axe ${id}: ${nodes[0].html.slice(0, 120)} (${nodes.length})`);
      for (const { id, nodes } of incomplete) undecided.set(id, (undecided.get(id) ?? 0) + nodes.length);
    }
    if (pictures) await page.screenshot({ path: join(pictures, `${name}-${kind}.png`), fullPage: true });
  }
  if (pictures) await page.pdf({ path: join(pictures, `${name}.pdf`), format: "A4" });
  // The script: values under the pointer, and hidden lines.
  await page.emulateMediaType("screen");
  await page.setViewport({ width: 800, height: 900 });
  const plot = await page.$("svg.wide[data-x]");
  if (plot) {
    await plot.scrollIntoView();
    const box = await plot.boundingBox();
    await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
    const tip = await page.$eval(".tip", element => element.hidden ? "" : element.textContent);
    if (!/\d/.test(tip)) say("no value under the pointer");
  }
  const box = await page.$(".hide input");
  if (box) {
    await box.click();
    const hidden = await page.$$eval("path[data-name]", all => all.filter(path => path.style.display === "none").length);
    if (hidden === 0) say("no line was hidden");
  }
  await page.close();
}
await browser.close();
await rm(profile, { recursive: true, force: true });
for (const [rule, count] of undecided) console.log(`axe cannot decide ${rule}: ${count} elements`);
console.log(`${pages.length} reports, ${faults.length} faults`);
faults.slice(0, 60).forEach(fault => console.error(fault));
process.exitCode = faults.length ? 1 : 0;
