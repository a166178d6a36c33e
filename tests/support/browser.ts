// A person at a browser without a screen: cookies, redirects, and the links and forms of real pages, over real requests.
import type { Role } from "../../src/domain/people/role.ts";
import { type Form, type PageParts, partsOf } from "./page-parts.ts";

export interface Page extends PageParts {
  url: URL;
  status: number;
  headers: Headers;
  text: string;
  /** Where a redirect led that this browser cannot reach, such as an app's callback; the page is empty then. */
  leftFor: URL | undefined;
}

export interface Person {
  email: string;
  name: string;
  password: string;
}

interface Step {
  url: URL;
  /** The fields of a form that is posted. */
  body?: URLSearchParams;
  headers?: Record<string, string>;
}

const maxRedirects = 10;

/** Without scripts. Fails loudly where a browser would refuse, or a person find nothing to press. */
export class Browser {
  readonly #reachable: ReadonlySet<string>;
  /** By host, as browsers have them: not by port. */
  readonly #cookies = new Map<string, Map<string, string>>();
  #page: Page | undefined;

  /** `origins`: where redirects are followed to. The first is where a path alone leads. */
  constructor(...origins: [string, ...string[]]) {
    this.#reachable = new Set(origins.map((origin) => new URL(origin).origin));
  }

  /** What is shown now. */
  get page(): Page {
    if (!this.#page) throw new Error("Nothing is open yet.");
    return this.#page;
  }

  open(target: string | URL): Promise<Page> {
    return this.#go({ url: this.#resolve(target) });
  }

  follow(label: string): Promise<Page> {
    const found = this.page.links.find((link) => link.label === label);
    if (!found) throw this.#unlike(`There is no link "${label}"`);
    return this.#go({ url: new URL(found.href, this.page.url) });
  }

  /**
   * Fills in fields by their names and presses the button. Where several forms have such a button it is that of the first
   * whose values include `of`.
   */
  press(label: string, fields: Record<string, string> = {}, of: Record<string, string> = {}): Promise<Page> {
    const isMeant = ({ values }: Form) => Object.entries(of).every(([name, value]) => values.get(name) === value);
    const button = ({ buttons }: Form) => buttons.find((one) => one.label === label);
    const form = this.page.forms.find((one) => button(one) && isMeant(one));
    if (!form) throw this.#unlike(`There is no button "${label}"`);
    const values = new Map(form.values);
    for (const [name, value] of Object.entries(fields)) {
      if (!form.visible.has(name)) throw this.#unlike(`Beside "${label}" there is no field ${name}`);
      values.set(name, value);
    }
    for (const name of form.required) if (!values.get(name)) throw this.#unlike(`The field ${name} is empty`);
    const pressed = button(form)?.field;
    if (pressed) values.set(...pressed);
    return this.#submit(form, new URLSearchParams([...values]));
  }

  /** Asks as a script of a page asks its own server: with its origin, its cookies, and, at the first origin, the CSRF token. */
  async request(
    target: string | URL,
    { method = "GET", body }: { method?: string; body?: unknown } = {},
  ): Promise<Response> {
    const url = this.#resolve(target);
    const isHome = url.origin === this.#resolve("/").origin;
    const response = await fetch(url, {
      method,
      redirect: "error",
      headers: {
        ...this.#cookieHeader(url),
        "sec-fetch-site": "same-origin",
        ...(method === "GET" ? {} : { origin: url.origin, ...(isHome && { "x-csrf-token": await this.#csrfToken() }) }),
        ...(body === undefined ? {} : { "content-type": "application/json" }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    this.#keepCookies(response, url);
    return response;
  }

  /** Does what `request` does: gives the JSON of an answer, which has to be a good one. */
  async ask(target: string | URL, options: { method?: string; body?: unknown } = {}): Promise<Record<string, unknown>> {
    const response = await this.request(target, options);
    const { status, ok } = response;
    if (!ok) throw new Error(`${options.method ?? "GET"} ${target}: ${status} ${await response.text()}`);
    return (await response.json()) as Record<string, unknown>;
  }

  /** Those that the first origin's host has set; what is put in is sent as well. */
  get cookies(): Map<string, string> {
    return this.#jarOf(this.#resolve("/"));
  }

  async #csrfToken(): Promise<string> {
    return String((await this.ask("/v1/session"))["csrf_token"]);
  }

  #resolve(target: string | URL): URL {
    const [home = ""] = this.#reachable;
    return new URL(target, home);
  }

  #submit(form: Form, values: URLSearchParams): Promise<Page> {
    const { url: from, headers } = this.page;
    const url = new URL(form.action ?? "", from);
    requireFormAction(this.page, url);
    if (form.method === "get") {
      url.search = values.toString();
      return this.#go({ url }, this.page);
    }
    // Fetch, 3.2: the policy hides the origin; the relation is told all the same (Fetch Metadata).
    const origin = headers.get("referrer-policy") === "no-referrer" ? "null" : from.origin;
    const site = from.origin === url.origin ? "same-origin" : "cross-site";
    return this.#go({ url, body: values, headers: { origin, "sec-fetch-site": site } }, this.page);
  }

  /** `sender`: whose form it is; its policy holds for every redirect behind it, too, as in Chromium. */
  async #go(first: Step, sender?: Page): Promise<Page> {
    let step = first;
    for (let hops = 0; hops <= maxRedirects; hops++) {
      const page = await this.#load(step);
      this.#page = page;
      const location = page.headers.get("location");
      const to = page.refresh ?? (page.status >= 300 && page.status < 400 ? location : undefined);
      if (to === null || to === undefined) return page;
      const url = new URL(to, page.url);
      if (page.refresh !== undefined) return this.#go({ url });
      // Any other would let a browser send a form's content, a password among it, once more (RFC 9700, 4.12).
      if (page.status !== 303 && step.body) throw new Error(`A form was answered with ${page.status} to ${to}`);
      if (sender) requireFormAction(sender, url);
      if (!this.#reachable.has(url.origin)) return Object.assign(page, { leftFor: url });
      step = { url };
    }
    throw new Error(`More than ${maxRedirects} redirects from ${first.url.href}`);
  }

  async #load({ url, body, headers }: Step): Promise<Page> {
    const response = await fetch(url, {
      redirect: "manual",
      headers: { ...this.#cookieHeader(url), ...headers },
      ...(body ? { method: "POST", body } : {}),
    });
    this.#keepCookies(response, url);
    const text = await response.text();
    return { url, status: response.status, headers: response.headers, text, leftFor: undefined, ...partsOf(text) };
  }

  #cookieHeader(url: URL): Record<string, string> {
    const cookies = [...this.#jarOf(url)].map(([name, value]) => `${name}=${value}`);
    return cookies.length === 0 ? {} : { cookie: cookies.join("; ") };
  }

  #jarOf({ hostname }: URL): Map<string, string> {
    const jar = this.#cookies.get(hostname) ?? new Map<string, string>();
    this.#cookies.set(hostname, jar);
    return jar;
  }

  #keepCookies(response: Response, url: URL): void {
    const jar = this.#jarOf(url);
    for (const set of response.headers.getSetCookie()) {
      const [, name = "", value = "", rest = ""] = /^([^=]+)=([^;]*)(.*)$/.exec(set) ?? [];
      if (!/;\s*Path=\/(?:;|$)/i.test(rest)) throw new Error(`Only cookies of a whole host are kept: ${name}`);
      if (/;\s*Max-Age=0(?:;|$)/i.test(rest)) jar.delete(name);
      else jar.set(name, value);
    }
  }

  #unlike(what: string): Error {
    const { url, status, text } = this.page;
    const shown = text.replace(/^[\s\S]*<main/, "").replace(/<[^>]*>|\s+/g, " ");
    return new Error(`${what} at ${url.pathname} (${status}): ${shown.slice(0, 500)}`);
  }
}

/** CSP, `form-action`: origins, schemes and 'self'. */
function requireFormAction({ url, headers }: Page, to: URL): void {
  const sources = /form-action ([^;]*)/
    .exec(headers.get("content-security-policy") ?? "")?.[1]
    ?.trim()
    .split(/\s+/);
  const isCovered = (source: string) =>
    (source === "'self'" && to.origin === url.origin) || source === to.protocol || source === to.origin;
  if (sources && !sources.some(isCovered)) {
    throw new Error(`The page at ${url.pathname} lets no form lead to ${to.origin}: ${sources.join(" ")}`);
  }
}

const olga: Person = { email: "olga@example.test", name: "Olga Ortiz", password: "lamp gravel otter seven" };

/** The first person of a server, its operator and owner of its account, signed in. `more`: other origins to reach. */
export async function setUp(
  server: { url: string; setupLink: string | undefined },
  { person = olga, more = [] }: { person?: Person; more?: readonly string[] } = {},
): Promise<Browser> {
  if (server.setupLink === undefined) throw new Error("The server was set up before.");
  const browser = new Browser(server.url, ...more);
  await browser.open(server.setupLink);
  await browser.press("Create my sign-in", { ...person });
  return shows(browser, "/");
}

/** Somebody new, signed in at a browser of their own: in the account of whoever invites, or, by an operator, in another. */
export async function invite(
  by: Browser,
  { role = "member", person, account }: { role?: Role; person: Person; account?: string },
): Promise<Browser> {
  const link = await invitation(by, { email: person.email, role, ...(account === undefined ? {} : { account }) });
  const browser = new Browser(link.origin);
  await browser.open(link);
  await browser.press("Join", { name: person.name, password: person.password });
  return shows(browser, "/");
}

/** The link that invites somebody; as `invite`. */
export async function invitation(
  by: Browser,
  { email, role = "member", account }: { email: string; role?: Role; account?: string },
): Promise<URL> {
  const path = account === undefined ? "/v1/invitations" : `/v1/admin/accounts/${account}/invitations`;
  const { link } = await by.ask(path, { method: "POST", body: { email, role } });
  return new URL(String(link));
}

/** From the sign-in page, wherever it came from. */
export function signIn(browser: Browser, { email, password }: Person = olga): Promise<Page> {
  return browser.press("Sign in", { email, password });
}

/** Opens an app's authorization request and allows it, where it is asked; the address to which the app is answered. */
export async function allow(browser: Browser, request: string | URL): Promise<URL> {
  const { leftFor, url, status } = await decide(browser, request, "Allow");
  if (!leftFor) throw new Error(`The app was not answered: ${url.pathname} (${status})`);
  return leftFor;
}

/** Opens an app's authorization request and presses that button, where the person is asked; what is shown then. */
export async function decide(browser: Browser, request: string | URL, button: "Allow" | "Deny"): Promise<Page> {
  const page = await browser.open(request);
  const isAsked = page.forms.some(({ buttons }) => buttons.some(({ label }) => label === button));
  return isAsked ? browser.press(button) : page;
}

/** Types a device's code and allows, or denies, what it asks for. */
export async function decideDevice(
  browser: Browser,
  userCode: string,
  button: "Allow" | "Deny" = "Allow",
): Promise<void> {
  await browser.open("/device");
  await browser.press("Continue", { user_code: userCode });
  await browser.press(button);
  shows(browser, button === "Allow" ? "/device/approved" : "/device/denied");
}

/** Takes back what the person allowed this app. */
export async function removeAccess(browser: Browser, appId: string): Promise<void> {
  await browser.open("/settings");
  await browser.press("Yes, remove access", {}, { app_id: appId });
}

function shows(browser: Browser, path: string): Browser {
  const { url, status, text } = browser.page;
  if (url.pathname === path && status === 200) return browser;
  throw new Error(
    `Expected ${path}, got ${url.pathname} (${status}): ${text.replace(/<[^>]*>|\s+/g, " ").slice(0, 500)}`,
  );
}
