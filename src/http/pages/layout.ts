// The frame of every page: head, the signed-in person's menu, and the content.
import type { SignedIn } from "../../domain/people/session.ts";
import { type Html, html } from "./html.ts";

export interface Page {
  title: string;
  body: Html;
  status?: number;
  /** The person whose menu is shown. */
  signedIn?: SignedIn | undefined;
  /** True for pages of several sections instead of one sheet. */
  wide?: boolean;
  /**
   * A path on this server to continue to at once. Unlike a redirect, it is not part of the form's answer, to which
   * `formTargets` applies.
   */
  continueTo?: string;
  /** The policy to use instead of `no-referrer`. */
  referrerPolicy?: "same-origin" | undefined;
  /** Names of scripts in /assets that the page needs, e.g. `passkeys.js`. */
  scripts?: readonly string[];
  /**
   * `kept` if an app may have opened the page in a window, to continue there after the return to the app. All other
   * pages are cut off from their opener.
   */
  opener?: "kept";
  /**
   * The origins, or schemes with a colon, to which a form's answer may lead besides this server (CSP `form-action`).
   */
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
