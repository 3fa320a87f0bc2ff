// Sends what is to be saved, done and looked at: one request at a time, in order.

const FIRST_WAIT = 1_000;
const LONGEST_WAIT = 10_000;
// Of servers and proxies that are busy or away.
const TRY_AGAIN = [429, 502, 503, 504];

export function csrfToken() {
  return /(?:^|; )(?:__Host-)?staff_csrftoken=([^;]+)/.exec(document.cookie)?.[1] ?? "";
}

// The same in each attempt, so that an act is not done twice if its reply is lost.
function newToken() {
  return Array.from(crypto.getRandomValues(new Uint32Array(4)), (part) => part.toString(36)).join("-");
}

export class Queue {
  // `handlers` are called with what a request led to.
  constructor(addresses, handlers) {
    this.addresses = addresses;
    this.handlers = handlers;
    // By address of the field: { text, seen, left }.
    this.fields = new Map();
    this.acts = [];
    this.look = null;
    this.isRunning = false;
    this.wait = 0;
    this.wake = null;
    window.addEventListener("online", () => this.retry());
    window.addEventListener("focus", () => this.retry());
  }

  get isIdle() {
    return !this.isRunning && !this.fields.size && !this.acts.length && !this.look;
  }

  save(address, text, seen, left = false) {
    const before = this.fields.get(address);
    this.fields.set(address, { text, seen, left: left || before?.left || false });
    this.start();
  }

  // What is selected may be another row when the act is sent.
  act(verb, more = {}) {
    this.acts.push({ verb, more: { ...this.handlers.state(), ...more, token: newToken() } });
    this.start();
  }

  // Only the last selection counts.
  show(state) {
    this.look = state;
    this.start();
  }

  retry() {
    this.wake?.();
  }

  async start() {
    if (this.isRunning) return;
    this.isRunning = true;
    this.handlers.onStart();
    try {
      while (this.fields.size || this.acts.length || this.look) await this.sendNext();
    } finally {
      this.isRunning = false;
    }
    this.handlers.onIdle();
  }

  async sendNext() {
    if (this.fields.size) {
      const [address, field] = this.fields.entries().next().value;
      const body = { [`f:${address}`]: field.text, [`seen:${address}`]: field.seen };
      if (field.left) body.left = address;
      const reply = await this.post(body);
      const current = this.fields.get(address);
      const isLatest = current === field;
      if (isLatest) this.fields.delete(address);
      else if (reply.status === 200) current.seen = field.text;
      this.handlers.onSaved(address, field, reply, isLatest);
    } else if (this.acts.length) {
      const { verb, more } = this.acts[0];
      const reply = await this.post({ act: verb, ...more });
      this.acts.shift();
      this.follow(more.at, reply);
      this.handlers.onDone(verb, reply, more);
    } else {
      const look = this.look;
      const query = new URLSearchParams(look);
      const reply = await this.request(`${this.addresses.edit}?${query}`);
      if (this.look !== look) return;
      this.look = null;
      this.handlers.onShown(reply);
    }
  }

  // Two questions that are added one after the other keep this order.
  follow(at, { status, body }) {
    if (status !== 200 || body.at === undefined) return;
    for (const { more } of this.acts) if (more.at === at) more.at = body.at;
  }

  post(body) {
    const state = "act" in body ? {} : this.handlers.state();
    const data = new URLSearchParams({ ...state, ...body });
    return this.request(this.addresses.change, { method: "POST", body: data });
  }

  // Returns a reply of the editor; waits as long as there is none.
  async request(address, options = {}) {
    for (;;) {
      const reply = await this.attempt(address, options);
      if (reply) {
        this.wait = 0;
        return reply;
      }
      this.wait = Math.min(this.wait * 2 || FIRST_WAIT, LONGEST_WAIT);
      await this.sleep(this.wait);
    }
  }

  async attempt(address, options) {
    let response;
    try {
      response = await fetch(address, {
        ...options,
        redirect: "manual",
        headers: {
          Accept: "application/json",
          "X-CSRFToken": csrfToken(),
          ...this.handlers.headers?.(),
        },
      });
    } catch {
      this.handlers.onTrouble("offline");
      return null;
    }
    if (response.type === "opaqueredirect") {
      this.handlers.onTrouble("login");
      return null;
    }
    if (response.status === 403 || response.status === 404) {
      this.handlers.onTrouble(await this.reasonOf(response.status));
      return null;
    }
    if (TRY_AGAIN.includes(response.status)) {
      this.handlers.onTrouble("offline");
      return null;
    }
    const isReply = (response.headers.get("Content-Type") ?? "").startsWith("application/json");
    if (!isReply && response.status < 400) {
      this.handlers.onTrouble("offline");
      return null;
    }
    // A second attempt would fail as well, and nothing else would be saved meanwhile.
    if (!isReply) {
      this.handlers.onContact();
      return { status: response.status, body: { hasFailed: true } };
    }
    try {
      const body = await response.json();
      this.handlers.onContact();
      return { status: response.status, body };
    } catch {
      this.handlers.onTrouble("offline");
      return null;
    }
  }

  // The token of a login that has ended is refused before the login is asked for.
  async reasonOf(status) {
    if (status === 404) return "denied";
    try {
      const headers = { Accept: "application/json" };
      const response = await fetch(this.addresses.edit, { redirect: "manual", headers });
      if (response.type === "opaqueredirect") return "login";
      return response.ok ? "offline" : "denied";
    } catch {
      return "offline";
    }
  }

  sleep(duration) {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, duration);
      this.wake = () => {
        clearTimeout(timer);
        resolve();
      };
    }).finally(() => {
      this.wake = null;
    });
  }
}
