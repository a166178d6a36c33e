// The pages on which a person connects a device: enter the code, decide, and see the result.
import type { PublishedApp } from "../../../domain/people/app.ts";
import type { DeviceCode } from "../../../domain/people/oauth.ts";
import type { OwnMembership } from "../../../domain/people/person.ts";
import type { SignedIn } from "../../../domain/people/session.ts";
import { csrfField, type FormFault, faultNotice, field, hidden } from "../form.ts";
import { html } from "../html.ts";
import type { Page } from "../layout.ts";
import { type ChoiceFault, type DecisionParts, decisionPage } from "./app-parts.ts";

/** Formats a user code in the way that the device shows it. */
export function shownUserCode(userCode: string): string {
  return `${userCode.slice(0, 4)}-${userCode.slice(4)}`;
}

/**
 * Returns the page to enter a code. `value` is filled in, but the person must still submit the form (RFC 8628, 3.3.1).
 */
export function codePage(signedIn: SignedIn, { value, fault }: { value?: string; fault?: FormFault } = {}): Page {
  return {
    title: "Connect a device",
    signedIn,
    status: fault?.status ?? 200,
    body: html`<h1>Connect a device</h1>
<p>Enter the code that the device or program shows you.</p>
${faultNotice(fault)}
<form method="post" action="/device" class="fields">
${csrfField(signedIn)}
${field({
  name: "user_code",
  label: "Code",
  autocomplete: "off",
  value,
  hint: "Eight letters, such as BCDF-GHJK.",
  maxLength: 64,
  autofocus: true,
  fault,
})}
<button>Continue</button>
</form>`,
  };
}

export interface ConfirmationParts {
  app: PublishedApp;
  code: DeviceCode;
  ticket: string;
  signedIn: SignedIn;
  /** The accounts that can be chosen. */
  memberships: readonly OwnMembership[];
  toolChoice: DecisionParts["toolChoice"];
  /** The error of an earlier attempt to submit the form. */
  fault?: ChoiceFault;
}

export function confirmationPage(parts: ConfirmationParts): Page {
  const { app, code, ticket, signedIn, memberships, toolChoice, fault } = parts;
  return decisionPage({
    ...{ question: ["Connect", ""], app, signedIn, memberships, toolChoice, fault },
    scopes: code.scopes,
    action: "/device/decision",
    hiddenFields: html`${csrfField(signedIn)}
${hidden("ticket", ticket)}
${hidden("user_code", code.userCode)}`,
    notice: html`<div class="notice" role="note"><p>Continue only if you started this yourself a moment ago, on a device in front of you that shows the code <strong><code>${shownUserCode(code.userCode)}</code></strong>. If another person sent you the code, deny access.</p></div>`,
  });
}

export function noDeviceAccountPage(signedIn: SignedIn): Page {
  return {
    title: "No account",
    signedIn,
    status: 403,
    body: html`<h1>No account available</h1>
<p>To connect a device, you must be a member of an active account. Ask an account owner for an invitation, then enter the code again.</p>
<p class="quiet">You are signed in as <bdi>${signedIn.person.email}</bdi>.</p>`,
  };
}

export function deviceOutcomePage(outcome: "approved" | "denied", signedIn: SignedIn | undefined): Page {
  const [title, text] =
    outcome === "approved"
      ? ["Device connected", "Go back to your device. It continues within a few seconds."]
      : ["Device refused", "The device gets no access. You can close this page."];
  return {
    title,
    signedIn,
    body: html`<h1>${title}</h1><p>${text}</p><p class="quiet">Your <a href="/settings">settings</a> list all apps and devices that you allowed.</p>`,
  };
}
