// The pages for people over a real database, and visitors who go through them as browsers do, without a network between.
import { FailedSignIns } from "../../src/accounts/failed-sign-ins.ts";
import { OneTimeLinks } from "../../src/accounts/links.ts";
import { OwnAccount } from "../../src/accounts/own-account.ts";
import { Passkeys } from "../../src/accounts/passkeys.ts";
import { SignIn } from "../../src/accounts/sign-in.ts";
import type { MailMessage } from "../../src/domain/people/mail.ts";
import { errorAnswer } from "../../src/http/exchange/errors.ts";
import type { PlainAnswer } from "../../src/http/exchange/route.ts";
import { pathOf, RouteTable } from "../../src/http/exchange/route-table.ts";
import { errorPage } from "../../src/http/pages/error-page.ts";
import { pageRoutes } from "../../src/http/pages/page-routes.ts";
import { MemoryLimits } from "../../src/limits/memory/memory-limits.ts";
import { SqlAppStore } from "../../src/storage/tables/people/app-store.ts";
import { SqlOAuthStore } from "../../src/storage/tables/people/oauth-store.ts";
import { toGatewayError } from "../../src/wire/errors.ts";
import { exchangeFor, incoming } from "./exchange.ts";
import { hiddenFields } from "./page-parts.ts";
import { cookieHeader, openTestPeople } from "./people.ts";

export const pageOrigin = "https://headrace.example";

export interface Visit {
  status: number;
  headers: Readonly<Record<string, string>>;
  text: string;
  /** Where a redirect leads; empty for a page. */
  location: string;
}

export type TestPages = Awaited<ReturnType<typeof openTestPages>>;

export async function openTestPages() {
  const people = await openTestPeople();
  const { clock, audit, accounts, sessions, sessionStore } = people;
  const log = { info: () => {}, warn: () => {}, error: () => {} };
  const limits = new MemoryLimits({ clock, ledger: { readTotals: async () => {} } });
  const failures = new FailedSignIns({ audit, clock, log });
  const mails: MailMessage[] = [];
  const mail = { send: async (message: MailMessage) => void mails.push(message) };
  const links = (how: typeof mail | undefined) =>
    new OneTimeLinks({
      ...{ people: people.people, sessions, clock, limits, log, mail: how },
      publicOrigin: () => pageOrigin,
      firstAccountId: async () => people.accountId,
    });
  const oauth = new SqlOAuthStore(people.db);
  const changes = { grants: 0 };
  const deps = {
    ...{ sessions, sessionStore, accounts, oauth, clock, people: people.people },
    isOwnOrigin: (origin: string) => origin === pageOrigin,
    signIn: new SignIn({ people: people.people, sessions, limits, failures, clock, log, pending: people.pending }),
    ownAccount: new OwnAccount({ people: people.people, limits, clock }),
    passkeys: new Passkeys({ people: people.people, failures, clock, pending: people.pending }),
    links: links(mail),
    singleSignOnName: (): string | undefined => "Example Works",
    isNew: async () => false,
    formReferrerPolicy: (): "same-origin" | undefined => undefined,
    changed: () => void changes.grants++,
  };
  return {
    ...people,
    ...{ mails, deps, oauth, changes },
    appStore: new SqlAppStore(people.db),
    linksWithoutMail: links(undefined),
    /** Somebody at a browser of their own, signed in where a cookie is given. */
    visitor: (cookie = "", more: Partial<typeof deps> = {}) => new Visitor({ ...deps, ...more }, cookie),
    async close() {
      await deps.links.settled();
      await failures.close();
      await people.close();
    },
  };
}

export class Visitor {
  readonly #table: RouteTable;
  cookie: string;
  #page = "";

  constructor(deps: Parameters<typeof pageRoutes>[0], cookie: string) {
    this.#table = new RouteTable(pageRoutes(deps));
    this.cookie = cookie;
  }

  async get(target: string): Promise<Visit> {
    return this.#ask("GET", target, {});
  }

  /** Fills in the form of the page before that leads to `action`, with what is hidden in it. */
  async submit(action: string, fields: Record<string, string> = {}, which = 0): Promise<Visit> {
    return this.post(action, { ...hiddenFields(this.#page, action, which), ...fields });
  }

  async post(target: string, fields: Record<string, string>, headers: Record<string, string> = {}): Promise<Visit> {
    return this.#ask("POST", target, { origin: pageOrigin, ...headers }, new URLSearchParams(fields).toString());
  }

  async #ask(method: string, target: string, given: Record<string, string>, body?: string): Promise<Visit> {
    const { route, params } = this.#table.find(method, pathOf(target)) ?? {};
    if (route?.access !== "page") throw new Error(`${method} ${target} is no page.`);
    const headers = {
      ...(this.cookie === "" ? {} : { cookie: this.cookie }),
      ...(body === undefined ? {} : { "content-type": "application/x-www-form-urlencoded" }),
      ...given,
    };
    const req = incoming({ method, target, headers, body });
    const exchange = exchangeFor(req, { params: params ?? {}, clientAddress: "203.0.113.9", answerHeaders: {} });
    const answer = await this.#answer(async () => (await route.handle(exchange)) as PlainAnswer);
    const sent = { ...answer.headers, ...exchange.answerHeaders };
    const set = sent["set-cookie"];
    if (set !== undefined) this.cookie = set.includes("Max-Age=0") ? "" : cookieHeader(set);
    const text = String(answer.body);
    if (answer.status !== 303) this.#page = text;
    return { status: answer.status, headers: sent, text, location: sent["location"] ?? "" };
  }

  async #answer(handle: () => Promise<PlainAnswer>): Promise<PlainAnswer> {
    try {
      return await handle();
    } catch (thrown) {
      const error = toGatewayError(thrown);
      return errorPage(error, errorAnswer(error).status, "req_1");
    }
  }
}
