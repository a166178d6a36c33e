// Authenticates people by the cookie of their browser session, which only the gateway's own pages may use.
import { type BrowserSessions, suspended } from "../../accounts/browser-sessions.ts";
import { forbidden, type GatewayError, invalidRequest } from "../../base/errors.ts";
import { invalidApiKey } from "../../base/invalid-api-key.ts";
import { type Environment, environments } from "../../domain/api-key.ts";
import { membershipCredentialId } from "../../domain/people/person.ts";
import type { SignedIn } from "../../domain/people/session.ts";
import type { Principal } from "../../domain/principal.ts";
import type { IncomingRequest } from "../../http1/message.ts";
import type { Authenticator } from "../../policy/credentials/authenticate.ts";
import { authorizationOf, hasApiKey } from "./api-key-header.ts";
import { browserOrigin } from "./browser.ts";
import type { Exchange } from "./route.ts";

export interface SessionPrincipalsOptions {
  sessions: BrowserSessions;
  authenticator: Pick<Authenticator, "member">;
  /** Reports whether the origin is that of the gateway's own pages. */
  isOwnOrigin(origin: string, req: IncomingRequest): boolean;
  /** The environment of a request that names none. */
  environment: Environment;
}

const safeMethods = new Set(["GET", "HEAD"]);

export class SessionPrincipals {
  readonly #options: SessionPrincipalsOptions;

  constructor(options: SessionPrincipalsOptions) {
    this.#options = options;
  }

  /**
   * Reports whether to authenticate by cookie. This is so if the request has a session cookie and no other credential.
   */
  applies({ headers }: IncomingRequest): boolean {
    if (authorizationOf({ headers }) !== null || hasApiKey(headers)) return false;
    return this.#options.sessions.hasCookie(headers.get("cookie"));
  }

  /**
   * Returns the caller. Rejects with `invalid_api_key` if the session has ended, and with `permission_denied` if a page
   * of another site sent the request. The headers `Headrace-Account` and `Headrace-Environment` choose the account and
   * environment.
   */
  async find(exchange: Exchange): Promise<Principal> {
    const { req, clientAddress, requestId } = exchange;
    const { sessions, authenticator } = this.#options;
    const current = await sessions.find(req.headers.get("cookie"), browserOrigin(exchange));
    if (!current) throw invalidApiKey("session_ended");
    const { signedIn, cookie } = current;
    if (cookie !== undefined) exchange.answerHeaders["set-cookie"] = cookie;
    this.#requireOwnPage(req, signedIn);
    if (signedIn.person.suspendedAt !== null) throw suspended();
    const membership = membershipOf(signedIn, req.headers.get("headrace-account"));
    const environment = this.#environmentOf(req);
    // Browsers send cookies automatically, so a session of a development server is not valid for other names of this
    // machine.
    const whyNotLocal = () => (exchange.isLocal() ? undefined : "a session in development is for this machine alone");
    return authenticator.member(
      membershipCredentialId(membership.id, environment),
      environment,
      { id: signedIn.person.id, isOperator: signedIn.person.isOperator, sessionId: signedIn.session.id },
      { authorization: null, apiKey: null, clientAddress, requestId, whyNotLocal },
    );
  }

  /**
   * Throws if a page of another site sent the request. A request that changes something also needs the gateway's own
   * origin and the CSRF token.
   */
  #requireOwnPage(req: IncomingRequest, signedIn: SignedIn): void {
    const { headers, method } = req;
    const site = headers.get("sec-fetch-site");
    if (site !== null && site !== "same-origin" && site !== "none") throw foreign("sec_fetch_site");
    // Over plain http to another machine, browsers omit `Sec-Fetch-Site`. They still send the origin, except when
    // navigating.
    const origin = headers.get("origin");
    if (origin !== null && !this.#options.isOwnOrigin(origin, req)) throw foreign("origin");
    if (safeMethods.has(method)) return;
    if (origin === null) throw foreign("origin");
    if (!this.#options.sessions.csrfMatches(signedIn, headers.get("x-csrf-token") ?? "")) throw foreign("csrf_token");
  }

  #environmentOf({ headers }: IncomingRequest): Environment {
    const wanted = headers.get("headrace-environment");
    if (wanted === null) return this.#options.environment;
    // Only a development server has the environment `dev`. A wrong name is an invalid request and no authentication
    // error, because the session is valid.
    const here = environments.filter((name) => name !== "dev" || this.#options.environment === "dev");
    const environment = here.find((name) => name === wanted);
    if (environment) return environment;
    throw invalidRequest(`Headrace-Environment: must be one of ${here.join(", ")}.`);
  }
}

function membershipOf({ memberships, membership }: SignedIn, wanted: string | null) {
  const chosen = wanted === null ? membership : memberships.find(({ accountId }) => accountId === wanted);
  if (chosen?.accountStatus === "active") return chosen;
  if (chosen) {
    const name = JSON.stringify(chosen.accountName);
    const message = `The account ${name} is suspended. Choose another one of yours with Headrace-Account.`;
    throw forbidden(message, { detail: "account_suspended" });
  }
  throw forbidden(
    wanted === null
      ? "You are not a member of an account. Ask an account owner for an invitation."
      : "Headrace-Account: you are no member of this account.",
  );
}

function foreign(detail: string): GatewayError {
  return forbidden(
    "A session's cookie works only for this server's own pages, which send its Origin and X-CSRF-Token; elsewhere use an API key.",
    { detail },
  );
}
