// The frame of every page: head, menu, and where the content goes.
import { html } from "./html.ts";
import type { Page } from "./page.ts";

export function layout({ title, body, signedIn, scripts = [] }: Page): string {
  const menu = signedIn && html`<nav aria-label="Account"><a href="/settings">${signedIn.person.name}</a></nav>`;
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title} · Headrace</title>
<link rel="stylesheet" href="/assets/pages.css">
${scripts.map((name) => html`<script type="module" src="/assets/${name}"></script>`)}
</head>
<body>
<header>${menu}</header>
<main>${body}</main>
</body>
</html>
`.text;
}
