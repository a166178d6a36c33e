// Renders single sign-on on the sign-in page.
import { type Html, html } from "./html.ts";

/** Renders the single sign-on button. `name` is the provider's name. `next` is a path on this server. */
export function ssoButton(name: string, next: string): Html {
  return html`<a class="button second full" href="/sso/start?next=${encodeURIComponent(next)}">Continue with ${name}</a>`;
}
