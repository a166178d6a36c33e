// What the sign-in page shows of single sign-on.
import { type Html, html } from "./html.ts";

/** `name`: the provider as people know it; `next`: a path here to go on to. */
export function ssoButton(name: string, next: string): Html {
  return html`<a class="button second full" href="/sso/start?next=${encodeURIComponent(next)}">Continue with ${name}</a>`;
}
