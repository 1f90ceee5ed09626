/* The pages of authors with script: drafts that survive a reload, a lost connection and a visit that expired, no text sent twice,
   and counts of pasted characters, keys and seconds, which the consent page tells of. Without script the forms work
   just the same. */
(() => {
  "use strict";
  const PREFIX = "dynaround draft ";
  const SOON = 1000;
  let desk = null;

  // What this browser remembers of the example in the making; a private window may have no storage.
  const recall = (key) => {
    try { return JSON.parse(localStorage.getItem(key)) ?? {}; } catch { return {}; }
  };
  const remember = (key, what) => {
    try { localStorage.setItem(key, JSON.stringify(what)); } catch { /* the server keeps drafts too */ }
  };
  const forgetOthers = (key) => {
    try {
      for (const name of Object.keys(localStorage)) if (name.startsWith(PREFIX) && name !== key) localStorage.removeItem(name);
    } catch { /* as above */ }
  };
  const post = (address, body) => fetch(address, { method: "POST", body, credentials: "same-origin", redirect: "manual", signal: AbortSignal.timeout(20000) });

  class Desk {
    constructor(form) {
      this.form = form;
      this.text = form.elements.text;
      this.key = PREFIX + form.dataset.writing;
      this.sending = false;
      this.unsaved = false;
      this.timer = null;
      this.started = null;
      const before = recall(this.key);
      // An attempt was stored since: keys and seconds count anew, what was pasted still stands in the box.
      const same = before.attempts === form.dataset.attempts;
      this.counts = { pasted: before.pasted ?? 0, keystrokes: same ? before.keystrokes : 0, seconds: same ? before.seconds : 0 };
      forgetOthers(this.key);
      // Whoever types before this script has come means what they type.
      const typed = this.text.value !== this.text.defaultValue;
      if (!typed && typeof before.text === "string" && before.text.trim() !== this.text.value.trim()) {
        this.text.value = before.text;
        this.unsaved = true;
        this.say("kept", "Your draft is back.");
      } else {
        // The server has what stands here, unless it refused the text without keeping it.
        this.unsaved = typed || document.querySelector("main .refused") !== null;
        this.note();
      }
      this.listen();
      this.measure();
      if (this.unsaved) this.timer = setTimeout(() => this.keepDraft(), SOON);
    }

    listen() {
      const { form, text } = this;
      text.addEventListener("keydown", () => { this.start(); this.counts.keystrokes += 1; });
      text.addEventListener("paste", (event) => { this.start(); this.counts.pasted += (event.clipboardData?.getData("text") ?? "").length; });
      text.addEventListener("drop", (event) => { this.start(); this.counts.pasted += (event.dataTransfer?.getData("text") ?? "").length; });
      text.addEventListener("input", () => {
        this.start();
        if (!text.value) this.counts.pasted = 0;
        this.unsaved = true;
        this.note();
        this.measure();
        clearTimeout(this.timer);
        this.timer = setTimeout(() => this.keepDraft(), SOON);
      });
      form.addEventListener("submit", (event) => { event.preventDefault(); this.submit(); });
    }

    start() { this.started ??= performance.now(); }

    seconds() { return this.counts.seconds + (this.started === null ? 0 : (performance.now() - this.started) / 1000); }

    // `text` is null once the server has it: then a newer draft from another device must not be overwritten.
    note() {
      const { pasted, keystrokes } = this.counts;
      const text = this.unsaved ? this.text.value : null;
      remember(this.key, { text, pasted, keystrokes, seconds: this.seconds(), attempts: this.form.dataset.attempts });
    }

    say(place, words) { document.getElementById(place).textContent = words; }

    measure() {
      const place = document.getElementById("length");
      const most = Number(place.dataset.most);
      const length = [...this.text.value.trim()].length;
      place.textContent = `${length} of ${most}${length > most ? `, ${length - most} too many` : ""}`;
      place.classList.toggle("over", length > most);
    }

    async keepDraft() {
      if (this.sending || !this.unsaved) return;
      const { form, text } = this;
      const sent = text.value;
      const body = new URLSearchParams({ csrf_token: form.elements.csrf_token.value, writing: form.elements.writing.value, text: sent });
      let kept = false;
      try { kept = (await post(form.dataset.draft, body)).ok; } catch { /* told below */ }
      if (this.sending || text.value !== sent) return;
      this.unsaved = !kept;
      this.note();
      this.say("kept", kept ? "Draft kept." : "Your draft is kept in this browser.");
    }

    async submit() {
      if (this.sending) return;
      this.sending = true;
      clearTimeout(this.timer);
      const { form } = this;
      form.elements.pasted.value = this.counts.pasted;
      form.elements.keystrokes.value = this.counts.keystrokes;
      form.elements.seconds.value = this.seconds().toFixed(1);
      this.unsaved = true;
      this.note();
      this.say("kept", "");
      this.say("state", "The model is reading…");
      let answer, page;
      try {
        answer = await post(form.action, new URLSearchParams(new FormData(form)));
        page = await answer.text();
      } catch {
        this.failed("The connection is lost. Your text is kept; submit it again when you are back.");
        return;
      }
      // Stored, or the way leads elsewhere: to the log-in, and from there back to this text.
      if (answer.type === "opaqueredirect") { location.assign(form.dataset.page); return; }
      const parsed = new DOMParser().parseFromString(page, "text/html");
      if (parsed.querySelector("main #writing, main #unsent, main #result")) { show(parsed); return; }
      const reason = parsed.querySelector("main .lead")?.textContent;
      this.failed(`Not sent, and your text is kept. ${reason ?? "The server does not answer at the moment; submit it again soon."}`);
    }

    failed(words) {
      this.sending = false;
      this.say("state", words);
    }
  }

  // A page that came as the answer takes the place of this one, as it would have without script.
  const show = (parsed) => {
    document.title = parsed.title;
    document.querySelector("main").replaceWith(parsed.querySelector("main"));
    begin();
    (document.querySelector("main [autofocus]") ?? document.querySelector("main")).focus();
    document.getElementById("complaint")?.scrollIntoView({ block: "nearest" });
  };

  const begin = () => {
    for (const box of document.querySelectorAll("textarea.sentence")) {
      // A sentence has one line, so Enter sends it.
      box.addEventListener("keydown", (event) => {
        if (event.key !== "Enter" || event.isComposing) return;
        event.preventDefault();
        box.form.requestSubmit();
      });
    }
    const form = document.getElementById("writing");
    desk = form ? new Desk(form) : null;
  };

  addEventListener("online", () => desk?.keepDraft());
  // A page that comes back from memory is of the past: its example may be done.
  addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });
  begin();
})();
