// Updates the live parts of a page. The server renders them; this script only inserts them.
"use strict";
const events = new EventSource("/stream");
const parts = document.querySelectorAll("[data-live]");
for (const part of parts) {
  events.addEventListener(part.dataset.live, (event) => {
    if (part.innerHTML !== event.data) part.innerHTML = event.data;
  });
}
const disconnected = document.getElementById("disconnected");
events.addEventListener("open", () => { disconnected.hidden = true; });
events.addEventListener("error", () => { disconnected.hidden = false; });
addEventListener("pagehide", () => events.close());
