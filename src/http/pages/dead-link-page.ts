// The page for a one-time link that no longer works.
import type { PlainAnswer } from "../exchange/route.ts";
import { type Html, html } from "./html.ts";
import { pageAnswer } from "./page.ts";

/**
 * Returns the same page for used, expired and unknown links, so that guessing reveals nothing. `advice` says how
 * to get a new link.
 */
export function deadLinkPage(advice: Html): PlainAnswer {
  const title = "This link does not work";
  const body = html`<h1>${title}</h1><p>The link was already used, has expired, or was replaced by a newer link.</p><p>${advice}</p>`;
  return pageAnswer({ title, status: 404, body });
}
