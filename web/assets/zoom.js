// Lets a reader select, zoom and move through time on the latency page. The server draws every window, also without a script; this
// script turns gestures into addresses, shows the page that the server draws for them, and tells the figures below the pointer.
"use strict";
(() => {
const DAY = 86_400;
/** The shortest and the longest window, in days, and the shortest drag that is not taken for a slip, in pixels. */
const [MIN_DAYS, MAX_DAYS, MIN_DRAG] = [1 / 24, 1_200, 6];
/** Delay before the server is asked for a new window, in milliseconds, so that a series of moves causes one request. */
const DEBOUNCE = 150;

const content = document.getElementById("content");
const opening = location.search;
let view = [0, 0]; // Start and end of the visible window, in seconds since 1970 UTC.
let series;
let turn = 0;
let waiting;

const charts = () => [...content.querySelectorAll("figure[id^=bands-] > .chart")];

// Returns the rectangle of the plot within a chart, from the position of its bands.
const plotOf = (chart) => {
  const { left, top, width, height } = chart.getBoundingClientRect();
  const bands = chart.querySelector(".bands");
  const share = (name) => parseFloat(bands.getAttribute(name)) / 100;
  return { left: left + share("x") * width, width: share("width") * width, top, height };
};
const timeAt = (chart, clientX) => {
  const { left, width } = plotOf(chart);
  return view[0] + Math.min(1, Math.max(0, (clientX - left) / width)) * (view[1] - view[0]);
};

// Returns the query of a window.
const queryOf = (from, until) => {
  const query = new URLSearchParams(location.search);
  query.set("days", +Math.min(MAX_DAYS, Math.max(MIN_DAYS, (until - from) / DAY)).toFixed(4));
  query.set("until", Math.round(Math.min(until, Date.now() / 1e3) * 1e6));
  return `?${query}`;
};

// Goes to another window after a delay without further moves.
const go = (search) => {
  history[waiting ? "replaceState" : "pushState"](null, "", search || location.pathname);
  clearTimeout(waiting);
  waiting = setTimeout(load, DEBOUNCE);
};
const goTo = (from, until) => {
  const late = Math.max(0, until - Date.now() / 1e3);
  view = [from - late, until - late];
  go(queryOf(...view));
};
// Scales the window around its middle by a factor, and moves it by a share of its length.
const change = (factor, share) => {
  const [from, until] = view;
  const [middle, half] = [(from + until) / 2 + share * (until - from), factor * (until - from) / 2];
  goTo(middle - half, middle + half);
};
const KEYS = {
  ArrowLeft: () => change(1, -0.25), ArrowRight: () => change(1, 0.25),
  "+": () => change(0.5, 0), "=": () => change(0.5, 0), "-": () => change(2, 0), 0: () => go(opening),
};

// Loads the page for the current address and replaces its content.
const load = async () => {
  waiting = undefined;
  turn += 1;
  const own = turn;
  try {
    const page = await fetch(location.href);
    const text = await page.text();
    if (own !== turn || waiting) return;
    const next = new DOMParser().parseFromString(text, "text/html").getElementById("content");
    const opened = [...content.querySelectorAll("details[open]")].map((one) => one.parentElement.id);
    const focused = document.activeElement?.closest("[id]")?.id;
    content.replaceChildren(...next.childNodes);
    opened.forEach((id) => id && document.getElementById(id)?.querySelector("details")?.setAttribute("open", ""));
    start();
    const again = focused && document.getElementById(focused);
    if (again) (again.querySelector(".chart") ?? again).focus({ preventScroll: true });
  } catch {
    location.reload();
  }
};

// Formats a duration in seconds, as the tables do.
const time = (seconds) => {
  const [factor, unit] = seconds >= 1 ? [1, "s"] : seconds >= 1e-3 ? [1e3, "ms"] : [1e6, "µs"];
  return `${+(seconds * factor).toPrecision(3)} ${unit}`;
};

// Returns the figures of a target at a time; undefined while they are not loaded.
const figuresAt = (chart, at) => {
  const target = series?.targets.find(({ target }) => chart.parentElement.id === `bands-${target}`);
  if (!target) return undefined;
  const step = target.steps.find((step) => step.at_us / 1e6 <= at && at < step.at_us / 1e6 + series.step_seconds);
  const when = new Date((step ? step.at_us / 1e6 : at) * 1e3).toLocaleString("sv", { timeZone: series.zone ?? undefined, dateStyle: "short", timeStyle: "short" });
  if (!step) return `${when}: no requests`;
  const spread = step.p50 === null ? "no answer" : `median ${time(step.p50)}, nine in ten from ${time(step.p5)} to ${time(step.p95)}`;
  return `${when}: ${spread}; n ${step.count}${step.failed > 0 ? `, ${step.failed} failed` : ""}`;
};

// Fetches the figures of the window. The form sends empty fields, which the interface rejects, so they are removed.
const fetchSeries = async () => {
  series = undefined;
  const own = turn;
  const query = [...new URLSearchParams(location.search)].filter(([, value]) => value !== "");
  const answer = await fetch(`/api/v1/latency/series?${new URLSearchParams(query)}`);
  const figures = answer.ok ? await answer.json() : undefined;
  if (own === turn) series = figures;
};

// Draws the selection while a reader drags.
const selection = Object.assign(document.createElement("div"), { className: "selection", hidden: true });
document.body.append(selection);
let drag;
const moveSelection = (clientX) => {
  const { left, width, top, height } = plotOf(drag.chart);
  const [from, to] = [drag.from, clientX].map((x) => Math.min(left + width, Math.max(left, x))).sort((a, b) => a - b);
  Object.assign(selection.style, { left: `${from}px`, width: `${to - from}px`, top: `${top}px`, height: `${height}px` });
  selection.hidden = to - from < MIN_DRAG;
};
const endDrag = (event) => {
  const { chart, from } = drag;
  drag = undefined;
  selection.hidden = true;
  if (event.type !== "pointerup" || Math.abs(event.clientX - from) < MIN_DRAG) return;
  const [first, last] = [from, event.clientX].map((x) => timeAt(chart, x)).sort((a, b) => a - b);
  goTo(first, last);
};

const start = () => {
  const nav = content.querySelector(".time-nav");
  if (!nav) return;
  view = [nav.dataset.from / 1e6, nav.dataset.until / 1e6];
  document.getElementById("zoom-hint")?.toggleAttribute("hidden", charts().length === 0);
  for (const chart of charts()) {
    chart.classList.add("zoomable");
    chart.setAttribute("aria-describedby", "zoom-hint");
    chart.addEventListener("pointerdown", (event) => {
      if (!event.isPrimary || event.button !== 0) return;
      event.preventDefault();
      chart.focus({ preventScroll: true });
      drag = { chart, from: event.clientX };
      chart.setPointerCapture(event.pointerId);
    });
    chart.addEventListener("pointermove", (event) => {
      if (drag) return moveSelection(event.clientX);
      const words = figuresAt(chart, timeAt(chart, event.clientX));
      if (words) window.chartTip.show(words, { left: event.clientX + 8, bottom: event.clientY + 8 });
    });
    ["pointerup", "pointercancel"].forEach((name) => chart.addEventListener(name, (event) => drag && endDrag(event)));
    chart.addEventListener("pointerleave", () => window.chartTip.hide());
    chart.addEventListener("dblclick", () => go(opening));
    chart.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || !KEYS[event.key]) return;
      event.preventDefault();
      event.stopPropagation();
      KEYS[event.key]();
    });
  }
  fetchSeries();
};

content.addEventListener("click", (event) => {
  const link = event.target.closest(".time-nav a, .ranges a");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  go(link.search);
});
addEventListener("popstate", load);
start();
})();
