// What is shown for a one-time link that does not work any more.
import type { PlainAnswer } from "../exchange/route.ts";
import { type Html, html } from "./html.ts";
import { pageAnswer } from "./page.ts";

/** One page for used, expired and unknown links: it tells nothing to who guesses. `advice`: how to get another. */
export function deadLinkPage(advice: Html): PlainAnswer {
  const title = "This link does not work";
  const body = html`<h1>${title}</h1><p>The link was already used, has expired, or was replaced by a newer link.</p><p>${advice}</p>`;
  return pageAnswer({ title, status: 404, body });
}
