// Single sign-on: redirects to the identity provider, and handles the person's return.
import { Attempts } from "../../accounts/attempts.ts";
import { cookieIn, hostCookieName, setCookie } from "../../accounts/cookies.ts";
import { type SingleSignOn, ssoLifeSeconds } from "../../accounts/single-sign-on.ts";
import type { Clock } from "../../base/clock.ts";
import { forbidden, GatewayError } from "../../base/errors.ts";
import type { LimitStore } from "../../domain/limits/limits.ts";
import type { IncomingRequest } from "../../http1/message.ts";
import { clientNetwork } from "../../policy/client-network.ts";
import { errorTable } from "../../wire/errors.ts";
import { originOf } from "../api/changes.ts";
import { browserOrigin } from "../exchange/browser.ts";
import type { Exchange, PageRoute, PlainAnswer } from "../exchange/route.ts";
import { referenceLine } from "./error-page.ts";
import { html } from "./html.ts";
import { home, nextOf, signInPath } from "./local-path.ts";
import { goOn, type PageDeps, pageAnswer, pageAt, redirectTo } from "./page.ts";

export interface SsoRouteDeps {
  sessions: Pick<PageDeps["sessions"], "start">;
  /** Undefined if single sign-on is not configured. */
  singleSignOn: SingleSignOn | undefined;
  limits: Pick<LimitStore, "admit">;
  clock: Clock;
  /** Returns the origin at which the browser sees the gateway's pages, or undefined if unknown. */
  pageOrigin(req: IncomingRequest): string | undefined;
  /** Called after logins may have ended, to clear caches of them. */
  changed(ids?: readonly string[]): void;
}

const startsPerMinute = 120;

export function ssoRoutes(deps: SsoRouteDeps): PageRoute[] {
  const attempts = new Attempts(deps.limits);
  return [
    pageAt("/sso/start", (exchange) => orProblem(exchange, () => start(exchange, deps, attempts))),
    pageAt("/sso/callback", (exchange) => orProblem(exchange, () => callback(exchange, deps))),
  ];
}

async function start(exchange: Exchange, deps: SsoRouteDeps, attempts: Attempts): Promise<PlainAnswer> {
  const { req, clientAddress } = exchange;
  const singleSignOn = requireConfigured(deps);
  const origin = requireOrigin(req, deps);
  const rule = { id: `sso:${clientNetwork(clientAddress)}`, limit: startsPerMinute, windowSeconds: 60 };
  await attempts.count([rule], "Too many tries from your address.");
  const { browser, url } = await singleSignOn.begin({
    browser: browserSecret(req, origin),
    redirectUri: `${origin}/sso/callback`,
    network: clientNetwork(clientAddress),
    next: nextOf(req.target) ?? home,
  });
  exchange.answerHeaders["set-cookie"] = cookie(browser, origin);
  return redirectTo(url);
}

async function callback(exchange: Exchange, deps: SsoRouteDeps): Promise<PlainAnswer> {
  const { req } = exchange;
  const singleSignOn = requireConfigured(deps);
  const browser = browserSecret(req, requireOrigin(req, deps));
  const queryAt = req.target.indexOf("?");
  const query = new URLSearchParams(queryAt < 0 ? "" : req.target.slice(queryAt));
  const origin = originOf(exchange, deps);
  const { person, accountId, next, isFirstProof } = await singleSignOn.complete(query, browser, origin);
  if (isFirstProof) deps.changed([person.id]);
  const started = await deps.sessions.start(person, accountId, "sso", browserOrigin(exchange));
  exchange.answerHeaders["set-cookie"] = started.cookie;
  return goOn(isFirstProof && next === home ? "/settings?done=address" : next);
}

function requireConfigured({ singleSignOn }: SsoRouteDeps): SingleSignOn {
  if (singleSignOn) return singleSignOn;
  throw new GatewayError(
    "not_found",
    "Single sign-on is not configured on this server. Sign in with your address or a passkey.",
  );
}

function requireOrigin(req: IncomingRequest, { pageOrigin }: SsoRouteDeps): string {
  const origin = pageOrigin(req);
  if (origin !== undefined) return origin;
  throw forbidden("Without a public URL, sign-in works only on the server's own machine.");
}

/** Runs `work`. If it fails, returns a page with the error and a way to continue. */
async function orProblem(exchange: Exchange, work: () => Promise<PlainAnswer>): Promise<PlainAnswer> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof GatewayError) || error.code === "not_found") throw error;
    const { code, message, detail, retryAfterSeconds } = error;
    exchange.line["code"] = code;
    exchange.line["detail"] = detail;
    if (retryAfterSeconds !== undefined) {
      exchange.answerHeaders["retry-after"] = String(Math.ceil(retryAfterSeconds));
    }
    const body = html`<h1>You are not signed in</h1><p role="alert">${message}</p>
<p><a class="button second" href="${signInPath(home)}">Back to sign in</a></p>
${referenceLine(exchange.requestId)}`;
    return pageAnswer({ title: "Not signed in", status: errorTable[code].status, body });
  }
}

const isSecure = (origin: string) => origin.startsWith("https:");
const cookieName = (origin: string) => hostCookieName("headrace_sso", isSecure(origin));

function cookie(value: string, origin: string): string {
  return setCookie(cookieName(origin), value, { ageSeconds: ssoLifeSeconds, isSecure: isSecure(origin) });
}

function browserSecret({ headers }: IncomingRequest, origin: string): string | undefined {
  return cookieIn(headers.get("cookie"), cookieName(origin));
}
