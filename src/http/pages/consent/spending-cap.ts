// The part of a consent page in which a person limits what an app may spend each month.

import { maxAmount } from "../../../domain/limits/quota-rules.ts";
import type { App } from "../../../domain/people/app.ts";
import { commandLineAppId } from "../../../domain/people/app.ts";
import type { Authorization } from "../../../domain/people/oauth.ts";
import type { Scope } from "../../../domain/scope.ts";
import { type Html, html } from "../html.ts";

const field = "spend_cap";
const amountPattern = /^\d{1,7}(?:\.\d{1,6})?$/;

/** Reports whether a cap applies to the app: it uses models, and is not the person's own command line tool. */
function spends({ id }: Pick<App, "id">, scopes: readonly Scope[]): boolean {
  return id !== commandLineAppId && scopes.includes("chat:write");
}

export function spendingCapField(
  app: Pick<App, "id">,
  scopes: readonly Scope[],
  sent: ReadonlyMap<string, string> | undefined,
  fault: string | undefined,
): Html | undefined {
  if (!spends(app, scopes)) return undefined;
  const alert = fault !== undefined && html`<span class="error" id="cap-fault" role="alert">${fault}</span>`;
  return html`<label>Spending cap in USD per month (optional)
<input name="${field}" inputmode="decimal" maxlength="14" placeholder="No cap" value="${sent?.get(field) ?? ""}"${alert && html` aria-describedby="cap-fault"`}></label>
${alert}<p class="quiet">Once the app has spent this much, its requests are refused until the next month. If you leave this empty, a cap that you set before stays. You can change it in your settings.</p>`;
}

/**
 * Returns the quotas of the submitted form, or `fault` if the amount is invalid. `quotas` is null if the earlier quotas
 * stay.
 */
export function chosenCap(
  app: Pick<App, "id">,
  scopes: readonly Scope[],
  fields: ReadonlyMap<string, string>,
): Pick<Authorization, "quotas"> | { fault: string } {
  const text = spends(app, scopes) ? (fields.get(field) ?? "").trim().replace(/^\$ ?/, "") : "";
  if (text === "") return { quotas: null };
  const amount = Number(text);
  if (!amountPattern.test(text) || amount <= 0 || amount > maxAmount.usd) {
    return { fault: `Enter an amount in USD, such as 5 or 2.50, up to ${maxAmount.usd}.` };
  }
  return { quotas: [{ unit: "usd", amount, per: "month", window: "calendar" }] };
}
