// Parts of the pages on which a person decides about an app: the app's name and scopes, the account choice and the
// buttons.
import { looksLikeOurs } from "../../../accounts/app-name.ts";
import type { Environment } from "../../../domain/api-key.ts";
import { commandLineAppId, type PublishedApp } from "../../../domain/people/app.ts";
import type { OwnMembership } from "../../../domain/people/person.ts";
import type { SignedIn } from "../../../domain/people/session.ts";
import type { Scope } from "../../../domain/scope.ts";
import { hidden } from "../form.ts";
import { type Html, type HtmlValue, html } from "../html.ts";
import type { Page } from "../layout.ts";
import { plainName } from "./plain-name.ts";
import { spendingCapField } from "./spending-cap.ts";
import { asSent, type ToolChoice, toolChoiceFields } from "./tool-choice.ts";

type Named = Pick<PublishedApp, "id" | "name">;

/** Returns the app's name for a page title. */
function titleOf(app: Named): string {
  if (app.id === commandLineAppId) return "the headrace command line tool";
  return plainName(app.name) || app.id;
}

/** Returns the app's name as HTML. The text direction of the name does not affect the text around it. */
export function nameOf(app: Named): Html {
  return html`<bdi>${titleOf(app)}</bdi>`;
}

function publisherLine(app: PublishedApp): Html {
  if (app.id === commandLineAppId) return html`<p>This app is part of this server.</p>`;
  if (app.unverified) return unverifiedNotice(app.unverified.documentUrl);
  return html`<p>Published by <bdi>${plainName(app.publisher) || app.accountId}</bdi>${homepageLink(app)}</p>`;
}

/**
 * Returns a notice with the host of the app's metadata document. The host is in ASCII, so that look-alike letters
 * appear as `xn--`.
 */
function unverifiedNotice(documentUrl: string | null): Html {
  const who =
    documentUrl === null
      ? html`This app registered itself. Its name is not verified.`
      : html`This app comes from <strong>${new URL(documentUrl).host}</strong>, according to its document there (<code>${documentUrl}</code>). Its name is not verified.`;
  return html`<div class="notice" role="note"><p>${who} Allow this app only if you have just started to connect it yourself.</p></div>`;
}

/** Returns a warning if the app's name imitates a name of the gateway. Such names can no longer be registered. */
function imitationWarning(app: Named): Html | undefined {
  if (app.id === commandLineAppId || !looksLikeOurs(app.name)) return undefined;
  return html`<div class="notice" role="note"><p>This app is not part of this server, although its name suggests that. Its publisher chose the name.</p></div>`;
}

function homepageLink({ homepageUrl }: PublishedApp): Html | undefined {
  const url = homepageUrl === null ? undefined : (URL.parse(homepageUrl) ?? undefined);
  if (!url || (url.protocol !== "https:" && url.protocol !== "http:")) return undefined;
  return html` (<a href="${url.href}" target="_blank" rel="noopener noreferrer">${url.host}</a>)`;
}

/** Explains each scope to the person who grants it. */
export const scopeWords: Readonly<Record<Scope, string>> = {
  "chat:read": "Read the chats that are stored for you: your messages and the answers",
  "chat:write": "Use models on your behalf. Requests count against the limits of the account and may cost money",
  "models:read": "See which models you can use",
  "usage:read": "See usage and cost",
  "tools:use": "Use tools on your behalf, including with the accounts that you connected",
  "keys:manage": "Create, change and revoke API keys",
  "admin:manage": "Operate this server: accounts, people, audit log",
};

function scopeList(scopes: readonly Scope[]): Html {
  return html`<h2>This app will be able to</h2>
<ul class="plain">${scopes.map((scope) => html`<li>${scopeWords[scope]} <code>${scope}</code></li>`)}</ul>`;
}

const environmentWarnings: Readonly<Record<Environment, string | undefined>> = {
  live: undefined,
  test: "This app is in testing: it uses the account’s test environment, not the live environment.",
  dev: "This app is in development: it uses the account’s development environment, not the live environment.",
};

/**
 * Returns a warning for an app of a test environment. Apps without an account act in the server's environment, so they
 * get no warning.
 */
function environmentWarning(app: PublishedApp): Html | undefined {
  const isOfNobody = app.id === commandLineAppId || app.unverified !== undefined;
  const warning = isOfNobody ? undefined : environmentWarnings[app.environment];
  return warning === undefined ? undefined : html`<div class="notice" role="note"><p>${warning}</p></div>`;
}

/**
 * Returns the membership in the person's current account. If that account cannot be chosen, returns the first
 * membership.
 */
export function preferredMembership(
  memberships: readonly OwnMembership[],
  { membership }: Pick<SignedIn, "membership">,
): OwnMembership | undefined {
  return memberships.find(({ accountId }) => accountId === membership?.accountId) ?? memberships[0];
}

/** Renders the account, or a selection if there are several accounts. */
function accountChoice(
  memberships: readonly OwnMembership[],
  { signedIn, fault }: Pick<DecisionParts, "signedIn" | "fault">,
): Html {
  const [only] = memberships;
  const isWrong = fault?.field === "account";
  const alert = isWrong && html`<span class="error" id="account-fault" role="alert">${fault.message}</span>`;
  if (only && memberships.length === 1) {
    return html`<p>For the account <strong><bdi>${plainName(only.accountName)}</bdi></strong>.</p>${alert}
${hidden("account", only.accountId)}`;
  }
  const before = chosenMembership(memberships, fault?.sent.get("account"));
  const preferred = before ?? preferredMembership(memberships, signedIn);
  const option = ({ accountId, accountName }: OwnMembership) => html`
<label><input type="radio" name="account" value="${accountId}" required${accountId === preferred?.accountId && html` checked`}> <bdi>${plainName(accountName)}</bdi></label>`;
  return html`<fieldset${isWrong && html` aria-describedby="account-fault"`}>
<legend>Account</legend>${memberships.map(option)}
${alert}</fieldset>`;
}

/** The button that refuses comes first, because the Enter key activates the first button. */
const decisionButtons = html`<div class="actions">
<button name="decision" value="deny" class="second">Deny</button>
<button name="decision" value="allow">Allow</button>
</div>`;

function whoIsSignedIn({ person }: SignedIn): Html {
  return html`<p class="after quiet">You are signed in as <bdi>${person.email}</bdi>. You can revoke access at any time in your <a href="/settings">settings</a>.</p>`;
}

/** An invalid choice in the submitted form, and the reason. */
export interface ChoiceFault {
  field: "account" | "tools" | "cap";
  message: string;
  /** The fields of the submitted form, so that the other choices stay selected. */
  sent: ReadonlyMap<string, string>;
}

export interface DecisionParts {
  /** The heading of the page, before and after the app's name, such as `Allow … to …?`. */
  question: readonly [before: string, after: string];
  app: PublishedApp;
  signedIn: SignedIn;
  scopes: readonly Scope[];
  /** The tools among which to choose. Undefined if there is no choice. */
  toolChoice: ToolChoice | undefined;
  /** The accounts that can be chosen. */
  memberships: readonly OwnMembership[];
  /** The error of an earlier attempt to submit the form. */
  fault: ChoiceFault | undefined;
  /** The URL to which the form is sent, with hidden fields. */
  action: string;
  hiddenFields: HtmlValue;
  /** Content to show above the scopes. */
  notice?: Html;
  /** Content to show above the buttons. */
  consequence?: Html;
}

/** Renders the page on which a person decides about an app. */
export function decisionPage(parts: DecisionParts): Page {
  const { question, app, signedIn, scopes, memberships, fault, action, hiddenFields, notice, consequence } = parts;
  const [before, after] = question;
  const toolChoice = fault ? asSent(parts.toolChoice, fault.sent) : parts.toolChoice;
  return {
    title: `${before} ${titleOf(app)}?`,
    signedIn,
    status: fault === undefined ? 200 : 400,
    body: html`<h1>${before} ${nameOf(app)}${after}?</h1>
${publisherLine(app)}
${imitationWarning(app)}
${notice && html`${notice}\n`}${environmentWarning(app)}
${scopeList(scopes)}
<form method="post" action="${action}" class="fields">
${hiddenFields}
${toolChoiceFields(toolChoice, fault?.field === "tools" ? fault.message : undefined)}
${spendingCapField(app, scopes, fault?.sent, fault?.field === "cap" ? fault.message : undefined)}
${accountChoice(memberships, { signedIn, fault })}
${consequence && html`${consequence}\n`}${decisionButtons}
</form>
${whoIsSignedIn(signedIn)}`,
  };
}

/** Returns the membership that the person chose, or undefined if it cannot be chosen. */
export function chosenMembership(
  memberships: readonly OwnMembership[],
  account: string | undefined,
): OwnMembership | undefined {
  return memberships.find(({ accountId }) => accountId === account);
}
