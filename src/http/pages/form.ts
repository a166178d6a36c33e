// Renders form fields with labels, hints and errors.
import { maxPasswordLength, minPasswordLength } from "../../accounts/passwords.ts";
import { type ErrorCode, GatewayError } from "../../base/errors.ts";
import type { SignedIn } from "../../domain/people/session.ts";
import { errorTable } from "../../wire/errors.ts";
import type { Exchange } from "../exchange/route.ts";
import { type Html, html } from "./html.ts";

/** The error of a form. */
export interface FormFault {
  /** Name of the invalid field, or undefined for the whole form. */
  field: string | undefined;
  message: string;
  status: number;
}

export interface Field {
  name: string;
  label: string;
  type?: "text" | "email" | "password";
  /** The HTML attribute `autocomplete`, for password managers. */
  autocomplete: string;
  /** The value to show in the field. Never a password. */
  value?: string | undefined;
  hint?: string;
  minLength?: number;
  maxLength?: number;
  autofocus?: boolean;
  fault?: FormFault | undefined;
  /** Prefix of the field's id, needed if a page has several forms. */
  idPrefix?: string;
}

const shownInForms: ReadonlySet<ErrorCode> = new Set([
  "invalid_request",
  "permission_denied",
  "rate_limit_exceeded",
  "service_unavailable",
]);

/**
 * Returns the error for the form if the person can correct it, and logs it. The message of such an error begins with
 * the field: `email: must be …`. Rethrows any other error.
 */
export function faultOf(error: unknown, fields: readonly string[], exchange: Exchange): FormFault {
  if (!(error instanceof GatewayError) || !shownInForms.has(error.code)) throw error;
  const { code, detail, retryAfterSeconds } = error;
  exchange.line["code"] = code;
  if (detail !== undefined) exchange.line["detail"] = detail;
  if (retryAfterSeconds !== undefined) exchange.answerHeaders["retry-after"] = String(Math.ceil(retryAfterSeconds));
  const { status } = errorTable[code];
  const field = fields.find((name) => error.message.startsWith(`${name}: `));
  const message = field === undefined ? error.message : `This ${error.message.slice(field.length + 2)}`;
  return { field, message, status };
}

/** Renders an error of the whole form, or undefined. */
export function faultNotice(fault: FormFault | undefined): Html | undefined {
  if (!fault || fault.field !== undefined) return undefined;
  return html`<div class="notice wrong" role="alert"><p>${fault.message}</p></div>`;
}

export function field(given: Field): Html {
  const { name, label, type = "text", autocomplete, value, hint, minLength, maxLength, idPrefix = "" } = given;
  const id = idPrefix + name;
  const fault = given.fault?.field === name ? given.fault : undefined;
  const described = [hint !== undefined && `${id}-hint`, fault && `${id}-error`].filter(Boolean).join(" ");
  // If the form has an error, the field with the error is focused instead of the field with `autofocus`.
  const isFocused = fault !== undefined || (given.autofocus === true && given.fault === undefined);
  return html`<div class="field">
<label for="${id}">${label}</label>
<input id="${id}" name="${name}" type="${type}" autocomplete="${autocomplete}" required${[
    value !== undefined && html` value="${value}"`,
    minLength !== undefined && html` minlength="${minLength}"`,
    maxLength !== undefined && html` maxlength="${maxLength}"`,
    type === "email" && html` inputmode="email" spellcheck="false"`,
    described !== "" && html` aria-describedby="${described}"`,
    fault && html` aria-invalid="true"`,
    isFocused && html` autofocus`,
  ]}>
${hint !== undefined && html`<span class="hint" id="${id}-hint">${hint}</span>`}
${fault && html`<span class="error" id="${id}-error">${fault.message}</span>`}
</div>`;
}

const maxNameLength = 100;

export function nameField(value: string | undefined, fault: FormFault | undefined, idPrefix = ""): Html {
  return field({
    name: "name",
    label: "Your name",
    autocomplete: "name",
    value,
    maxLength: maxNameLength,
    fault,
    idPrefix,
  });
}

/** Renders the field for a new password. `autofocus` is for the first field of a page. */
export function newPasswordField(fault: FormFault | undefined, given: Partial<Field> = {}): Html {
  const hint = `At least ${minPasswordLength} characters. Several words in a row are easy to remember and hard to guess.`;
  return field({
    name: "password",
    label: "Password",
    type: "password",
    autocomplete: "new-password",
    // The error contains the same text as the hint, so the hint is omitted.
    ...(fault?.field === "password" ? {} : { hint }),
    minLength: minPasswordLength,
    maxLength: maxPasswordLength,
    fault,
    ...given,
  });
}

/**
 * Renders a hidden text field with the email address. Password managers store the password under this address, but
 * ignore inputs of type `hidden`.
 */
export function usernameOf(email: string): Html {
  return html`<input type="email" name="email" value="${email}" autocomplete="username" readonly hidden>`;
}

export function hidden(name: string, value: string): Html {
  return html`<input type="hidden" name="${name}" value="${value}">`;
}

/** Renders the field with the CSRF token. Returns undefined if nobody is signed in. */
export function csrfField(signedIn: SignedIn | undefined): Html | undefined {
  return signedIn && hidden("csrf", signedIn.csrfToken);
}
