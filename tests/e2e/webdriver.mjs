// A WebDriver client: the few commands of the W3C protocol that the end-to-end tests need.
// It knows nothing of the chat app, and nothing of how the driver was started.

/** The key under which WebDriver hides an element's id. */
const ELEMENT = "element-6066-11e4-a52e-4f735466cecf";

/** A command that hangs is a failure, not a reason to wait for ever. */
const COMMAND_LIMIT_MS = 30_000;

/** Keys that have no character of their own. */
export const Key = { enter: "\uE007", escape: "\uE00C", backspace: "\uE003", tab: "\uE004" };

/** What the driver answered instead of doing it; `code` is the protocol's own, e.g. `no such element`. */
export class WebDriverError extends Error {
  constructor(command, code, message) {
    super(`${command}: ${code}: ${message}`);
    this.code = code;
  }
}

/** One app under the control of one driver; commands go to the window it was switched to last. */
export class Browser {
  #session;

  constructor(session) {
    this.#session = session;
  }

  /** Asks the driver at `address` to start the program and answers its window. */
  static async start(address, program) {
    const capabilities = { alwaysMatch: { "webkitgtk:browserOptions": { binary: program, args: [] } } };
    const { sessionId } = await request("POST", `${address}/session`, { capabilities });
    return new Browser(`${address}/session/${sessionId}`);
  }

  /** Whether the driver at `address` takes a new session. */
  static async isReady(address) {
    return request("GET", `${address}/status`).then(
      (status) => status.ready,
      () => false,
    );
  }

  /** Closes the window the way a person does; the program then ends by itself. */
  async quit() {
    await this.#call("DELETE", "");
  }

  /** The handles of all open windows, in no order. */
  async windows() {
    return this.#call("GET", "/window/handles");
  }

  /** Lets all further commands go to this window. */
  async switchTo(handle) {
    await this.#call("POST", "/window", { handle });
  }

  /** Closes the present window alone; another one must be switched to afterwards. */
  async closeWindow() {
    await this.#call("DELETE", "/window");
  }

  async address() {
    return this.#call("GET", "/url");
  }

  /** Opens another page in the present window. */
  async go(url) {
    await this.#call("POST", "/url", { url });
  }

  async reload() {
    await this.#call("POST", "/refresh", {});
  }

  /** The page as a PNG. */
  async screenshot() {
    return Buffer.from(await this.#call("GET", "/screenshot"), "base64");
  }

  /** Gives the window's content this size, in CSS pixels where the window manager allows. */
  async resize(width, height) {
    await this.#call("POST", "/window/rect", { width, height });
  }

  /** Runs the body of a function in the page; what it returns must be JSON. */
  async evaluate(script, ...args) {
    return this.#call("POST", "/execute/sync", { script, args });
  }

  /** Every element that matches the CSS selector now, in the page's order. */
  async all(selector) {
    const found = await this.#call("POST", "/elements", { using: "css selector", value: selector });
    return found.map((element) => new Element(this.#session, element[ELEMENT]));
  }

  /** The first element that matches, or null. */
  async find(selector) {
    return (await this.all(selector))[0] ?? null;
  }

  #call(method, path, body) {
    return request(method, this.#session + path, body);
  }
}

/** An element of the page, as long as the page keeps it. */
export class Element {
  #address;

  constructor(session, id) {
    this.#address = `${session}/element/${id}`;
  }

  /** Clicks its middle with the real pointer; fails when something covers it. */
  async click() {
    await request("POST", `${this.#address}/click`, {});
  }

  /** Types into it, key by key; a file input takes the path of a file. */
  async type(text) {
    await request("POST", `${this.#address}/value`, { text });
  }

  /** The text a person sees. */
  async text() {
    return request("GET", `${this.#address}/text`);
  }

  async attribute(name) {
    return request("GET", `${this.#address}/attribute/${name}`);
  }

  /** A property of the DOM object, e.g. `value`. */
  async property(name) {
    return request("GET", `${this.#address}/property/${name}`);
  }

  async isEnabled() {
    return request("GET", `${this.#address}/enabled`);
  }
}

/**
 * Asks again and again until the condition answers something true, and answers that.
 *
 * An element that the page replaced between two commands is asked for again; any other failure ends
 * the wait at once. After the limit it fails, naming what did not come.
 */
export async function until(what, condition, limitMs = 20_000) {
  const end = Date.now() + limitMs;
  for (;;) {
    const answer = await condition().catch((error) => {
      if (error.code !== "stale element reference") throw error;
    });
    if (answer) return answer;
    if (Date.now() > end) throw new Error(`waited ${limitMs / 1000} s in vain for: ${what}`);
    await new Promise((resume) => setTimeout(resume, 50));
  }
}

async function request(method, url, body) {
  const response = await fetch(url, {
    method,
    headers: { "content-type": "application/json" },
    body: body && JSON.stringify(body),
    signal: AbortSignal.timeout(COMMAND_LIMIT_MS),
  });
  const { value } = await response.json();
  if (!response.ok) throw new WebDriverError(`${method} ${new URL(url).pathname}`, value.error, value.message);
  return value;
}
