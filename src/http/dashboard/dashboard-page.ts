// The dashboard's only HTML page. Its script renders the view for the current address.
import { randomBytes } from "node:crypto";
import type { PlainAnswer } from "../exchange/route.ts";
import { html } from "../pages/html.ts";
import type { DashboardEntries } from "./dashboard-files.ts";

/**
 * Returns the page. A nonce permits the inline styles of the component library. Scripts are only loaded from the
 * gateway's own origin.
 */
export function dashboardPage({ script, style, parts }: DashboardEntries): PlainAnswer {
  const nonce = randomBytes(16).toString("base64");
  return {
    status: 200,
    headers: {
      "content-type": "text/html; charset=utf-8",
      "cache-control": "no-store",
      "content-security-policy": `default-src 'none'; script-src 'self'; style-src 'self' 'nonce-${nonce}'; img-src 'self' data:; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'`,
      "cross-origin-opener-policy": "same-origin",
      "referrer-policy": "same-origin",
    },
    body: html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Headrace</title>
<link rel="icon" href="/assets/logo.svg" type="image/svg+xml">
<link rel="stylesheet" href="/assets/app/${style}">
<script type="module" src="/assets/app/${script}" nonce="${nonce}"></script>
${parts.map(
  (part) => html`<link rel="modulepreload" href="/assets/app/${part}">
`,
)}</head>
<body>
<div id="root"><p class="boot">Loading…</p></div>
<noscript><p class="boot">The dashboard needs JavaScript. Without JavaScript you can use <a href="/settings">your settings</a>, the <a href="/docs/api">API reference</a> and the command line.</p></noscript>
</body>
</html>
`.text,
  };
}
