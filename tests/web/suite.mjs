// Tests the dashboard in a real browser: node suite.mjs BASE WEEK TOKEN. Prints one line per check; exits with 1 if one failed.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";

const [base, week, token] = process.argv.slice(2);
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const pages = ["/", week, "/tasks/photo-batch", "/latency?days=28", "/events", "/runs", "/runs/1", "/targets", "/method"];
const views = [
  { name: "desktop, light", width: 1280, height: 800, colorScheme: "light" },
  { name: "desktop, dark", width: 1280, height: 800, colorScheme: "dark" },
  { name: "phone, light", width: 390, height: 844, colorScheme: "light" },
  { name: "phone, dark", width: 390, height: 844, colorScheme: "dark" },
  { name: "4K", width: 3840, height: 2160, colorScheme: "light" },
];
let failed = 0;
const check = (what, faults) => {
  const holds = faults.length === 0;
  if (!holds) failed += 1;
  console.log(`${holds ? "ok  " : "FAIL"} ${what}${holds ? "" : ": " + faults.join("; ")}`);
};

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });

// Opens a page and collects console errors and requests to other hosts as faults.
const open = async (context, path) => {
  const page = await context.newPage();
  const faults = [];
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && faults.push(message.text()));
  page.on("pageerror", (error) => faults.push(String(error)));
  page.on("request", (request) => request.url().startsWith(base) || faults.push(`requests ${request.url()}`));
  await page.goto(base + path);
  return { page, faults };
};

const violations = async (page) => {
  // Evaluated outside of the page, because its content security policy forbids inline scripts.
  await page.evaluate(axe);
  const tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
  const found = await page.evaluate((tags) => window.axe.run({ runOnly: { type: "tag", values: tags } }), tags);
  return found.violations.map((one) => `${one.id} (${one.nodes.length}: ${one.nodes[0].target})`);
};

for (const { name, width, height, colorScheme } of views) {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme });
  for (const path of pages) {
    const { page, faults } = await open(context, path);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    if (wide > 0) faults.push(`${wide} px wider than the screen`);
    check(`${path} ${name}`, faults.concat(await violations(page)));
    await page.close();
  }
  await context.close();
}

{ // Pages fit the screen with text at 200 %.
  const context = await browser.newContext({ viewport: { width: 640, height: 400 } });
  for (const path of pages) {
    const { page, faults } = await open(context, path);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    check(`${path} at 200 %`, wide > 0 ? faults.concat(`${wide} px wider than the screen`) : faults);
    await page.close();
  }
  await context.close();
}

{ // All pages can be read without JavaScript.
  const context = await browser.newContext({ javaScriptEnabled: false });
  for (const path of pages) {
    const { page, faults } = await open(context, path);
    const text = await page.locator("main").innerText();
    check(`${path} without JavaScript`, text.length > 200 ? faults : faults.concat("the page has no text"));
    await page.close();
  }
  await context.close();
}

{ // On a laptop the first screen shows the answer, its confidence and the problems without scrolling.
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  const { page } = await open(context, "/");
  const below = await page.evaluate(() => ["#answer", "#problems-heading", "#confidence-heading", "#overview"]
    .filter((id) => (document.querySelector(id)?.getBoundingClientRect()?.bottom ?? Infinity) > innerHeight));
  const below_marks = await page.evaluate(() => [...document.querySelectorAll("#overview .mark")]
    .filter((mark) => mark.getBoundingClientRect().bottom > innerHeight).length);
  check("the first screen shows the answer", below.filter((id) => id !== "#overview").concat(below_marks > 0 ? ["a mark is below the first screen"] : []));
  await context.close();
}

{ // A live round appears without reloading.
  const context = await browser.newContext();
  const { page, faults } = await open(context, "/");
  await page.locator("text=4 of 12 runs").first().waitFor({ timeout: 60_000 });
  check("the live round appears without reloading", faults);
  await context.close();
}

{ // Commands: only a browser that logged in with a key sees the buttons, and their commands are accepted.
  const context = await browser.newContext();
  const { page, faults } = await open(context, "/targets");
  const shown = await page.locator("button", { hasText: "Pause" }).count();
  const answer = await fetch(`${base}/api/v1/key`, { method: "POST", headers: { authorization: `Bearer ${token}` } });
  const { key } = await answer.json();
  await page.goto(`${base}/login?key=${key}`);
  await page.goto(`${base}/targets`);
  const [response] = await Promise.all([
    page.waitForResponse((response) => response.url().endsWith("/commands/pause")),
    page.locator("button", { hasText: "Pause" }).click(),
  ]);
  await page.waitForURL(`${base}/targets`);
  check("commands need a key", faults.concat(shown === 0 ? [] : ["buttons without a key"], response.status() === 303 ? [] : [`${response.status()}`]));
  await context.close();
}

{ // Keyboard: the first tab stop is the skip link to the content, and the navigation can be reached with Tab.
  const context = await browser.newContext();
  const { page } = await open(context, "/");
  await page.keyboard.press("Tab");
  const skip = await page.evaluate(() => document.activeElement.textContent);
  await page.keyboard.press("Enter");
  const at = await page.evaluate(() => document.activeElement.id);
  await page.goto(base + "/");
  const walked = [];
  for (let stop = 0; stop < 12; stop += 1) {
    await page.keyboard.press("Tab");
    walked.push(await page.evaluate(() => document.activeElement.textContent));
  }
  const missing = ["Overview", "Week", "Latency", "Method"].filter((name) => !walked.includes(name));
  check("keyboard navigation", [skip === "Skip to content" ? [] : [skip], at === "content" ? [] : [at], missing].flat());
  await context.close();
}

// Counts the steps and the gaps of the first chart in whose middle something coloured is drawn: [with ink, all] for each.
const inked = (page) => page.evaluate(async () => {
  const { targets, step_seconds, from_us, until_us } = await (await fetch(`/api/v1/latency/series${location.search}`)).json();
  const { target, steps } = targets[0];
  const plot = document.querySelector(`#zoom-${target}`);
  const [canvas, over] = [plot.querySelector("canvas"), plot.querySelector(".u-over").getBoundingClientRect()];
  const [scale, left] = [canvas.width / canvas.clientWidth, over.left - canvas.getBoundingClientRect().left];
  const copy = Object.assign(document.createElement("canvas"), { width: canvas.width, height: canvas.height });
  const pixels = copy.getContext("2d", { willReadFrequently: true });
  pixels.drawImage(canvas, 0, 0);
  const hasInk = (at_us) => {
    const x = Math.floor((left + (at_us - from_us) / (until_us - from_us) * over.width) * scale);
    const { data } = pixels.getImageData(x, 0, 1, canvas.height);
    for (let at = 0; at < data.length; at += 4) {
      const rgb = [data[at], data[at + 1], data[at + 2]];
      if (data[at + 3] > 40 && Math.max(...rgb) - Math.min(...rgb) > 40) return true;
    }
    return false;
  };
  const ends = (step) => step.at_us + step_seconds * 1e6;
  const inside = steps.filter((step) => step.at_us > from_us && ends(step) < until_us);
  const gaps = inside.slice(1).map((step, place) => [ends(inside[place]), step.at_us]).filter(([from, to]) => to - from > step_seconds * 1e6);
  const share = (all) => [all.filter(hasInk).length, all.length];
  return { steps: share(inside.map((step) => step.at_us + step_seconds * 5e5)), gaps: share(gaps.map(([from, to]) => (from + to) / 2)) };
});

for (const colorScheme of ["light", "dark"]) { // Charts can be zoomed: URL and chart follow, gaps stay empty, a double click zooms out.
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, colorScheme });
  const { page, faults } = await open(context, "/latency?days=7");
  const expect = (holds, what) => holds || faults.push(what);
  const over = page.locator(".zoom-plot .u-over").first();
  await over.waitFor();
  const days = () => Number(new URL(page.url()).searchParams.get("days"));
  const drawn = () => page.locator(".zoom-plot canvas").first().evaluate((canvas) => canvas.toDataURL());
  const settled = async (act) => {
    const answer = page.waitForResponse((response) => response.url().includes("/api/v1/latency/series"));
    await act();
    await (await answer).finished();
    await page.waitForTimeout(300);
  };
  expect((await page.locator(".zoomed > .chart").first().isVisible()) === false, "a chart is drawn twice");
  faults.push(...await violations(page));
  const ink = await inked(page);
  expect(ink.steps[1] > 20 && ink.steps[0] === ink.steps[1], `steps with ink: ${ink.steps}`);
  expect(ink.gaps[1] > 1 && ink.gaps[0] === 0, `gaps with ink: ${ink.gaps}`);
  const before = await drawn();
  const { x, y, width, height } = await over.boundingBox();
  await settled(async () => {
    await page.mouse.move(x + width / 4, y + height / 2);
    await page.mouse.down();
    await page.mouse.move(x + width / 2, y + height / 2, { steps: 8 });
    await page.mouse.up();
  });
  expect(Math.abs(days() - 1.75) < 0.1, `dragging leads to ${page.url()}`);
  expect((await drawn()) !== before, "dragging does not redraw the chart");
  const [shown, closer] = await Promise.all([page.locator(".time-nav p").innerText(), page.goto(page.url()).then(() => page.locator(".time-nav p").innerText())]);
  expect(shown === closer, `${shown} is ${closer} after reloading`);
  await over.waitFor();
  await page.locator(".zoom-plot").first().focus();
  await settled(() => page.keyboard.press("+"));
  expect(days() < 1, "+ zooms in");
  await settled(() => page.keyboard.press("ArrowLeft"));
  expect(await page.evaluate(() => document.activeElement.classList.contains("zoom-plot")), "the chart keeps the keyboard focus");
  await settled(() => page.locator("#zoom-out").click());
  expect(days() > 1, "the zoom-out link updates the chart without a page load");
  await settled(() => over.dblclick());
  expect(Math.abs(days() - 1.75) < 0.1, `a double click leads to ${page.url()}`);
  await settled(() => page.goBack());
  expect(days() > 1.7, "the back button restores the range");
  faults.push(...await violations(page));
  check(`charts can be zoomed, ${colorScheme}`, faults);
  await context.close();
}

await browser.close();
console.log(failed === 0 ? "all checks passed" : `${failed} checks failed`);
process.exit(failed === 0 ? 0 : 1);
