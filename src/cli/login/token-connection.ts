// The access token of a stored login. The token is renewed with the login's refresh token before it expires.
import { commandLineAppId } from "../../domain/people/app.ts";
import { CliError } from "../terminal/terminal.ts";
import { ApiError } from "./api-request.ts";
import type { LoginStore, StoredLogin } from "./login-store.ts";
import { discover, type IssuedTokens, OAuthRefusal, requestTokens } from "./oauth-request.ts";

export interface LoginTokensOptions {
  store: LoginStore;
  login: StoredLogin;
  /** Unix time in milliseconds. */
  nowMs(): number;
}

/** A token this close to its expiry is renewed before it is used, because the request takes time and clocks differ. */
const renewBeforeMs = 60_000;
/**
 * Time limit of a renewal request. If its answer is lost, the server repeats the answer to a second request within 10
 * s.
 */
const renewalTimeoutMs = 7_000;

export class LoginTokens {
  readonly #store: LoginStore;
  readonly #nowMs: () => number;
  #login: StoredLogin;
  #renewal: Promise<string> | undefined;

  constructor({ store, login, nowMs }: LoginTokensOptions) {
    this.#store = store;
    this.#login = login;
    this.#nowMs = nowMs;
  }

  /** The Unix time in seconds at which the current access token ends. */
  get expiresAt(): number {
    return this.#login.expires_at;
  }

  /** Returns a token that stays valid for a while. Rejects with an ApiError of 401 if the login has ended. */
  async token(signal: AbortSignal): Promise<string> {
    return this.#lasts(this.#login) ? this.#login.access_token : this.#renewed((login) => this.#lasts(login), signal);
  }

  /**
   * Returns a token other than `refused`, which the server rejected before its expiry. Rejects with an ApiError of 401
   * if the login has ended.
   */
  async tokenAfter(refused: string, signal: AbortSignal): Promise<string> {
    const differs = (login: StoredLogin) => login.access_token !== refused && this.#lasts(login);
    return differs(this.#login) ? this.#login.access_token : this.#renewed(differs, signal);
  }

  #lasts({ expires_at }: StoredLogin): boolean {
    return expires_at * 1000 - this.#nowMs() > renewBeforeMs;
  }

  #renewed(isGood: (login: StoredLogin) => boolean, signal: AbortSignal): Promise<string> {
    this.#renewal ??= this.#renew(isGood, signal).finally(() => {
      this.#renewal = undefined;
    });
    return this.#renewal;
  }

  /** Each refresh token works once, so the commands on this machine renew one after another. */
  async #renew(isGood: (login: StoredLogin) => boolean, signal: AbortSignal): Promise<string> {
    const { base_url } = this.#login;
    const { origin } = new URL(base_url);
    this.#login = await this.#store.change(signal, async (logins) => {
      const stored = logins.get(origin);
      if (stored === undefined) throw new CliError(`You have signed out of ${base_url} meanwhile.`);
      // Another command has renewed the login meanwhile.
      if (isGood(stored)) return stored;
      const nowMs = this.#nowMs();
      const { access_token, refresh_token, expires_in } = await refresh(stored, signal);
      const renewed = { ...stored, access_token, refresh_token, expires_at: Math.floor(nowMs / 1000 + expires_in) };
      logins.set(origin, renewed);
      return renewed;
    });
    signal.throwIfAborted();
    return this.#login.access_token;
  }
}

async function refresh({ base_url, refresh_token }: StoredLogin, signal: AbortSignal): Promise<IssuedTokens> {
  const server = await discover(base_url.replace(/\/v1$/, ""), signal);
  const form = { grant_type: "refresh_token", refresh_token, client_id: commandLineAppId };
  // Ctrl-C does not abort the renewal, because abandoning the answer would lose the login.
  const ask = () => requestTokens(server, form, new AbortController().signal, renewalTimeoutMs);
  try {
    return await ask().catch((error: unknown) => {
      if (error instanceof OAuthRefusal) throw error;
      return ask();
    });
  } catch (error) {
    if (!(error instanceof OAuthRefusal) || error.code !== "invalid_grant") throw error;
    throw new ApiError(
      `Your login at ${base_url} has ended. Sign in again: headrace login --base-url ${base_url}`,
      401,
    );
  }
}
