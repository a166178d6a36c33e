// Random sequences of what apps and people do with grants, against a model of what has to be alive: seeded, so that any can be had again.
import { expect, test } from "bun:test";
import { tokenDigest } from "../../src/policy/credentials/opaque-token.ts";
import { testEvent } from "../support/credentials.ts";
import {
  basic,
  deviceGrantType,
  type Fields,
  type OAuthReply,
  type OAuthServer,
  redemption,
  startOAuth,
} from "../support/oauth.ts";
import { refreshFields } from "../support/oauth-apps.ts";
import { seeded } from "../support/seeded.ts";
import { storedDeviceCode } from "../support/stored-devices.ts";

const seeds = Array.from({ length: 8 }, (_, i) => 20_261_121 + i);
const steps = 150;
const day = 86_400;
const apps = ["web", "other", "native", "foreign"] as const;
type AppId = (typeof apps)[number];

interface ModelToken {
  text: string;
  expiresAt: number;
  /** Its use: when, with which scope, and what was answered. */
  used: { at: number; scope: string | undefined; body: unknown } | undefined;
}

interface ModelGrant {
  id: string;
  appId: AppId;
  alive: boolean;
  tokens: ModelToken[];
  access: { text: string; expiresAt: number }[];
}

interface ModelCode {
  text: string;
  appId: AppId;
  expiresAt: number;
  grant: ModelGrant | undefined;
  /** Taken back by the person before the app had fetched it. */
  gone: boolean;
}

interface ModelDevice extends ModelCode {
  state: "pending" | "approved" | "denied" | "redeemed";
  polledAt: number | undefined;
  intervalSeconds: number;
}

/** What a refusal is; `ok` for tokens. */
const short = ({ status, body }: OAuthReply) => (status === 200 ? "ok" : `${status} ${body["error"]}`);

class Story {
  readonly #server: OAuthServer;
  readonly #random: () => number;
  readonly #grants: ModelGrant[] = [];
  #codes: ModelCode[] = [];
  #devices: ModelDevice[] = [];
  /** What happened, for whoever has to find out why. */
  readonly received: string[] = [];

  constructor(server: OAuthServer, random: () => number) {
    this.#server = server;
    this.#random = random;
  }

  async step(): Promise<void> {
    const all: [weight: number, step: () => Promise<void>][] = [
      [4, () => this.#authorize()],
      [5, () => this.#redeem()],
      [12, () => this.#refresh()],
      [3, () => this.#revoke()],
      [2, () => this.#personRevokes()],
      [4, () => this.#beginDevice()],
      [5, () => this.#decideDevice()],
      [6, () => this.#poll()],
      [5, () => this.#timePasses()],
      [1, () => this.#prune()],
    ];
    let at = this.#random() * all.reduce((sum, [weight]) => sum + weight, 0);
    for (const [weight, step] of all) {
      at -= weight;
      if (at >= 0) continue;
      await step();
      return this.#check();
    }
  }

  get #now(): number {
    return this.#server.now.seconds;
  }

  #oneOf<Item>(items: readonly Item[]): Item | undefined {
    return items[Math.floor(this.#random() * items.length)];
  }

  /** Mostly one of the last: most that can go wrong is about what happened a moment ago. */
  #recent<Item>(items: readonly Item[]): Item | undefined {
    return this.#oneOf(this.#random() < 0.7 ? items.slice(-2) : items);
  }

  /** Mostly its own app, and now and then another that found what is not its. */
  #presenter(appId: AppId): AppId {
    return this.#random() < 0.75 ? appId : (this.#oneOf(apps) ?? appId);
  }

  #send(path: string, by: AppId, fields: Fields): Promise<OAuthReply> {
    // Nothing here is about how often an app may ask.
    this.#server.now.ms += 60_000;
    const isPublic = by === "native" || by === "foreign";
    return this.#server.post(path, isPublic ? { client_id: by, ...fields } : fields, isPublic ? {} : basic(by));
  }

  #expect(what: string, reply: OAuthReply, expected: string): void {
    this.received.push(`${what}: ${expected}`);
    expect(short(reply)).toBe(expected);
  }

  #granted(appId: AppId, { body }: OAuthReply): ModelGrant {
    const claims = String(body["access_token"]).split(".")[1] ?? "";
    const { key_id } = JSON.parse(Buffer.from(claims, "base64url").toString()) as { key_id: string };
    const grant: ModelGrant = { id: key_id, appId, alive: true, tokens: [], access: [] };
    this.#issued(grant, body);
    this.#grants.push(grant);
    return grant;
  }

  #issued(grant: ModelGrant, body: Record<string, unknown>): void {
    grant.access.push({ text: String(body["access_token"]), expiresAt: this.#now + 3_600 });
    grant.tokens.push({ text: String(body["refresh_token"]), expiresAt: this.#now + 30 * day, used: undefined });
  }

  async #authorize(): Promise<void> {
    const appId = this.#oneOf(apps) ?? "web";
    const text = await this.#server.code(appId);
    this.#codes.push({ text, appId, expiresAt: this.#now + 60, grant: undefined, gone: false });
  }

  /** Sometimes several times at once, of which one at most may win. */
  async #redeem(): Promise<void> {
    const code = this.#recent(this.#codes);
    if (!code) return;
    const by = this.#presenter(code.appId);
    const times = this.#random() < 0.2 ? 4 : 1;
    const replies = await Promise.all(
      Array.from({ length: times }, () => this.#send("/oauth/token", by, redemption(code.text))),
    );
    const wins = by === code.appId && !code.gone && !code.grant && this.#now < code.expiresAt;
    const given = replies.filter(({ status }) => status === 200);
    this.received.push(`${times} x ${by} redeems ${code.text}: ${wins ? "one wins" : "none"}`);
    expect(given.length).toBe(wins ? 1 : 0);
    for (const reply of replies) if (reply.status !== 200) expect(short(reply)).toBe("400 invalid_grant");
    const isReplay = by === code.appId && (code.grant !== undefined || (wins && times > 1));
    if (given[0]) code.grant = this.#granted(by, given[0]);
    if (isReplay && code.grant) code.grant.alive = false;
  }

  async #refresh(): Promise<void> {
    const grant = this.#recent(this.#grants);
    const token = grant && this.#recent(grant.tokens);
    if (!grant || !token) return;
    const by = this.#presenter(grant.appId);
    const scope = this.#random() < 0.2 ? "models:read" : undefined;
    const reply = await this.#send("/oauth/token", by, refreshFields(token.text, scope === undefined ? {} : { scope }));
    const expected = this.#refreshVerdict(grant, token, by, scope);
    this.#expect(
      `${by} refreshes ${grant.id} (${scope ?? "all"})`,
      reply,
      expected === "replay" ? "400 invalid_grant" : expected,
    );
    if (expected === "replay") grant.alive = false;
    if (expected !== "ok") return;
    if (token.used) expect(reply.body).toEqual(token.used.body as Record<string, unknown>);
    else {
      token.used = { at: this.#now, scope, body: reply.body };
      this.#issued(grant, reply.body);
    }
  }

  #refreshVerdict(grant: ModelGrant, { used, expiresAt }: ModelToken, by: AppId, scope: string | undefined): string {
    if (by !== grant.appId || !grant.alive) return "400 invalid_grant";
    if (used) return this.#now - used.at < 10 && used.scope === scope ? "ok" : "replay";
    return this.#now < expiresAt ? "ok" : "400 invalid_grant";
  }

  async #revoke(): Promise<void> {
    const grant = this.#recent(this.#grants);
    const token = grant && this.#oneOf([...grant.tokens, ...grant.access]);
    if (!grant || !token) return;
    const by = this.#presenter(grant.appId);
    const reply = await this.#send("/oauth/revoke", by, { token: token.text });
    this.#expect(`${by} revokes ${grant.id}`, reply, "ok");
    const isKnown = !("used" in token) ? this.#now < token.expiresAt : true;
    if (by === grant.appId && isKnown) grant.alive = false;
  }

  async #personRevokes(): Promise<void> {
    const appId = this.#oneOf(apps) ?? "web";
    const ended = await this.#server.oauth.revokeAllowedApp("usr_1", appId, undefined, testEvent(this.#now));
    this.#server.authenticator.invalidate();
    const own = this.#grants.filter((grant) => grant.appId === appId && grant.alive);
    this.received.push(`the person revokes ${appId}`);
    expect(ended).toBe(own.length);
    for (const grant of own) grant.alive = false;
    for (const code of this.#codes) if (code.appId === appId && !code.grant) code.gone = true;
    for (const device of this.#devices) if (device.appId === appId && device.state === "approved") device.gone = true;
  }

  async #beginDevice(): Promise<void> {
    const appId = this.#oneOf(apps) ?? "native";
    const { body } = await this.#send("/oauth/device_authorization", appId, { scope: "chat:write models:read" });
    const expiresAt = this.#now + 600;
    const started = {
      state: "pending",
      polledAt: undefined,
      intervalSeconds: 5,
      grant: undefined,
      gone: false,
    } as const;
    this.#devices.push({ text: String(body["device_code"]), appId, expiresAt, ...started });
  }

  async #decideDevice(): Promise<void> {
    const device = this.#recent(this.#devices);
    const code = device && (await storedDeviceCode(this.#server.db, tokenDigest(device.text)));
    if (!device || !code) return;
    const state = this.#random() < 0.8 ? "approved" : "denied";
    const may = device.state === "pending" && this.#now < device.expiresAt;
    this.received.push(`a device is ${state}: ${may}`);
    expect(await this.#server.decide(code, state)).toBe(may);
    if (may) device.state = state;
  }

  async #poll(): Promise<void> {
    const device = this.#recent(this.#devices);
    if (!device) return;
    const by = this.#presenter(device.appId);
    const fields = { grant_type: deviceGrantType, device_code: device.text };
    const reply = await this.#send("/oauth/token", by, fields);
    this.#expect(`${by} polls`, reply, this.#pollVerdict(device, by));
    if (reply.status !== 200) return;
    device.state = "redeemed";
    device.grant = this.#granted(by, reply);
  }

  #pollVerdict(device: ModelDevice, by: AppId): string {
    const tooEarly = device.polledAt !== undefined && this.#now < device.polledAt + device.intervalSeconds;
    if (device.state === "pending") {
      // Whoever asks, it counts.
      device.polledAt = this.#now;
      device.intervalSeconds += tooEarly ? 5 : 0;
    }
    if (by !== device.appId || device.gone) return "400 invalid_grant";
    if (this.#now >= device.expiresAt) return "400 expired_token";
    if (device.state === "pending") return tooEarly ? "400 slow_down" : "400 authorization_pending";
    if (device.state === "denied") return "400 access_denied";
    return device.state === "approved" ? "ok" : "400 invalid_grant";
  }

  async #timePasses(): Promise<void> {
    const seconds = this.#oneOf([1, 1, 5, 5, 9, 9, 10, 10, 10, 61, 700, 3_601, 2 * day, 32 * day]) ?? 1;
    this.received.push(`${seconds} s pass`);
    this.#server.now.seconds += seconds;
    this.#server.now.ms += seconds * 1000;
  }

  /** What ended a day ago is forgotten, and with its last token a grant ends. */
  async #prune(): Promise<void> {
    this.received.push("pruned");
    await this.#server.oauth.prune(this.#now);
    const ended = this.#now - day;
    this.#codes = this.#codes.filter((code) => code.expiresAt > ended);
    this.#devices = this.#devices.filter((device) => device.expiresAt > this.#now - 3_600);
    for (const grant of this.#grants) {
      grant.tokens = grant.tokens.filter((token) => token.expiresAt > ended);
      if (grant.tokens.length === 0) grant.alive = false;
    }
  }

  async #check(): Promise<void> {
    const rows: { id: string; revoked: number; live: number; tokens: number }[] = await this.#server.db`
      SELECT id, revoked,
        (SELECT count(*) FROM refresh_tokens WHERE grant_id = api_keys.id AND used_at IS NULL) AS live,
        (SELECT count(*) FROM refresh_tokens WHERE grant_id = api_keys.id) AS tokens
      FROM api_keys WHERE kind = 'grant' ORDER BY id`;
    const stored = rows.map(({ id, revoked, tokens }) => ({
      id,
      alive: Number(revoked) === 0,
      tokens: Number(tokens),
    }));
    const expected = this.#grants.map(({ id, alive, tokens }) => ({ id, alive, tokens: tokens.length }));
    expect(stored).toEqual(expected.sort((a, b) => (a.id < b.id ? -1 : 1)));
    for (const { live } of rows) expect(Number(live)).toBeLessThanOrEqual(1);
    for (let i = 0; i < 2; i++) {
      const grant = this.#oneOf(this.#grants);
      const access = grant && this.#oneOf(grant.access);
      if (!grant || !access) return;
      const works = grant.alive && this.#now < access.expiresAt;
      expect([grant.id, await this.#server.probe(access.text)]).toEqual([grant.id, works ? 200 : 401]);
    }
  }
}

test.each(seeds)("keeps exactly the right grants alive in random histories of seed %d", async (seed) => {
  const server = await startOAuth();
  const story = new Story(server, seeded(seed));
  try {
    for (let step = 0; step < steps; step++) await story.step();
  } catch (error) {
    console.error(`seed ${seed}, the last of ${story.received.length}:\n${story.received.slice(-25).join("\n")}`);
    throw error;
  } finally {
    await server.close();
  }
});
