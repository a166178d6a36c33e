// Helpers for all HTML pages: headers, the signed-in person, and the fields of submitted forms.

import type { BrowserSessions } from "../../accounts/browser-sessions.ts";
import type { ByteSpan } from "../../base/bytes/byte-span.ts";
import { forbidden, GatewayError, invalidRequest } from "../../base/errors.ts";
import type { SignedIn } from "../../domain/people/session.ts";
import { type IncomingRequest, RequestBodyError } from "../../http1/message.ts";
import { browserOrigin } from "../exchange/browser.ts";
import type { Exchange, PageRoute, PlainAnswer } from "../exchange/route.ts";
import { html } from "./html.ts";
import { layout, type Page } from "./layout.ts";

export interface PageDeps {
  sessions: BrowserSessions;
  isOwnOrigin(origin: string, req: IncomingRequest): boolean;
}

/** The dependencies of pages with forms that can be submitted without a session. */
export interface OpenFormDeps extends PageDeps {
  /**
   * Returns the referrer policy of pages with forms. Over plain http, browsers send no origin with a form under
   * `no-referrer`.
   */
  formReferrerPolicy(): "same-origin" | undefined;
}

/** Declares a GET route for a page. */
export function pageAt(path: string, handle: PageRoute["handle"]): PageRoute {
  return { method: "GET", path, access: "page", throttle: "page", handle };
}

/** Declares a POST route for a form. */
export function formAt(path: string, handle: PageRoute["handle"]): PageRoute {
  return { method: "POST", path, access: "page", throttle: "form", handle };
}

/**
 * Returns the answer for a page. Pages are not cached, and only the gateway's own scripts may run in them.
 * browser-headers.ts adds the common headers.
 */
export function pageAnswer(page: Page): PlainAnswer {
  const targets = ["'self'", ...(page.formTargets ?? [])].join(" ");
  return {
    status: page.status ?? 200,
    headers: {
      "content-type": "text/html; charset=utf-8",
      "cache-control": "no-store",
      "content-security-policy": `default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action ${targets}; frame-ancestors 'none'; base-uri 'none'`,
      ...(page.opener === "kept" ? {} : { "cross-origin-opener-policy": "same-origin" }),
      ...(page.referrerPolicy === undefined ? {} : { "referrer-policy": page.referrerPolicy }),
    },
    body: layout(page),
  };
}

/** Returns a page whose form can be submitted without a session. If `fault` is set, the answer has its error status. */
export function openFormPage(
  page: Page,
  fault: { status: number } | undefined,
  deps: Pick<OpenFormDeps, "formReferrerPolicy">,
): PlainAnswer {
  return pageAnswer({ ...page, status: fault?.status ?? 200, referrerPolicy: deps.formReferrerPolicy() });
}

/** Redirects with status 303, so that the browser uses GET and drops the form's data (RFC 9700, 4.12). */
export function redirectTo(location: string): PlainAnswer {
  return {
    status: 303,
    headers: { location, "cache-control": "no-store" },
    body: "",
  };
}

/**
 * Returns a page that opens `next` after a sign-in. A redirect would be restricted by the CSP `form-action` of the page
 * with the sign-in form, but `next` may lead to an app.
 */
export function goOn(next: string): PlainAnswer {
  if (!next.startsWith("/oauth/")) return redirectTo(next);
  const body = html`<h1>You are signed in</h1><p><a href="${next}">Go on</a></p>`;
  return pageAnswer({ title: "Signed in", body, continueTo: next, opener: "kept" });
}

/**
 * Returns the signed-in person, or undefined. A suspended person counts as signed out, and learns the reason on the
 * sign-in page. A renewed cookie is added to the answer.
 */
export async function signedInAt(
  exchange: Exchange,
  { sessions }: { sessions: Pick<BrowserSessions, "find"> },
): Promise<SignedIn | undefined> {
  const current = await sessions.find(exchange.req.headers.get("cookie"), browserOrigin(exchange));
  if (current?.cookie !== undefined) exchange.answerHeaders["set-cookie"] = current.cookie;
  return current?.signedIn.person.suspendedAt === null ? current.signedIn : undefined;
}

const maxFormLength = 65_536;
const formType = /^application\/x-www-form-urlencoded\s*(?:;|$)/i;

/**
 * Reads a form that one of the gateway's pages sent. Throws a GatewayError if another site sent it, if a field is
 * repeated, or if a signed-in person's CSRF token is wrong.
 */
export async function readForm(
  exchange: Exchange,
  deps: PageDeps,
  signedIn: SignedIn | undefined,
): Promise<ReadonlyMap<string, string>> {
  const { req } = exchange;
  const { sessions, isOwnOrigin } = deps;
  const from = whereFrom(req, isOwnOrigin);
  if (from === "elsewhere") throw stale("form_origin");
  const fields = await readFields(req);
  if (signedIn && !sessions.csrfMatches(signedIn, fields.get("csrf") ?? "")) throw stale("form_csrf");
  // If the person has signed out while the body was read, the form must have no effect.
  if (signedIn && (await signedInAt(exchange, deps))?.session.id !== signedIn.session.id) throw stale("form_session");
  // If the origin is unknown, only a form with a valid CSRF token is accepted, because only the gateway's own page
  // knows the token.
  if (from === "untold" && !signedIn) throw stale("form_origin_untold");
  return fields;
}

/**
 * Returns whether a form comes from the gateway's own page. Under `no-referrer`, browsers send `Origin: null` (Fetch,
 * 3.2) with `Sec-Fetch-Site`, which a page cannot set. Over plain http to another machine, `Sec-Fetch-Site` is missing
 * too, so the result is `untold`.
 */
function whereFrom(req: IncomingRequest, isOwnOrigin: PageDeps["isOwnOrigin"]): "here" | "elsewhere" | "untold" {
  const origin = req.headers.get("origin");
  const site = req.headers.get("sec-fetch-site");
  if (origin === null || (site !== null && site !== "same-origin")) return "elsewhere";
  if (origin !== "null") return isOwnOrigin(origin, req) ? "here" : "elsewhere";
  return site === null ? "untold" : "here";
}

/**
 * Returns the fields of a form, which may come from any site. Throws a GatewayError if a field is repeated or the form
 * is invalid.
 */
export async function readFields(req: IncomingRequest): Promise<Map<string, string>> {
  return fieldsOf(await readPairs(req), () => true);
}

/**
 * Returns the fields of a form. Throws `invalid_request` if a repeated name is one for which `once` returns true. For
 * other names, the last value counts.
 */
export function fieldsOf(pairs: URLSearchParams, once: (name: string) => boolean): Map<string, string> {
  const fields = new Map<string, string>();
  for (const [name, value] of pairs) {
    if (fields.has(name) && once(name)) throw invalidRequest(`${name.slice(0, 64)}: was sent twice; send it once.`);
    fields.set(name, value);
  }
  return fields;
}

/** Parses the body of a form. Throws `unsupported_media_type`, `request_too_large` or `invalid_request`. */
export async function readPairs(req: IncomingRequest): Promise<URLSearchParams> {
  if (!formType.test(req.headers.get("content-type") ?? "")) {
    throw new GatewayError("unsupported_media_type", "Send the body as application/x-www-form-urlencoded.");
  }
  let bytes: ByteSpan;
  try {
    bytes = await req.readBody(maxFormLength);
  } catch (error) {
    if (!(error instanceof RequestBodyError)) throw error;
    if (error.fault !== "too_large") throw invalidRequest("The form arrived incomplete. Send it again.");
    throw new GatewayError("request_too_large", `The form is larger than ${maxFormLength} bytes.`);
  }
  return new URLSearchParams(new TextDecoder().decode(bytes.view));
}

function stale(detail: string): GatewayError {
  return forbidden(
    "This form is out of date, or did not come from this server. Go back, reload the page, and send the form again.",
    { detail },
  );
}
