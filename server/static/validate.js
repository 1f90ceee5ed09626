/* The pages of validators with script: keys inside a sentence, progress, choices that survive a reload or a lost
   connection, and the seconds that a page was in sight, which the consent page tells of. Without script the form works
   just the same. */
(() => {
  "use strict";
  const PREFIX = "dynaround sheet ";
  const form = document.getElementById("sheet");
  if (!form) return;
  const key = PREFIX + form.dataset.key;
  const judged = [...form.querySelectorAll("fieldset.judge")];
  const progress = document.getElementById("progress");

  // What this browser remembers of this page; a private window may have no storage.
  const recall = () => {
    try { return JSON.parse(localStorage.getItem(key)) ?? {}; } catch { return {}; }
  };
  const remember = () => {
    try { localStorage.setItem(key, JSON.stringify({ fields: filled(), seconds: seconds() })); } catch { /* nothing is kept then */ }
  };
  const forgetOthers = () => {
    try {
      for (const name of Object.keys(localStorage)) if (name.startsWith(PREFIX) && name !== key) localStorage.removeItem(name);
    } catch { /* as above */ }
  };

  const OWN = new Set(["csrf_token", "page", "try", "seconds"]);
  const filled = () => Object.fromEntries([...new FormData(form)].filter(([name, value]) => value && !OWN.has(name)));
  const restore = (fields) => {
    for (const [name, value] of Object.entries(fields ?? {})) {
      const field = form.elements[name];
      // What the server says was sent stands.
      if (!field || OWN.has(name) || field.value) continue;
      field.value = value;
    }
    for (const one of form.querySelectorAll("details.cannot")) if (one.querySelector(":checked")) one.open = true;
  };

  const before = recall();
  let seen = typeof before.seconds === "number" ? before.seconds : 0;
  let since = document.hidden ? null : performance.now();
  const seconds = () => seen + (since === null ? 0 : (performance.now() - since) / 1000);
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) { seen = seconds(); since = null; remember(); } else since = performance.now();
  });

  const tell = () => {
    let done = 0;
    for (const one of judged) {
      const answered = one.querySelector("input[name$='.answer']:checked") !== null;
      one.classList.toggle("answered", answered);
      done += answered;
    }
    progress.textContent = `${done} of ${judged.length} answered`;
  };
  const go = (place) => {
    const target = judged[place] ?? (place < 0 ? judged[0] : form.querySelector("button"));
    target.focus();
    target.scrollIntoView({ block: "center" });
  };
  const press = (event, place) => {
    if (event.ctrlKey || event.altKey || event.metaKey || event.isComposing) return;
    const typing = event.target.matches("textarea, input[type='text']");
    const choosing = event.target.matches("input[type='radio']");
    if (typing) return;
    const choices = judged[place].querySelectorAll(".options input");
    const chosen = /^[1-9]$/.test(event.key) ? choices[Number(event.key) - 1] : undefined;
    if (chosen) {
      chosen.checked = true;
      chosen.dispatchEvent(new Event("change", { bubbles: true }));
      go(place + 1);
    } else if (event.key === "j" || event.key === "J" || (event.key === "ArrowDown" && !choosing)) go(place + 1);
    else if (event.key === "k" || event.key === "K" || (event.key === "ArrowUp" && !choosing)) go(place - 1);
    else return;
    event.preventDefault();
  };

  judged.forEach((one, place) => one.addEventListener("keydown", (event) => press(event, place)));
  form.addEventListener("input", () => { tell(); remember(); });
  form.addEventListener("change", () => { tell(); remember(); });
  form.addEventListener("submit", () => {
    if (form.elements.seconds) form.elements.seconds.value = seconds().toFixed(1);
    remember();
  });
  // A page that comes back from memory is of the past: it may be given in.
  addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });
  for (const hint of document.querySelectorAll("[data-script]")) hint.hidden = false;
  progress.setAttribute("role", "status");
  forgetOthers();
  restore(before.fields);
  tell();
})();
