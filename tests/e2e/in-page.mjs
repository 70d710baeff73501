// What the tests run inside the page: the bodies of functions, as text.

/** Collects the whole thread in one go, so that what is compared belongs to one moment. */
export const LOOK = `
  const all = (id) => [...document.querySelectorAll('[data-testid="' + id + '"]')];
  const text = (element) => element.innerText.trim();
  const isTool = (element) => element.dataset.testid === "tool-card";
  // Tool cards are inside the answer that made the calls; here they are entries of their own.
  const own = (element) => (element.dataset.testid === "message-assistant"
    ? [...element.children].filter((child) => !isTool(child)).map(text).filter(Boolean).join("\\n")
    : text(element));
  const entries = document.querySelectorAll(
    '[data-testid="message-user"], [data-testid="message-assistant"], [data-testid="tool-card"], [data-testid="error-note"]');
  return {
    ready: all("composer-input").length === 1,
    state: all("turn-state")[0]?.dataset.state ?? null,
    draft: all("composer-input")[0]?.value ?? null,
    sessions: all("session-item").map(text),
    notices: all("composer-notice").map(text),
    toasts: [...document.querySelectorAll(".toast")].map(text),
    previews: all("attachment").length,
    pictures: [...document.querySelectorAll('[data-testid="message-user"] img')].filter((image) => image.naturalWidth > 0).length,
    entries: [...entries].map((element) => ({
      kind: element.dataset.testid,
      text: own(element),
      arguments: isTool(element) ? element.querySelector("pre:not([data-testid])")?.innerText ?? null : null,
      output: isTool(element) ? element.querySelector('[data-testid="tool-output"]')?.innerText ?? null : null,
      tool: element.dataset.tool ?? null,
      state: element.dataset.state ?? null,
      code: element.dataset.code ?? null,
      canRetry: element.querySelector('[data-testid="retry-button"]') !== null,
    })),
  };`;

/** Lets another window win the race: it opens the session between its closing here and its deletion. */
export const REOPENED = `
  const [sessionId] = arguments;
  const { fetch } = window;
  window.fetch = async (...request) => {
    if (String(request[0]).includes("delete_session")) {
      window.fetch = fetch;
      await window.__TAURI_INTERNALS__.invoke("plugin:youyou-agent|resume_session", { sessionId, options: { replace: true } });
    }
    return fetch(...request);
  };`;

/** Makes of a name, a type and base64 what the clipboard or a file manager would give. */
export const FILE = `
  const [name, type, base64] = arguments;
  const transfer = new DataTransfer();
  transfer.items.add(new File([Uint8Array.from(atob(base64), (one) => one.charCodeAt(0))], name, { type }));`;

/** Answers whether the backend said that it has no session, and asks it again: commands answer later. */
export const NONE_STORED = `
  window.__TAURI_INTERNALS__.invoke("plugin:youyou-agent|list_sessions", { cursor: null, limit: null })
    .then(({ sessions }) => { window.noneStored = sessions.length === 0; });
  return window.noneStored === true;`;

/** From now on: how long the page draws nothing, and how long a timer of it waits, into `window.pauses`. */
export const WATCH_PAUSES = `
  const seen = (window.pauses = { frame: 0, timer: 0 });
  const watch = (key, next) => {
    let last = performance.now();
    const tick = () => {
      const now = performance.now();
      seen[key] = Math.max(seen[key], now - last);
      last = now;
      if (window.pauses === seen) next(tick);
    };
    next(tick);
  };
  watch("frame", (tick) => requestAnimationFrame(tick));
  watch("timer", (tick) => setTimeout(tick, 5));`;

/**
 * Has WebKit collect its garbage, all of it: what is allocated here is never touched, so it takes no memory,
 * but it counts, and the collector looks at everything once enough has come together.
 */
export const COLLECT = `
  for (let round = 0; round < 64; round += 1) new ArrayBuffer(32 * 1024 * 1024);`;
