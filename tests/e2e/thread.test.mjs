// Reading: what one looks at stays where it is on the screen.
import assert from "node:assert/strict";
import { onStage } from "./stage.mjs";
import { until } from "./webdriver.mjs";

/** So far, in pixels, may move what is promised to stay. */
const STILL = 3;

/** So long a head is watched after it was clicked, in milliseconds. */
const WATCH_MS = 1_500;

/** Longer than any pause after which the thread could take what was unfolded for measured. */
const BUSY_MS = 600;

const TOOL = '[data-testid="tool-card"] [aria-expanded]';
const REASONING = '[data-testid="reasoning"] [aria-expanded]';

/** Clicks a head some times and watches where it is in every frame; the page may be busy meanwhile. */
const WATCH = `
  const [selector, index, clicks, pauseMs, busyMs] = arguments;
  const head = [...document.querySelectorAll(selector)].at(index);
  const place = head.getBoundingClientRect().top;
  const seen = (window.watched = { farthest: 0, expanded: null, over: false });
  const look = () => {
    seen.farthest = Math.max(seen.farthest, Math.abs(head.getBoundingClientRect().top - place));
    seen.expanded = head.getAttribute("aria-expanded");
    if (!seen.over) requestAnimationFrame(look);
  };
  const click = (left) => {
    head.click();
    if (left > 1) setTimeout(click, pauseMs, left - 1);
  };
  click(clicks);
  for (const end = performance.now() + busyMs; performance.now() < end; );
  requestAnimationFrame(look);
  setTimeout(() => { seen.over = true; }, ${WATCH_MS});`;

async function clickAndWatch(chat, { selector, index }, { clicks = 1, pauseMs = 0, busyMs = 0 } = {}) {
  await chat.browser.evaluate(WATCH, selector, index, clicks, pauseMs, busyMs);
  return until("the end of watching", async () => {
    const seen = await chat.browser.evaluate("return window.watched;");
    return seen.over && seen;
  });
}

/** Scrolls to the end of the thread, or puts what matches into the middle, and lets that settle. */
async function bring(chat, { selector, index, atEnd }) {
  const script = atEnd
    ? `const thread = document.querySelector('[data-testid="thread"]'); thread.scrollTop = thread.scrollHeight;`
    : "[...document.querySelectorAll(arguments[0])].at(arguments[1]).scrollIntoView({ block: 'center' });";
  await chat.browser.evaluate(script, selector, index);
  const place = () =>
    chat.browser.evaluate(
      `const thread = document.querySelector('[data-testid="thread"]').getBoundingClientRect();
      const head = [...document.querySelectorAll(arguments[0])].at(arguments[1]).getBoundingClientRect();
      return { top: head.top, seen: head.top >= thread.top && head.bottom <= thread.bottom };`,
      selector,
      index,
    );
  let before = await place();
  await until("a head that rests in sight", async () => {
    const now = await place();
    const rests = now.seen && now.top === before.top;
    before = now;
    return rests;
  });
}

onStage("a thread that is read", { shared: true }, (stage) => {
  stage.promise("what is unfolded and folded stays where it is, however often and however busy the page", async () => {
    const { chat } = stage;
    const texts = ["list files", "read README.md and Cargo.toml", "long answer", "flood 6000", "list files"];
    for (const text of texts) await chat.ask(text);
    const heads = [
      { what: "the newest tool card", selector: TOOL, index: -1, atEnd: true },
      { what: "a tool card in the middle", selector: TOOL, index: 1 },
      { what: "reasoning in the middle", selector: REASONING, index: 0 },
    ];
    const ways = [{}, { busyMs: BUSY_MS }, { clicks: 3, pauseMs: 30 }];
    for (const head of heads) {
      for (const way of ways) {
        await bring(chat, head);
        const told = `${head.what}, ${JSON.stringify(way)}`;
        for (const expanded of ["true", "false"]) {
          const seen = await clickAndWatch(chat, head, way);
          if (expanded === "true" && head.what === heads[0].what) await stage.photograph("unfolded");
          assert.equal(seen.expanded, expanded, told);
          assert.ok(seen.farthest <= STILL, `${told}: it moved by ${seen.farthest} pixels`);
        }
      }
    }
  });
});
