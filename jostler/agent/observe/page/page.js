// Keeps the page up to date: fetches it again and changes only what differs, so that scroll, focus,
// selection and open parts stay.  Nothing fetched is ever run: it is parsed as an inert document.
(() => {
  "use strict";
  const EVERY_MS = 5000;
  const PATIENCE_MS = 10000;
  const live = document.getElementById("live");
  const said = document.getElementById("live-text");
  const pause = document.getElementById("live-pause");
  let paused = false;
  let asking = false;
  let timer = 0;
  let silentSince = null;

  const keyOf = (node) => (node.nodeType === Node.ELEMENT_NODE && node.dataset.key) || null;

  const alike = (one, other) =>
    one.nodeType === other.nodeType && one.nodeName === other.nodeName && keyOf(one) === keyOf(other);

  // Whether a part is open is the reader's affair.
  const readers = (element, attribute) => attribute === "open" && element.nodeName === "DETAILS";

  const morphAttributes = (old, fresh) => {
    for (const { name } of [...old.attributes]) {
      if (!fresh.hasAttribute(name) && !readers(old, name)) old.removeAttribute(name);
    }
    for (const { name, value } of fresh.attributes) {
      if (old.getAttribute(name) !== value && !readers(old, name)) old.setAttribute(name, value);
    }
  };

  const morphChildren = (old, fresh) => {
    const keyed = new Map();
    for (const child of old.childNodes) if (keyOf(child)) keyed.set(keyOf(child), child);
    let at = old.firstChild;
    for (const want of [...fresh.childNodes]) {
      const key = keyOf(want);
      const found = key ? keyed.get(key) : at;
      if (key) keyed.delete(key);
      if (found && alike(found, want)) {
        if (found === at) at = at.nextSibling;
        else old.insertBefore(found, at);
        morph(found, want);
      } else {
        old.insertBefore(document.importNode(want, true), at);
      }
    }
    while (at) {
      const next = at.nextSibling;
      at.remove();
      at = next;
    }
  };

  const morph = (old, fresh) => {
    if (old.isEqualNode(fresh)) return;
    if (old.nodeType !== Node.ELEMENT_NODE) {
      old.nodeValue = fresh.nodeValue;
      return;
    }
    morphAttributes(old, fresh);
    morphChildren(old, fresh);
  };

  const show = (fresh) => {
    const parts = document.querySelectorAll("[data-live]");
    for (const part of parts) {
      const other = fresh.querySelector(`[data-live="${part.dataset.live}"]`);
      if (!other) throw new Error("not a status page");
      morph(part, other);
    }
    document.title = fresh.title;
    const icon = document.querySelector("link[rel=icon]");
    const freshIcon = fresh.querySelector("link[rel=icon]");
    if (icon.href !== freshIcon.href) icon.href = freshIcon.href;
  };

  const ask = async () => {
    const answer = await fetch(location.pathname, {
      cache: "no-store",
      signal: AbortSignal.timeout(PATIENCE_MS),
    });
    if (!answer.ok) throw new Error(`the agent answered ${answer.status}`);
    return new DOMParser().parseFromString(await answer.text(), "text/html");
  };

  const say = () => {
    live.hidden = false;
    const silent = silentSince !== null;
    live.className = silent ? "silent" : "";
    document.body.classList.toggle("stale", silent);
    const text = silent
      ? `The agent has not answered since ${silentSince.toISOString().slice(11, 19)} UTC. ` +
        "Below is what it said last."
      : paused ? "Paused" : "Live";
    if (said.textContent !== text) said.textContent = text;
  };

  const refresh = async () => {
    if (paused || asking || document.hidden) return;
    asking = true;
    clearTimeout(timer);
    try {
      show(await ask());
      silentSince = null;
    } catch {
      silentSince ??= new Date();
    }
    asking = false;
    say();
    timer = setTimeout(refresh, EVERY_MS);
  };

  pause.addEventListener("click", () => {
    paused = !paused;
    pause.setAttribute("aria-pressed", String(paused));
    clearTimeout(timer);
    say();
    refresh();
  });
  document.addEventListener("visibilitychange", refresh);
  say();
  timer = setTimeout(refresh, EVERY_MS);
})();
