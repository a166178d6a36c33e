// Renders the frame of an HTML page: head, menu and content.
import type { SignedIn } from "../../domain/people/session.ts";
import { type Html, html } from "./html.ts";

export interface Page {
  title: string;
  body: Html;
  status?: number;
  /** The person whose menu is shown. */
  signedIn?: SignedIn | undefined;
  /** True for a wide page with several sections. */
  wide?: boolean;
  /**
   * A path on this server that the page opens immediately. Unlike a redirect, this is not restricted by the CSP
   * `form-action` of the page before.
   */
  continueTo?: string;
  /** The referrer policy. Default: `no-referrer`. */
  referrerPolicy?: "same-origin" | undefined;
  /** Names of the scripts in /assets that the page loads, for example `passkeys.js`. */
  scripts?: readonly string[];
  /**
   * `kept` if an app may have opened the page in a window and needs access to that window. Otherwise the app gets no
   * access.
   */
  opener?: "kept";
  /** Allowed targets of the page's forms besides this server, as sources of the CSP `form-action`. */
  formTargets?: readonly string[];
}

export function layout({ title, body, signedIn, scripts = [], status = 200, wide = false, continueTo }: Page): string {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
${continueTo !== undefined && html`<meta http-equiv="refresh" content="0;url=${continueTo}">`}
<title>${status >= 400 && "Error: "}${title} · Headrace</title>
<link rel="icon" href="/assets/logo.svg" type="image/svg+xml">
<link rel="stylesheet" href="/assets/pages.css">
${scripts.map((name) => html`<script type="module" src="/assets/${name}"></script>`)}
</head>
<body>
<header${wide && html` class="wide"`}>
<a class="brand" href="${signedIn ? "/" : "/sign-in"}"><img src="/assets/logo.svg" alt="" width="28" height="28">Headrace</a>
${signedIn && accountMenu(signedIn)}
</header>
<main${wide && html` class="wide"`}>${wide ? body : html`<div class="sheet">${body}</div>`}</main>
</body>
</html>
`.text;
}

function accountMenu({ person, csrfToken }: SignedIn): Html {
  return html`<nav aria-label="Account">
<a href="/settings">${person.name}</a>
<form method="post" action="/sign-out"><input type="hidden" name="csrf" value="${csrfToken}"><button class="link">Sign out</button></form>
</nav>`;
}
