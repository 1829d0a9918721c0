// Opens reports in a real browser: node check.mjs CHROMIUM REPORT.html…
// Judges: no request, no error, the first plot within a second, axe-core without violations in light, dark and zoomed, nothing
// cut off at 360 px of width and on A4, and that the script zooms, hides lines and shows values. --pictures DIR keeps screenshots.
// A check that axe cannot decide counts as a fault, except for contrast within drawings, and of cells that a scroll bar hides:
// tests/it/colours.rs computes that from the styles.
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
if (pages.length === 0) throw new Error("give at least one report");
const faults = [];
let undecided = 0;

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
      if (box.width === 0) continue;
      if (box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1 || box.bottom > frame.bottom + 1) {
        found.push(`"${text.textContent}" at ${[box.left, box.top, box.right, box.bottom].map(Math.round)} is outside of ${svg.getAttribute("aria-label").slice(0, 40)} ${[frame.left, frame.top, frame.right, frame.bottom].map(Math.round)}`);
      }
    }
  }
  return found;
};

/// Medium and colours at once: each of puppeteer's own calls undoes the other one.
const looks = async (page, media, scheme) => {
  const session = await page.createCDPSession();
  await session.send("Emulation.setEmulatedMedia", { media, features: [{ name: "prefers-color-scheme", value: scheme }] });
  const is = await page.evaluate((media, scheme) => matchMedia(media).matches && matchMedia(`(prefers-color-scheme: ${scheme})`).matches, media, scheme);
  if (!is) throw new Error(`the browser does not show ${media} in ${scheme}`);
};

/// axe-core's judgement of a page as it is now.
const judge = async (page, kind, say) => {
  await page.evaluate(axe);
  const { violations, incomplete } = await page.evaluate(() => globalThis.axe.run());
  for (const { id, nodes } of violations) say(`${kind}: axe ${id}: ${nodes[0].html.slice(0, 120)} (${nodes.length})`);
  for (const { id, nodes } of incomplete) {
    const open = nodes.filter(node => id !== "color-contrast" || !/^<(text|t[dh])\b/.test(node.html));
    undecided += nodes.length - open.length;
    if (open.length) say(`${kind}: axe cannot decide ${id}: ${open[0].html.slice(0, 120)} (${open.length})`);
  }
};

/// The script: values under the pointer, lines that are hidden, zoom by keyboard and by pointer, and all of it undone.
const use = async (page, say) => {
  const plot = await page.$("svg.wide[data-x]");
  if (!plot) return;
  const state = () => plot.evaluate(svg => {
    const markup = svg.innerHTML.replace(/ style="[^"]*"|<path class="cursor"[^>]*>|\s+(?=<)/g, "");
    return { zoomed: svg.querySelector(".window") !== null, markup };
  });
  const whole = await state();
  await plot.scrollIntoView();
  const box = await plot.boundingBox();
  const at = share => [box.x + 60 + (box.width - 80) * share, box.y + box.height * 0.6];
  await page.mouse.move(...at(0.5));
  const tip = await page.$eval(".tip", element => element.hidden ? "" : element.textContent);
  if (!/\d/.test(tip)) say("no value under the pointer");
  await page.mouse.move(0, 0);

  const figure = await plot.evaluateHandle(svg => svg.closest("figure"));
  const [from] = await figure.$$(".zoom input");
  await from.focus();
  for (let presses = 0; presses < 3; presses++) await page.keyboard.press("PageUp");
  const spoken = await from.evaluate(range => range.getAttribute("aria-valuetext"));
  if (!(await state()).zoomed || !/\d/.test(spoken)) say("the keyboard does not zoom");
  await judge(page, "zoomed", say);
  await looks(page, "screen", "dark");
  await judge(page, "zoomed, dark", say);
  (await page.evaluate(cutOff)).forEach(text => say(`zoomed: ${text}`));
  await (await figure.$(".zoom button")).click();
  await page.mouse.move(0, 0);
  if ((await state()).markup !== whole.markup) say("the drawing is another one after a zoom");
  await plot.scrollIntoView();
  const again = await plot.boundingBox();
  box.y = again.y;
  await page.mouse.move(...at(0.3));
  await page.mouse.down();
  await page.mouse.move(...at(0.6), { steps: 3 });
  await page.mouse.up();
  if (!(await state()).zoomed) say("the pointer does not zoom");
  const inner = await page.$eval(".window", window => window.viewBox.baseVal.width / window.width.baseVal.value);
  if (!(inner > 0.2 && inner < 0.4)) say(`the pointer chose ${inner} of the drawing instead of 0.3`);

  const lines = await page.$(".hide input[type=checkbox]");
  if (lines) {
    await lines.click();
    const hidden = await page.$$eval("path[data-name]", all => all.filter(path => path.style.display === "none").length);
    if (hidden === 0) say("no line was hidden");
  }
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
    await looks(page, media, scheme);
    (await page.evaluate(cutOff)).forEach(text => say(`${kind}: ${text}`));
    if (media === "screen") await judge(page, kind, say);
    if (pictures) await page.screenshot({ path: join(pictures, `${name}-${kind}.png`), fullPage: true });
  }
  if (pictures) await page.pdf({ path: join(pictures, `${name}.pdf`), format: "A4" });
  await looks(page, "screen", "light");
  await page.setViewport({ width: 800, height: 900 });
  await use(page, say);
  await page.close();
}
await browser.close();
await rm(profile, { recursive: true, force: true });
console.log(`${pages.length} reports, ${faults.length} faults; contrast of ${undecided} texts in drawings is left to colours.rs`);
faults.slice(0, 60).forEach(fault => console.error(fault));
process.exitCode = faults.length ? 1 : 0;
