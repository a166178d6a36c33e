// The page on which a person allows or refuses an app to act on the person's behalf.
import type { OwnMembership } from "../../../domain/people/person.ts";
import type { SignedIn } from "../../../domain/people/session.ts";
import type { ValidRequest } from "../../../oauth/authorize/flow.ts";
import { csrfField, hidden } from "../form.ts";
import { type HtmlValue, html } from "../html.ts";
import type { Page } from "../layout.ts";
import { type ChoiceFault, type DecisionParts, decisionPage, nameOf } from "./app-parts.ts";

export interface ConsentPageParts {
  request: ValidRequest;
  /** The query of the authorization request, exactly as sent. */
  query: string;
  ticket: string;
  signedIn: SignedIn;
  toolChoice: DecisionParts["toolChoice"];
  /** The accounts that can be chosen. */
  memberships: readonly OwnMembership[];
  /** The error of an earlier attempt to submit the form. */
  fault?: ChoiceFault;
}

export function consentPage({
  request,
  query,
  ticket,
  signedIn,
  memberships,
  toolChoice,
  fault,
}: ConsentPageParts): Page {
  const { app, redirectUri, scopes } = request;
  return {
    ...decisionPage({
      ...{ question: ["Allow", " to act on your behalf"], app, signedIn, scopes, memberships, toolChoice, fault },
      action: "/oauth/authorize",
      hiddenFields: hiddenFields(signedIn, query, ticket),
      consequence: html`<p>After that you go to <strong>${destination(redirectUri)}</strong>.</p>`,
    }),
    formTargets: formTargets(redirectUri),
  };
}

/** Returns the page for a person who has no account that the app could use. The person can only refuse. */
export function noAccountPage({
  request,
  query,
  ticket,
  signedIn,
}: Omit<ConsentPageParts, "memberships" | "toolChoice">): Page {
  const { app, redirectUri } = request;
  return {
    title: "No account",
    signedIn,
    status: 403,
    formTargets: formTargets(redirectUri),
    body: html`<h1>No account available</h1>
<p>${nameOf(app)} asks to act on your behalf, but you are not a member of an active account. Ask an account owner for an invitation, then start again from the app.</p>
<form method="post" action="/oauth/authorize">
${hiddenFields(signedIn, query, ticket)}
<div class="actions"><button name="decision" value="deny">Back to the app</button></div>
</form>
<p class="after quiet">You are signed in as <bdi>${signedIn.person.email}</bdi>.</p>`,
  };
}

function hiddenFields(signedIn: SignedIn, query: string, ticket: string): readonly HtmlValue[] {
  return [csrfField(signedIn), hidden("ticket", ticket), hidden("request", query)];
}

/**
 * Returns sources for the CSP directive `form-action`. Chromium also applies this directive to all redirects after the
 * form, even those within the app. So all hosts of the redirect URI's scheme are allowed.
 */
function formTargets(redirectUri: string): string[] {
  const { protocol, hostname, host } = new URL(redirectUri);
  if (protocol !== "http:") return [protocol];
  // CSP cannot express an IPv6 address, so for one all http hosts are allowed.
  return [hostname.startsWith("[") ? "http:" : `http://${host}`, "https:"];
}

function destination(redirectUri: string): string {
  const { protocol, host, hostname } = new URL(redirectUri);
  if (protocol === "https:") return host;
  if (protocol === "http:") return `a program on this computer (${hostname})`;
  return `the app on this device that opens ${protocol} links`;
}
