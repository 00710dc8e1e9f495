// Tests the dashboard in a real browser: node suite.mjs BASE WEEK TOKEN. Prints one line per check; exits with 1 if one failed.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";

const [base, week, token] = process.argv.slice(2);
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const pages = ["/", week, "/tasks/photo-batch", "/latency?days=28", "/why?rtt=20ms", "/checks", "/events", "/runs", "/runs/1", "/targets", "/method"];
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

{ // On a laptop the first screen shows everything that answers the question, without scrolling.
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  const { page } = await open(context, "/");
  const below = await page.evaluate(() => ["#answer", ".task-rows", ".strips", ".problems", ".now"]
    .filter((selector) => (document.querySelector(selector)?.getBoundingClientRect()?.bottom ?? Infinity) > innerHeight));
  check("the first screen shows the answer, tasks, rounds, problems and now", below);
  await context.close();
}

{ // The header stays on one line with the longest state between rounds.
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  const { page } = await open(context, "/");
  const rows = await page.evaluate(() => {
    const state = document.querySelector(".state-now");
    state.removeAttribute("data-live");
    state.lastChild.textContent = "waiting for the next round: 2026-11-26 05:12:56";
    return [...document.querySelectorAll("header.top > *")].map((element) => element.getBoundingClientRect().top)
      .filter((top) => top > 40).map((top) => `an element begins at ${top} px`);
  });
  check("the header has one line at 1280 px", rows);
  await context.close();
}

for (const [width, path] of [[1280, week], [390, week], [1280, "/tasks/photo-batch"], [390, "/latency?days=28"], [1280, "/events"]]) {
  // No label of a chart overlaps another label, a mark or an axis that is not its own.
  const context = await browser.newContext({ viewport: { width, height: 800 } });
  const { page } = await open(context, path);
  const overlaps = await page.evaluate(() => [...document.querySelectorAll(".chart")].flatMap((chart) => {
    const box = (element) => element.getBoundingClientRect();
    const meet = (a, b, slack) => a.left < b.right - slack && b.left < a.right - slack && a.top < b.bottom - slack && b.top < a.bottom - slack;
    const texts = [...chart.querySelectorAll("text")];
    if (texts.length === 0) return [`${chart.closest("figure")?.id} has no label`];
    const marks = [...chart.querySelectorAll(".mark path, line.range, line.one, line.cap")];
    const named = (text) => `${chart.closest("figure")?.id}: ${text.textContent}`;
    return texts.flatMap((text, place) => [
      ...texts.slice(place + 1).filter((other) => meet(box(text), box(other), 1.5)).map((other) => `${named(text)} / ${other.textContent}`),
      ...marks.filter((mark) => meet(box(text), box(mark), 2.5)).map((mark) => `${named(text)} / ${mark.outerHTML.slice(0, 60)}`),
    ]);
  }));
  const charts = await page.locator(".chart").count();
  check(`labels of ${path} at ${width} px do not overlap`, charts > 2 ? overlaps.slice(0, 5) : [`only ${charts} charts`]);
  await context.close();
}

{ // Colours: the switch works without JavaScript, and stays on the page.
  const context = await browser.newContext({ javaScriptEnabled: false, colorScheme: "light" });
  const { page, faults } = await open(context, "/latency?days=28");
  await page.locator("button", { hasText: "Dark" }).click();
  const ground = await page.locator("body").evaluate((body) => getComputedStyle(body).backgroundColor);
  check("dark colours without JavaScript", faults.concat(page.url() === `${base}/latency?days=28` ? [] : [page.url()], ground === "rgb(13, 15, 18)" ? [] : [ground]));
  await context.close();
}

{ // Marks: in a focused chart the arrow keys show the title of each mark.
  const context = await browser.newContext();
  const { page, faults } = await open(context, "/");
  await page.locator("svg.strip").first().focus();
  await page.keyboard.press("ArrowLeft");
  const newest = await page.locator(".tip").innerText();
  await page.keyboard.press("ArrowLeft");
  const before = await page.locator(".tip").innerText();
  const is_title = (text) => /^\d+ \w+ \d\d:\d\d: (ok|slow|failed|missed)$/.test(text);
  check("marks are told to the keyboard", faults.concat([newest, before].filter((text) => !is_title(text)), newest === before ? ["the same mark twice"] : []));
  await context.close();
}

{ // A live round appears without reloading.
  const context = await browser.newContext();
  const { page, faults } = await open(context, "/");
  // The test that runs this program waits for this line.
  console.log("a round begins");
  await page.locator("text=4 of 12 runs").first().waitFor({ timeout: 60_000 });
  check("the live round appears without reloading", faults);
  await context.close();
}

{ // A chart as a file of its own has its style.
  const context = await browser.newContext();
  const { page } = await open(context, week);
  const { page: file, faults } = await open(context, await page.locator(".chart-links a").first().getAttribute("href"));
  const digits = await file.evaluate(() => getComputedStyle(document.documentElement).fontVariantNumeric);
  // A browser may ask for an icon, which a chart does not have.
  const others = faults.filter((fault) => !fault.includes("favicon.ico"));
  check("a chart file has its style", others.concat(digits === "tabular-nums" ? [] : [`${digits} digits`]));
  await context.close();
}

// Opens a page whose requests for a stream are answered by `answer`, and collects each notice that the page shows.
const openWithStream = async (answer) => {
  const context = await browser.newContext();
  await context.route("**/stream", answer);
  await context.addInitScript(() => {
    window.notices = [];
    // The first change of the state comes before the deferred scripts run.
    document.addEventListener("readystatechange", () => {
      const notice = document.getElementById("disconnected");
      const note = () => notice.hidden || window.notices.push(notice.textContent);
      if (notice) new MutationObserver(note).observe(notice, { attributes: true });
    }, { once: true });
  });
  return { context, page: (await open(context, "/")).page };
};

{ // A stream that is cut once is connected again without a notice.
  let streams = 0;
  let change;
  const changed = new Promise((resolve) => { change = resolve; });
  const { context, page } = await openWithStream(async (route) => {
    streams += 1;
    if (streams === 1) return route.fulfill({ contentType: "text/event-stream", body: "retry: 1000\n\n" });
    await changed;
    return route.continue();
  });
  const state = page.locator("[data-live=state]");
  await state.evaluate((part) => { part.textContent = "before the update"; });
  change();
  const updated = page.locator("[data-live=state]", { hasNotText: "before the update" });
  const faults = await updated.waitFor({ timeout: 60_000 }).then(() => [], () => ["no update"]);
  const notices = await page.evaluate(() => window.notices);
  check("a stream that was cut once goes on without a notice", faults.concat(notices, streams > 1 ? [] : ["the stream was not cut"]));
  await context.close();
}

for (const [what, answer, words] of [
  ["cannot be reached", (route) => route.abort("connectionreset"), "does not respond"],
  ["is refused", (route) => route.fulfill({ status: 503 }), "no longer updated"],
]) { // A page that is not updated any more says so.
  const { context, page } = await openWithStream(answer);
  const notice = page.locator("#disconnected", { hasText: words });
  check(`a stream that ${what} is told`, await notice.waitFor({ timeout: 60_000 }).then(() => [], () => ["no notice"]));
  await context.close();
}

{ // A page that the browser kept and shows again is loaded anew.
  const context = await browser.newContext();
  const { page, faults } = await open(context, "/");
  const loaded = page.waitForEvent("load", { timeout: 60_000 }).then(() => [], () => ["it stays as it was"]);
  await page.evaluate(() => { setTimeout(() => dispatchEvent(new PageTransitionEvent("pageshow", { persisted: true }))); });
  check("a page shown again is loaded anew", faults.concat(await loaded));
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

for (const colorScheme of ["light", "dark"]) { // Charts can be zoomed: address and chart follow, a double click zooms out.
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, colorScheme });
  const { page, faults } = await open(context, "/latency?days=7");
  const expect = (holds, what) => holds || faults.push(what);
  const chart = page.locator(".zoomable").first();
  await chart.waitFor();
  const days = () => Number(new URL(page.url()).searchParams.get("days"));
  const drawn = () => page.locator(".zoomable .outer").first().getAttribute("d");
  const settled = async (act) => {
    const answer = page.waitForResponse((response) => new URL(response.url()).pathname === "/latency");
    await act();
    await (await answer).finished();
    await page.waitForTimeout(300);
  };
  faults.push(...await violations(page));
  const before = await drawn();
  const { x, y, width, height } = await chart.boundingBox();
  const across = (share) => x + (0.13 + 0.865 * share) * width; // The plot lies from 13 % to 99.5 % of the chart.
  for (let turn = 0; turn < 100 && await page.locator(".tip").isHidden(); turn += 1) { // Until the figures are loaded.
    await page.mouse.move(across(0.9 + (turn % 2) / 50), y + height / 2);
    await page.waitForTimeout(100);
  }
  expect(/^20\d\d-.*(median|no requests|no answer)/.test(await page.locator(".tip").innerText()), "the pointer shows no figures");
  await settled(async () => {
    await page.mouse.move(across(0.25), y + height / 2);
    await page.mouse.down();
    await page.mouse.move(across(0.5), y + height / 2, { steps: 8 });
    await page.mouse.up();
  });
  expect(Math.abs(days() - 1.75) < 0.1, `dragging leads to ${page.url()}`);
  expect((await drawn()) !== before, "dragging does not redraw the chart");
  const [shown, closer] = await Promise.all([page.locator(".time-nav p").innerText(), page.goto(page.url()).then(() => page.locator(".time-nav p").innerText())]);
  expect(shown === closer, `${shown} is ${closer} after reloading`);
  await page.locator(".zoomable").first().focus();
  await settled(() => page.keyboard.press("+"));
  expect(days() < 1, "+ zooms in");
  expect(await page.evaluate(() => document.activeElement.classList.contains("zoomable")), "the chart keeps the keyboard focus");
  await settled(() => page.keyboard.press("ArrowLeft"));
  await settled(() => page.locator("#zoom-out").click());
  expect(days() > 1, "the zoom-out link updates the chart without a page load");
  await settled(() => page.locator(".zoomable").first().dblclick());
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
