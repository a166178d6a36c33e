// The frame of every page: head, who is signed in, and where the content goes.
import type { SignedIn } from "../../domain/people/session.ts";
import { type Html, html } from "./html.ts";
import type { Page } from "./page.ts";

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
