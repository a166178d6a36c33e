// Renders the passkey button of the sign-in page, and the list of passkeys. A script in assets adds the behaviour.
import type { Passkey } from "../../domain/people/person.ts";
import { hidden } from "./form.ts";
import { type Html, html } from "./html.ts";
import { onDay } from "./words.ts";

/**
 * Renders the button to sign in with a passkey and then open `next`. The page must load `passkeys.js`, which shows the
 * button if the browser supports passkeys.
 */
export function passkeySignIn(next: string): Html {
  return html`<div data-passkey-sign-in data-next="${next}" hidden>
<button type="button" class="second full">Sign in with a passkey</button>
<p class="error" role="status"></p>
</div>`;
}

/** Renders the list of the person's passkeys. The page must load `passkeys.js`. */
export function passkeySection(passkeys: readonly Passkey[], csrfToken: string): Html {
  return html`<section aria-labelledby="passkeys-title" data-passkeys data-csrf="${csrfToken}">
<h2 id="passkeys-title">Passkeys</h2>
<p>With a passkey you sign in with your fingerprint, face or device code, without a password.</p>
${
  passkeys.length === 0
    ? html`<p class="quiet">You have no passkeys yet.</p>`
    : html`<ul class="things">${passkeys.map((passkey) => passkeyItem(passkey, csrfToken))}</ul>`
}
<form class="fields" hidden>
<div class="field">
<label for="passkey-name">Name of a new passkey</label>
<input id="passkey-name" name="name" type="text" autocomplete="off" required maxlength="60" value="My passkey" aria-describedby="passkey-hint">
<span class="hint" id="passkey-hint">Helps you recognize the passkey, such as the name of the device.</span>
</div>
<button class="second">Add a passkey</button>
</form>
<p class="quiet" data-elsewhere hidden>Browsers support passkeys only if the address of the server has a name. <a href="/settings">Open this page with the server’s name</a>, and sign in there.</p>
<p role="status"></p>
</section>`;
}

function passkeyItem({ id, name, backedUp, createdAt, lastUsedAt }: Passkey, csrfToken: string): Html {
  const used = lastUsedAt === null ? "not used yet" : html`last used on ${onDay(lastUsedAt)}`;
  return html`<li><div>
<h3>${name}</h3>
<p class="quiet">${backedUp ? "Stored in your password manager" : "Stored on one device"} · added on ${onDay(createdAt)} · ${used}</p>
</div>
<form method="post" action="/settings/passkeys/remove">${hidden("csrf", csrfToken)}${hidden("id", id)}
<button class="second" aria-label="Remove ${name}">Remove</button></form>
</li>`;
}
