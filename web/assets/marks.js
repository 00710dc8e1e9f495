// Tells the marks of a chart to the keyboard: in a focused chart the arrow keys go from mark to mark, and a tooltip shows the title
// that the pointer shows by itself.
"use strict";
(() => {
const tip = Object.assign(document.createElement("div"), { className: "tip", hidden: true });
tip.setAttribute("role", "status");
document.body.append(tip);
let current;

const show = (text, { left, bottom }) => {
  tip.textContent = text;
  tip.hidden = false;
  tip.style.left = `${Math.max(4, Math.min(left, innerWidth - tip.offsetWidth - 4))}px`;
  tip.style.top = `${Math.min(bottom + 4, innerHeight - tip.offsetHeight - 4)}px`;
};
const hide = () => {
  current?.classList.remove("mark-focus");
  current = undefined;
  tip.hidden = true;
};
const marksOf = (chart) => [...chart.querySelectorAll("title")].map((title) => title.parentElement).filter((mark) => mark !== chart);

document.addEventListener("keydown", (event) => {
  const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
  const chart = event.target.closest?.("svg[tabindex]");
  const marks = chart ? marksOf(chart) : [];
  if (event.key === "Escape") return hide();
  if (!step || marks.length === 0) return;
  event.preventDefault();
  const at = marks.indexOf(current);
  hide();
  current = marks[at < 0 ? (step > 0 ? 0 : marks.length - 1) : (at + step + marks.length) % marks.length];
  current.classList.add("mark-focus");
  show(current.querySelector("title").textContent, current.getBoundingClientRect());
});
document.addEventListener("focusout", hide);
addEventListener("scroll", hide, { passive: true });
window.chartTip = { show, hide };
})();
