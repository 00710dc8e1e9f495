// Updates the live parts of a page. The server renders them; this script only inserts them.
"use strict";
const events = new EventSource("/stream");
// Changes what differs and leaves the rest, so that focus, selection and scroll position stay.
const update = (old, fresh) => {
  if (old.nodeType !== fresh.nodeType || old.nodeName !== fresh.nodeName) return old.replaceWith(fresh);
  if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.data !== fresh.data) old.data = fresh.data;
    return;
  }
  for (const { name } of [...old.attributes]) if (name !== "open" && !fresh.hasAttribute(name)) old.removeAttribute(name);
  for (const { name, value } of fresh.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  updateChildren(old, fresh);
};
const updateChildren = (old, fresh) => {
  const nodes = [...fresh.childNodes];
  while (old.childNodes.length > nodes.length) old.lastChild.remove();
  nodes.forEach((node, place) => (place < old.childNodes.length ? update(old.childNodes[place], node) : old.append(node)));
};
for (const part of document.querySelectorAll("[data-live]")) {
  events.addEventListener(part.dataset.live, (event) => {
    const template = document.createElement("template");
    template.innerHTML = event.data;
    updateChildren(part, template.content);
  });
}
const disconnected = document.getElementById("disconnected");
// Delay before a page says that it is not updated, in milliseconds. The service cuts each connection after a while, and a page whose
// stream was cut connects again within seconds.
const GRACE = 10_000;
let timer;
events.addEventListener("open", () => {
  clearTimeout(timer);
  timer = undefined;
  disconnected.hidden = true;
});
events.addEventListener("error", () => {
  if (events.readyState !== EventSource.CLOSED) {
    timer ??= setTimeout(() => { disconnected.hidden = false; }, GRACE);
    return;
  }
  // The service refused the stream, and the browser does not try again.
  disconnected.textContent = disconnected.dataset.closed;
  disconnected.hidden = false;
});
addEventListener("pagehide", () => events.close());
// A page that the browser kept and shows again has no stream any more.
addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });
