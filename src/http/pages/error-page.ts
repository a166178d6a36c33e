// The HTML page for an error.

import type { GatewayError } from "../../base/errors.ts";
import { shown } from "../../base/text/shown.ts";
import type { PlainAnswer } from "../exchange/route.ts";
import { type Html, html } from "./html.ts";
import { pageAnswer } from "./page.ts";

const titles: Readonly<Record<number, string>> = {
  403: "The request failed",
  404: "Not found",
  429: "Too many tries",
  500: "Something went wrong",
  503: "Not available at the moment",
};

/** Returns a line with the request id, which the server's log contains too. */
export function referenceLine(requestId: string): Html {
  return html`<p class="quiet">If you ask for help, give this reference: <code>${requestId}</code></p>`;
}

/** Returns the 404 page for people. Programs get the API's error instead. */
export function noSuchPage(path: string, requestId: string): PlainAnswer {
  const body = html`<h1>Page not found</h1> <p role="alert">There is no page at <code>${shown(path)}</code>. The page may have moved, or the address is incomplete.</p>
<p><a href="/">Go to the overview</a>, or read the <a href="/docs/api">API reference</a>.</p>
${referenceLine(requestId)}`;
  return pageAnswer({ title: "Page not found", status: 404, body });
}

export function errorPage(
  { message, retryAfterSeconds }: Pick<GatewayError, "message" | "retryAfterSeconds">,
  status: number,
  requestId: string,
): PlainAnswer {
  const title = titles[status] ?? "This action is not possible";
  const body = html`<h1>${title}</h1><p role="alert">${message}</p>
<p><a href="/settings">Go to your settings</a></p>
${referenceLine(requestId)}`;
  const page = pageAnswer({ title, status, body });
  if (retryAfterSeconds === undefined) return page;
  return { ...page, headers: { ...page.headers, "retry-after": String(Math.ceil(retryAfterSeconds)) } };
}
