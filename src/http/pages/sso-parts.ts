// The single sign-on part of the sign-in page.
import { type Html, html } from "./html.ts";

/** Returns the button. `name` is the provider's name for people; `next` is a path on this server to continue with. */
export function ssoButton(name: string, next: string): Html {
  return html`<a class="button second full" href="/sso/start?next=${encodeURIComponent(next)}">Continue with ${name}</a>`;
}
