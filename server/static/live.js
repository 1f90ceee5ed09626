/* The launcher's page with script: new figures every 15 seconds, unless somebody is using the old ones or wants none. */
(() => {
  "use strict";
  const PERIOD = 15000;
  const every = document.getElementById("every");
  every.hidden = false;
  setInterval(async () => {
    const old = document.getElementById("figures");
    if (!every.querySelector("input").checked || document.hidden || old.contains(document.activeElement)) return;
    let page;
    try {
      const answer = await fetch(location.href, { credentials: "same-origin" });
      if (!answer.ok) return;
      page = await answer.text();
    } catch { return; }
    const fresh = new DOMParser().parseFromString(page, "text/html").getElementById("figures");
    if (fresh && !old.contains(document.activeElement)) old.replaceWith(fresh);
  }, PERIOD);
})();
