// Renders the settings page: the person's name, accounts, password, passkeys, sessions and authorized apps.
import { commandLineAppId } from "../../domain/people/app.ts";
import type { AllowedApp } from "../../domain/people/oauth.ts";
import type { OwnMembership, Passkey } from "../../domain/people/person.ts";
import type { Session, SignedIn } from "../../domain/people/session.ts";
import type { PlainAnswer } from "../exchange/route.ts";
import { nameOf, scopeWords } from "./consent/app-parts.ts";
import { plainName } from "./consent/plain-name.ts";
import {
  csrfField,
  type FormFault,
  faultNotice,
  field,
  hidden,
  nameField,
  newPasswordField,
  usernameOf,
} from "./form.ts";
import { type Html, html } from "./html.ts";
import { pageAnswer } from "./page.ts";
import { passkeySection } from "./passkey-parts.ts";
import { browserWords, onDay, roleWords, timeAgo } from "./words.ts";

export interface SettingsView {
  signedIn: SignedIn;
  hasPassword: boolean;
  sessions: readonly Session[];
  passkeys: readonly Passkey[];
  apps: readonly AllowedApp[];
  nowSeconds: number;
  /** The action that has just been completed, from `?done=`. */
  done?: string | undefined;
  /** The form that was refused, and its error. `name` is the text that the person entered. */
  refused?: { form: "name" | "password"; fault: FormFault; name?: string } | undefined;
}

const doneWords: Readonly<Record<string, string>> = {
  name: "Your name was changed.",
  password: "Your password was changed. Other browsers and command line logins were signed out.",
  account: "You switched to another account.",
  session: "The browser was signed out.",
  sessions: "Other browsers and command line logins were signed out.",
  app: "The app no longer has access.",
  address:
    "Your address was verified. Earlier passwords, passkeys and sign-ins were removed, in case another person created them.",
  passkey: "The passkey was added. You can now sign in with it.",
  passkey_removed: "The passkey was removed.",
};

export function settingsPage(view: SettingsView): PlainAnswer {
  const { signedIn, done = "", passkeys, refused } = view;
  const notice = Object.hasOwn(doneWords, done) && doneWords[done];
  const body = html`<h1>Settings</h1>
${notice && html`<div class="notice done" role="status"><p>${notice}</p></div>`}
${personSection(view)}
${accountsSection(signedIn)}
${passwordSection(view)}
${passkeySection(passkeys, signedIn.csrfToken)}
${sessionsSection(view)}
${appsSection(view)}`;
  return pageAnswer({
    title: "Settings",
    status: refused?.fault.status ?? 200,
    body,
    signedIn,
    wide: true,
    scripts: ["passkeys.js"],
  });
}

function personSection({ signedIn, refused }: SettingsView): Html {
  const wrong = refused?.form === "name" ? refused : undefined;
  return html`<section aria-labelledby="you">
<h2 id="you">You</h2>
<dl class="facts"><dt>E-mail address</dt><dd>${signedIn.person.email}</dd></dl>
${faultNotice(wrong?.fault)}
<form method="post" action="/settings/name" class="fields">${csrfField(signedIn)}
${nameField(wrong?.name ?? signedIn.person.name, wrong?.fault)}
<button class="second">Save name</button>
</form>
</section>`;
}

function accountsSection(signedIn: SignedIn): Html {
  const { memberships, membership } = signedIn;
  return html`<section aria-labelledby="accounts">
<h2 id="accounts">Accounts</h2>
${
  memberships.length === 0
    ? html`<p>You are not a member of an account. Ask an account owner for an invitation.</p>`
    : html`<ul class="things">${memberships.map((one) => accountItem(one, one.id === membership?.id, signedIn))}</ul>`
}
</section>`;
}

function accountItem(one: OwnMembership, isCurrent: boolean, signedIn: SignedIn): Html {
  const isSuspended = one.accountStatus === "suspended";
  return html`<li><div>
<h3>${one.accountName}${isCurrent && signedIn.memberships.length > 1 && html` <span class="tag">Current</span>`}</h3>
<p class="quiet">${roleWords[one.role]}${isSuspended && " · Suspended: its keys and apps do not work"}</p>
</div>
${
  !(isCurrent || isSuspended) &&
  html`<form method="post" action="/settings/account">${csrfField(signedIn)}${hidden("account_id", one.accountId)}
<button class="second" aria-label="Switch to ${one.accountName}">Switch</button></form>`
}
</li>`;
}

function passwordSection({ signedIn, hasPassword, refused }: SettingsView): Html {
  const fault = refused?.form === "password" ? refused.fault : undefined;
  return html`<section aria-labelledby="password-title">
<h2 id="password-title">Password</h2>
<p>${hasPassword ? "A new password signs out other browsers and command line logins." : "You have no password, because you sign in another way."}</p>
${faultNotice(fault)}
<form method="post" action="/settings/password" class="fields">${csrfField(signedIn)}
${usernameOf(signedIn.person.email)}
${
  hasPassword &&
  field({
    name: "current_password",
    label: "Current password",
    type: "password",
    autocomplete: "current-password",
    fault,
  })
}
${newPasswordField(fault, { label: "New password" })}
<button class="second">${hasPassword ? "Change password" : "Set password"}</button>
</form>
</section>`;
}

function sessionsSection({ signedIn, sessions, apps, nowSeconds }: SettingsView): Html {
  const others = sessions.length > 1 || apps.some(({ appId }) => appId === commandLineAppId);
  const isThis = ({ id }: Session) => Number(id === signedIn.session.id);
  const thisFirst = sessions.toSorted((a, b) => isThis(b) - isThis(a));
  return html`<section aria-labelledby="sessions">
<h2 id="sessions">Where you are signed in</h2>
<ul class="things">${thisFirst.map((session) => sessionItem(session, signedIn, nowSeconds))}</ul>
${
  others
    ? html`<p>This signs out other browsers and command line logins. Apps that you allowed keep their access.</p>
<form method="post" action="/settings/sessions/end-others">${csrfField(signedIn)}
<button class="danger">Sign out everywhere else</button></form>`
    : html`<p class="quiet">You are not signed in anywhere else.</p>`
}
</section>`;
}

function sessionItem(session: Session, signedIn: SignedIn, nowSeconds: number): Html {
  const isThis = session.id === signedIn.session.id;
  const browser = browserWords(session.userAgent);
  return html`<li><div>
<h3>${browser}${isThis && html` <span class="tag">This browser</span>`}</h3>
<p class="quiet">${session.clientAddress} · seen ${timeAgo(session.lastSeenAt, nowSeconds)} · signed in ${timeAgo(session.createdAt, nowSeconds)}</p>
</div>
<form method="post" action="/settings/sessions/end">${csrfField(signedIn)}${hidden("session_id", session.id)}
<button class="second" aria-label="Sign out ${isThis ? "this browser" : `${browser}, ${session.clientAddress}`}">Sign out</button></form>
</li>`;
}

function appsSection({ signedIn, apps, nowSeconds }: SettingsView): Html {
  return html`<section aria-labelledby="apps">
<h2 id="apps">Apps you allowed</h2>
${
  apps.length === 0
    ? html`<p>No apps. An app that wants to use models on your behalf asks you first.</p>`
    : html`<p>The usage of an app counts against the account that you chose for it.</p>
<ul class="things">${apps.map((app) => appItem(app, signedIn, nowSeconds))}</ul>`
}
</section>`;
}

function onlyThese(tools: AllowedApp["tools"]): Html | undefined {
  if (tools === null) return undefined;
  return tools.length === 0 ? html`: none` : html`, of <strong>${tools.join(", ")}</strong> only`;
}

function appItem(app: AllowedApp, signedIn: SignedIn, nowSeconds: number): Html {
  const name = plainName(app.appName) || app.appId;
  const used = app.lastUsedAt === null ? "not used yet" : html`last used ${timeAgo(app.lastUsedAt, nowSeconds)}`;
  return html`<li><div>
<h3>${nameOf({ id: app.appId, name: app.appName })}</h3>
<p class="quiet">By <bdi>${plainName(app.publisher)}</bdi> · for <bdi>${app.accountName}</bdi>${app.environment !== "live" && ` (${app.environment})`} · allowed on ${onDay(app.allowedAt)} · ${used}</p>
<ul class="plain">${app.scopes.map((scope) => html`<li>${scopeWords[scope]}${scope === "tools:use" && onlyThese(app.tools)}</li>`)}</ul>
</div>
<details>
<summary aria-label="Remove access of ${name}">Remove access</summary>
<p><bdi>${name}</bdi> loses access to ${app.accountName} immediately, and must ask you again.</p>
<form method="post" action="/settings/apps/remove">${csrfField(signedIn)}${hidden("app_id", app.appId)}${hidden("account_id", app.accountId)}
<button class="danger">Yes, remove access</button></form>
</details>
</li>`;
}
