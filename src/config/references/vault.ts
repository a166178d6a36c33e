// Reads secrets of Vault's key-value store, version 2. Signs in by a token, as an AppRole, or as a Kubernetes service
// account, and keeps the token of the sign-in alive.
import { readFile } from "node:fs/promises";
import { certificateFault } from "../../base/certificate-fault.ts";
import type { Clock } from "../../base/clock.ts";
import { trimSlashes } from "../../base/text/http-url.ts";
import type { Env } from "../formats.ts";
import { readSecretFile } from "./secret-file.ts";
import type { SecretRead } from "./secret-state.ts";

interface Token {
  text: string;
  /** The time from which the token is renewed, two thirds into its lease. Infinite if it has no lease. */
  renewMs: number;
  renewable: boolean;
}

interface Answer {
  status: number;
  json: unknown;
}

const answerMs = 5_000;
const maxAnswerBytes = 1_048_576;
const renewAfter = 2 / 3;
const renewalRetryMs = 5_000;
/** Maximum number of credentials that are remembered, so that logs can be redacted. */
const maxSent = 16;
const targetPattern = /^([^\s#?%]+)#([^\s#]+)$/;
const serviceAccountToken = "/var/run/secrets/kubernetes.io/serviceaccount/token";

/** A fault of Vault or its settings. The message has no secret. */
class VaultError extends Error {
  readonly fix: string;

  constructor(message: string, fix: string) {
    super(message);
    this.fix = fix;
  }
}

export class Vault {
  readonly #env: Env;
  readonly #clock: Pick<Clock, "monotonicMs">;
  /** Reads under way, by path: several fields of a secret share one request. */
  readonly #reads = new Map<string, Promise<Readonly<Record<string, unknown>>>>();
  #token: Token | undefined;
  #signingIn: Promise<Token> | undefined;
  /** The credentials that were sent to Vault, for the redaction of logs. */
  readonly #sent = new Set<string>();

  constructor({ env, clock }: { env: Env; clock: Pick<Clock, "monotonicMs"> }) {
    this.#env = env;
    this.#clock = clock;
  }

  get secrets(): readonly string[] {
    return [...this.#sent];
  }

  /** Reads a field. `target` is `MOUNT/data/PATH#FIELD`. Never rejects. */
  async read(target: string): Promise<SecretRead> {
    try {
      const [, path, field] = targetPattern.exec(target) ?? [];
      const parts = path?.split("/") ?? [];
      const isPath = parts.slice(1, -1).includes("data") && !parts.some((part) => /^\.*$/.test(part));
      if (path === undefined || field === undefined || !isPath) {
        throw new VaultError(
          `vault:${target} names no secret`,
          `Write \${vault:MOUNT/data/PATH#FIELD}, such as \${vault:secret/data/openai#api_key}.`,
        );
      }
      const value = (await this.#secret(path))[field];
      if (typeof value === "string" && value.trim() !== "") return { ok: true, value: value.trim() };
      throw new VaultError(`Vault has no text ${field} in ${path}`, "Correct the field, or write it: vault kv put.");
    } catch (error) {
      if (error instanceof VaultError) return { ok: false, message: error.message, fix: error.fix };
      const reason = reasonOf(error);
      const message = `Vault at ${this.#address} cannot be read (${reason})`;
      const fix = certificateFault.test(reason)
        ? "Set VAULT_CACERT to the file of Vault's certificate authority, and VAULT_ADDR to a name in the certificate."
        : "Correct VAULT_ADDR, and see that this machine reaches Vault.";
      return { ok: false, message, fix };
    }
  }

  #secret(path: string): Promise<Readonly<Record<string, unknown>>> {
    let reading = this.#reads.get(path);
    if (!reading) {
      reading = this.#readPath(path).finally(() => this.#reads.delete(path));
      this.#reads.set(path, reading);
    }
    return reading;
  }

  async #readPath(path: string): Promise<Readonly<Record<string, unknown>>> {
    const token = await this.#current();
    let answer = await this.#ask("GET", path, { token: token.text });
    if (answer.status === 403 && !(await this.#isAlive(token))) {
      // The token has expired or was revoked, so one more attempt is made with a new token.
      if (this.#token === token) this.#token = undefined;
      answer = await this.#ask("GET", path, { token: (await this.#current()).text });
    }
    const data = memberOf(memberOf(answer.json, "data"), "data");
    if (answer.status === 200 && isJsonObject(data)) return data;
    throw faultOf(answer.status, `reading ${path}`);
  }

  /**
   * Reports whether the token is still valid. If so, a new sign-in would not help, because it would give the same
   * rights.
   */
  async #isAlive(token: Token): Promise<boolean> {
    return (await this.#ask("GET", "auth/token/lookup-self", { token: token.text })).status === 200;
  }

  /** Renews the lease of the token if it is time, also between two reads. Never rejects. */
  async keepAlive(): Promise<void> {
    if (this.#token && this.#clock.monotonicMs() >= this.#token.renewMs) await this.#current().catch(() => {});
  }

  /** Returns a token, signing in or renewing the lease if need be. */
  async #current(): Promise<Token> {
    const token = this.#token;
    if (token && this.#clock.monotonicMs() < token.renewMs) return token;
    this.#signingIn ??= (token?.renewable ? this.#renewed(token) : this.#signedIn()).finally(() => {
      this.#signingIn = undefined;
    });
    try {
      this.#token = await this.#signingIn;
      return this.#token;
    } catch (error) {
      if (token === undefined) throw error;
      // The old token stays. A third of its lease is left, in which Vault may answer again.
      token.renewMs = this.#clock.monotonicMs() + renewalRetryMs;
      return token;
    }
  }

  async #renewed(token: Token): Promise<Token> {
    const answer = await this.#ask("POST", "auth/token/renew-self", { token: token.text, body: {} });
    if (answer.status === 200) return this.#tokenOf(answer, token.text);
    if (answer.status >= 500) throw faultOf(answer.status, "renewing its token");
    return await this.#signedIn();
  }

  async #signedIn(): Promise<Token> {
    const role = this.#env["VAULT_KUBERNETES_ROLE"];
    if (role) {
      const path = this.#env["VAULT_KUBERNETES_TOKEN_FILE"] || serviceAccountToken;
      return await this.#login("kubernetes", { role, jwt: textOf(await readSecretFile(path)) });
    }
    const roleId = await this.#given("VAULT_ROLE_ID");
    if (roleId) {
      const secretId = await this.#given("VAULT_SECRET_ID");
      return await this.#login("approle", { role_id: roleId, ...(secretId ? { secret_id: secretId } : {}) });
    }
    const text = await this.#given("VAULT_TOKEN");
    if (!text) {
      const fix = "Set VAULT_TOKEN, VAULT_ROLE_ID and VAULT_SECRET_ID, or VAULT_KUBERNETES_ROLE.";
      throw new VaultError("no sign-in for Vault is configured", fix);
    }
    this.#remember(text);
    // The renewal returns the lease. Vault refuses to renew a token without a lease, so such a token is used as it is.
    const answer = await this.#ask("POST", "auth/token/renew-self", { token: text, body: {} });
    if (answer.status >= 500) throw faultOf(answer.status, "renewing its token");
    if (answer.status === 200) return this.#tokenOf(answer, text);
    return { text, renewMs: Number.POSITIVE_INFINITY, renewable: false };
  }

  async #login(method: string, body: Readonly<Record<string, string>>): Promise<Token> {
    for (const secret of [body["jwt"], body["secret_id"]]) if (secret) this.#remember(secret);
    const mount = this.#env["VAULT_AUTH_MOUNT"]?.trim() || method;
    const answer = await this.#ask("POST", `auth/${mount}/login`, { body });
    const text = memberOf(memberOf(answer.json, "auth"), "client_token");
    if (answer.status !== 200 || typeof text !== "string") throw faultOf(answer.status, `signing in by ${mount}`);
    this.#remember(text);
    return this.#tokenOf(answer, text);
  }

  #remember(secret: string): void {
    this.#sent.delete(secret);
    this.#sent.add(secret);
    const [oldest] = this.#sent;
    if (this.#sent.size > maxSent && oldest !== undefined) this.#sent.delete(oldest);
  }

  #tokenOf({ json }: Answer, text: string): Token {
    const auth = memberOf(json, "auth");
    const seconds = memberOf(auth, "lease_duration");
    const leaseMs = typeof seconds === "number" && seconds > 0 ? seconds * 1000 : Number.POSITIVE_INFINITY;
    const renewable = memberOf(auth, "renewable") === true;
    return { text, renewable, renewMs: this.#clock.monotonicMs() + leaseMs * renewAfter };
  }

  /** Returns a variable's value, or the content of the file that `NAME_FILE` names, read anew each time. */
  async #given(name: string): Promise<string | undefined> {
    const path = this.#env[`${name}_FILE`];
    return this.#env[name]?.trim() || (path ? textOf(await readSecretFile(path)) : undefined);
  }

  get #address(): string {
    return trimSlashes((this.#env["VAULT_ADDR"] ?? "").trim());
  }

  async #ask(method: string, path: string, given: { token?: string; body?: unknown }): Promise<Answer> {
    const address = this.#address;
    if (!URL.canParse(address) || !/^https?:$/.test(new URL(address).protocol) || new URL(address).username !== "") {
      const fix = "Set VAULT_ADDR to an address such as https://vault.example.com:8200.";
      throw new VaultError("VAULT_ADDR is not the address of Vault", fix);
    }
    const { VAULT_NAMESPACE: namespace, VAULT_CACERT: authority } = this.#env;
    const response = await fetch(`${address}/v1/${path}`, {
      method,
      headers: {
        ...(given.token === undefined ? {} : { "x-vault-token": given.token }),
        ...(namespace ? { "x-vault-namespace": namespace } : {}),
        "x-vault-request": "true",
        "content-type": "application/json",
      },
      body: given.body === undefined ? null : JSON.stringify(given.body),
      // A redirect would carry the token to an address that nobody configured.
      redirect: "manual",
      signal: AbortSignal.timeout(answerMs),
      ...(authority ? { tls: { ca: await readAuthority(authority) } } : {}),
    });
    return { status: response.status, json: await jsonOf(response) };
  }
}

/** Returns the code of the error, such as ECONNREFUSED, or else its name, such as TimeoutError. */
function reasonOf(error: unknown): string {
  const { code, name } = (error ?? {}) as { code?: unknown; name?: unknown };
  return typeof code === "string" ? code : typeof name === "string" ? name : "unknown error";
}

async function readAuthority(path: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    throw new VaultError(`VAULT_CACERT names a file that cannot be read (${reasonOf(error)})`, "Correct its path.");
  }
}

/** Reads a bounded body. Anything but JSON counts as nothing. */
async function jsonOf(response: Response): Promise<unknown> {
  const parts: Uint8Array[] = [];
  let length = 0;
  for await (const part of response.body ?? []) {
    length += part.length;
    if (length > maxAnswerBytes) throw new VaultError("Vault's answer is too long", "Store one secret in a path.");
    parts.push(part);
  }
  try {
    return JSON.parse(Buffer.concat(parts).toString("utf8"));
  } catch {
    return undefined;
  }
}

function isJsonObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}

function memberOf(value: unknown, name: string): unknown {
  return isJsonObject(value) ? value[name] : undefined;
}

function textOf(read: SecretRead): string {
  if (read.ok) return read.value;
  throw new VaultError(read.message, read.fix);
}

function faultOf(status: number, doing: string): VaultError {
  const at = `Vault answered ${status} when ${doing}`;
  if (status === 503) return new VaultError(`${at}: it is sealed or in maintenance`, "Unseal Vault.");
  if (status === 403) return new VaultError(`${at}: permission denied`, "Give the token's policy read access to it.");
  if (status === 404) return new VaultError(`${at}: there is no such secret`, "Correct the path, or write the secret.");
  if (status === 400) return new VaultError(`${at}: it refuses the sign-in`, "Correct the role and its credential.");
  if (status >= 300 && status < 400) return new VaultError(`${at}: a redirect`, "Set VAULT_ADDR to the active node.");
  return new VaultError(at, "See the log of Vault.");
}
