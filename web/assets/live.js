// Keeps what is live on a page as it is now. The service draws it; here it is only put in its place.
"use strict";
const events = new EventSource("/events");
const places = document.querySelectorAll("[data-live]");
for (const place of places) {
  events.addEventListener(place.dataset.live, (event) => {
    if (place.innerHTML !== event.data) place.innerHTML = event.data;
  });
}
const lost = document.getElementById("lost");
events.addEventListener("open", () => { lost.hidden = true; });
events.addEventListener("error", () => { lost.hidden = false; });
addEventListener("pagehide", () => events.close());
