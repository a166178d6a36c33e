// Shared parts of all pages for people: headers, the signed-in person, and the reading of forms.

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

/** The dependencies of pages whose forms are sent by people who are not signed in. */
export interface OpenFormDeps extends PageDeps {
  /** Over plain http, browsers send a form's origin only under another policy than `no-referrer`. */
  formReferrerPolicy(): "same-origin" | undefined;
}

/** Defines a page at a path. */
export function pageAt(path: string, handle: PageRoute["handle"]): PageRoute {
  return { method: "GET", path, access: "page", throttle: "page", handle };
}

/** Defines the handler of a form that is sent to a path. */
export function formAt(path: string, handle: PageRoute["handle"]): PageRoute {
  return { method: "POST", path, access: "page", throttle: "form", handle };
}

/**
 * Returns an answer that is not cached, and in which only our own files may run. Headers that all pages share are in
 * browser-headers.ts.
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

/** Returns a page with a form for people who may not be signed in yet, with an error status if the form was refused. */
export function openFormPage(
  page: Page,
  fault: { status: number } | undefined,
  deps: Pick<OpenFormDeps, "formReferrerPolicy">,
): PlainAnswer {
  return pageAnswer({ ...page, status: fault?.status ?? 200, referrerPolicy: deps.formReferrerPolicy() });
}

/** Status 303 makes the browser use GET, without the posted data (RFC 9700, 4.12). */
export function redirectTo(location: string): PlainAnswer {
  return {
    status: 303,
    headers: { location, "cache-control": "no-store" },
    body: "",
  };
}

/**
 * Returns a page that continues after a sign-in. From `/oauth/authorize` the next step may be an app. A redirect there
 * would belong to the answer to the form, ours or an identity provider's, which browsers restrict by that page's
 * `form-action`.
 */
export function goOn(next: string): PlainAnswer {
  if (!next.startsWith("/oauth/")) return redirectTo(next);
  const body = html`<h1>You are signed in</h1><p><a href="${next}">Go on</a></p>`;
  return pageAnswer({ title: "Signed in", body, continueTo: next, opener: "kept" });
}

/** Returns the signed-in person. A renewed cookie is sent with the answer. */
export async function signedInAt(
  exchange: Exchange,
  { sessions }: { sessions: Pick<BrowserSessions, "find"> },
): Promise<SignedIn | undefined> {
  const current = await sessions.find(exchange.req.headers.get("cookie"), browserOrigin(exchange));
  if (current?.cookie !== undefined) exchange.answerHeaders["set-cookie"] = current.cookie;
  return current?.signedIn;
}

const maxFormLength = 65_536;
const formType = /^application\/x-www-form-urlencoded\s*(?:;|$)/i;

/**
 * Returns the fields of a form from one of our pages. Throws a GatewayError, which becomes an error page, for another
 * site's form, for a repeated field and, for a signed-in person, for a missing or wrong `csrf`.
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
  // Reading the body may have taken long: a person who has signed out meanwhile decides nothing.
  if (signedIn && (await signedInAt(exchange, deps))?.session.id !== signedIn.session.id) throw stale("form_session");
  // Without a known origin, the form must have the session's CSRF token, which only our own page knows.
  if (from === "untold" && !signedIn) throw stale("form_origin_untold");
  return fields;
}

/**
 * Returns where a form comes from. From a page with the referrer policy `no-referrer`, browsers send forms with
 * `Origin: null` (Fetch, 3.2). They also send `Sec-Fetch-Site`, which no page can set, but only over https or to this
 * machine. Over plain http nothing is known.
 */
function whereFrom(req: IncomingRequest, isOwnOrigin: PageDeps["isOwnOrigin"]): "here" | "elsewhere" | "untold" {
  const origin = req.headers.get("origin");
  const site = req.headers.get("sec-fetch-site");
  if (origin === null || (site !== null && site !== "same-origin")) return "elsewhere";
  if (origin !== "null") return isOwnOrigin(origin, req) ? "here" : "elsewhere";
  return site === null ? "untold" : "here";
}

/** Returns the fields of a form from any site, each at most once. Throws like `readPairs` and `fieldsOf`. */
export async function readFields(req: IncomingRequest): Promise<Map<string, string>> {
  return fieldsOf(await readPairs(req), () => true);
}

/**
 * Returns the fields. Throws `invalid_request` if a name that `once` accepts comes twice. Of any other name the last
 * value counts.
 */
export function fieldsOf(pairs: URLSearchParams, once: (name: string) => boolean): Map<string, string> {
  const fields = new Map<string, string>();
  for (const [name, value] of pairs) {
    if (fields.has(name) && once(name)) throw invalidRequest(`${name.slice(0, 64)}: was sent twice; send it once.`);
    fields.set(name, value);
  }
  return fields;
}

/** Reads a form. Throws `unsupported_media_type`, `request_too_large` or `invalid_request`. */
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
