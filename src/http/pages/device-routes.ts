// The device page: a person enters the code of a device and decides whether the device may act on the person's behalf
// (RFC 8628, 3.3).

import { Attempts } from "../../accounts/attempts.ts";
import type { Clock } from "../../base/clock.ts";
import { type GatewayError, invalidRequest } from "../../base/errors.ts";
import type { Environment } from "../../domain/api-key.ts";
import type { Keys } from "../../domain/key-ring.ts";
import type { LimitStore } from "../../domain/limits/limits.ts";
import { type AppStore, appScopes, commandLineAppId, type PublishedApp } from "../../domain/people/app.ts";
import type { DeviceCode, OAuthStore } from "../../domain/people/oauth.ts";
import type { SignedIn } from "../../domain/people/session.ts";
import type { KeyStore } from "../../domain/principal.ts";
import type { Scope } from "../../domain/scope.ts";
import type { McpServers } from "../../domain/tools/mcp-server.ts";
import { hasCredential, toolsBefore, usableMemberships } from "../../oauth/authorize/consent.ts";
import { findClient } from "../../oauth/first-party.ts";
import { normalizedUserCode } from "../../oauth/user-code.ts";
import { clientNetwork } from "../../policy/client-network.ts";
import { auditEvent } from "../../policy/records/audit.ts";
import { originOf } from "../api/changes.ts";
import type { Exchange, PageRoute, PlainAnswer } from "../exchange/route.ts";
import { type ChoiceFault, chosenMembership, preferredMembership } from "./consent/app-parts.ts";
import {
  codePage,
  confirmationPage,
  deviceOutcomePage,
  noDeviceAccountPage,
  shownUserCode,
} from "./consent/device-page.ts";
import { chosenCap } from "./consent/spending-cap.ts";
import { chosenTools, type ToolChoice, toolChoice } from "./consent/tool-choice.ts";
import { faultOf } from "./form.ts";
import { formTicket, hasTicket, type TicketSubject } from "./form-ticket.ts";
import { signInPath } from "./local-path.ts";
import { formAt, type PageDeps, pageAnswer, pageAt, readForm, redirectTo, signedInAt } from "./page.ts";

export interface DeviceDeps extends PageDeps {
  apps: Pick<AppStore, "findApp">;
  oauth: Pick<OAuthStore, "findByUserCode" | "decideDeviceCode" | "allowedBefore">;
  keys: Pick<KeyStore, "findChainById">;
  mcpServers: Pick<McpServers, "all">;
  limits: LimitStore;
  /** The environment in which the command line tool signs in. */
  environment: Environment;
  /** The 32-byte keys that sign form tickets. These may be the same keys as for CSRF tokens. */
  formKey: Keys;
  clock: Clock;
}

interface PendingDevice {
  code: DeviceCode;
  app: PublishedApp;
}

const path = "/device";
/**
 * Maximum wrong codes (RFC 8628, 5.1). They are counted for the person and for the network, because a new session or
 * address is easy to get.
 */
const maxWrongCodes = 10;
const windowSeconds = 600;

export function deviceRoutes(deps: DeviceDeps): PageRoute[] {
  const pages = new DevicePages(deps);
  return [
    pageAt(path, (exchange) => pages.form(exchange)),
    formAt(path, (exchange) => pages.entered(exchange)),
    formAt(`${path}/decision`, (exchange) => pages.decided(exchange)),
    pageAt(`${path}/approved`, (exchange) => pages.outcome(exchange, "approved")),
    pageAt(`${path}/denied`, (exchange) => pages.outcome(exchange, "denied")),
  ];
}

class DevicePages {
  readonly #deps: DeviceDeps;
  readonly #attempts: Attempts;

  constructor(deps: DeviceDeps) {
    this.#deps = deps;
    this.#attempts = new Attempts(deps.limits);
  }

  async form(exchange: Exchange): Promise<PlainAnswer> {
    const signedIn = await signedInAt(exchange, this.#deps);
    const given = normalizedUserCode(userCodeOf(exchange.req.target));
    const value = given === undefined ? undefined : shownUserCode(given);
    if (!signedIn) return redirectTo(signInPath(value === undefined ? path : `${path}?user_code=${value}`));
    return pageAnswer(codePage(signedIn, value === undefined ? {} : { value }));
  }

  async entered(exchange: Exchange): Promise<PlainAnswer> {
    const signedIn = await signedInAt(exchange, this.#deps);
    const fields = await readForm(exchange, this.#deps, signedIn);
    if (!signedIn) return redirectTo(signInPath(path));
    const entered = fields.get("user_code") ?? "";
    try {
      const device = await this.#tried(signedIn, exchange, async () => {
        const found = await this.#find(entered);
        if (found) return found;
        throw unknownCode();
      });
      return this.#confirmation(device, signedIn);
    } catch (error) {
      const fault = faultOf(error, ["user_code"], exchange);
      return pageAnswer(codePage(signedIn, { value: entered.slice(0, 64), fault }));
    }
  }

  async decided(exchange: Exchange): Promise<PlainAnswer> {
    const signedIn = await signedInAt(exchange, this.#deps);
    const fields = await readForm(exchange, this.#deps, signedIn);
    if (!signedIn) return redirectTo(signInPath(path));
    // A form with a wrong or missing ticket counts as an attempt too, because forms could otherwise be used to guess
    // codes.
    const device = await this.#tried(signedIn, exchange, async () => {
      const found = await this.#find(fields.get("user_code") ?? "");
      if (found && hasTicket(this.#deps.formKey, subjectOf(found, signedIn), fields.get("ticket"))) return found;
      throw goneMeanwhile();
    });
    switch (fields.get("decision")) {
      case "deny":
        return this.#deny(device, signedIn, exchange);
      case "allow":
        return this.#approve(device, signedIn, { exchange, fields });
      default:
        throw invalidRequest("decision: must be allow or deny.");
    }
  }

  async outcome(exchange: Exchange, outcome: "approved" | "denied"): Promise<PlainAnswer> {
    return pageAnswer(deviceOutcomePage(outcome, await signedInAt(exchange, this.#deps)));
  }

  /** Counts the attempt before the code is looked up, so that parallel attempts cannot exceed the limit. */
  #tried(
    { person }: SignedIn,
    { clientAddress }: Exchange,
    find: () => Promise<PendingDevice>,
  ): Promise<PendingDevice> {
    const whose = [`person:${person.id}`, `address:${clientNetwork(clientAddress)}`];
    const rules = whose.map((one) => ({ id: `user-code:${one}`, limit: maxWrongCodes, windowSeconds }));
    return this.#attempts.run(rules, `At most ${maxWrongCodes} wrong codes in ${windowSeconds / 60} minutes.`, find);
  }

  /**
   * Returns the pending device with this code, or undefined if there is none. Also returns undefined if the app of the
   * device may no longer request these scopes.
   */
  async #find(entered: string): Promise<PendingDevice | undefined> {
    const { oauth, apps, environment, clock } = this.#deps;
    const userCode = normalizedUserCode(entered);
    const code = userCode === undefined ? undefined : await oauth.findByUserCode(userCode, clock.nowSeconds());
    const app = code && (await findClient(code.appId, apps, environment));
    if (!app || app.environment !== code.environment) return undefined;
    return grantable(app, code.scopes) ? { code, app } : undefined;
  }

  async #confirmation(device: PendingDevice, signedIn: SignedIn, fault?: ChoiceFault): Promise<PlainAnswer> {
    const memberships = usableMemberships(signedIn);
    if (memberships.length === 0) return pageAnswer(noDeviceAccountPage(signedIn));
    const ticket = formTicket(this.#deps.formKey, subjectOf(device, signedIn));
    const choice = await this.#choiceOf(device, signedIn);
    const parts = { ...device, ticket, signedIn, memberships, toolChoice: choice };
    return pageAnswer(confirmationPage(fault === undefined ? parts : { ...parts, fault }));
  }

  async #choiceOf({ app, code }: PendingDevice, signedIn: SignedIn): Promise<ToolChoice | undefined> {
    const memberships = usableMemberships(signedIn);
    const { oauth, clock } = this.#deps;
    const before = await toolsBefore(app, preferredMembership(memberships, signedIn), oauth, clock.nowSeconds());
    const { scopes, resources } = code;
    return toolChoice({ app, scopes, resources, memberships, before }, this.#deps);
  }

  async #approve(
    device: PendingDevice,
    signedIn: SignedIn,
    { exchange, fields }: { exchange: Exchange; fields: ReadonlyMap<string, string> },
  ): Promise<PlainAnswer> {
    const { keys, clock, oauth } = this.#deps;
    const { code } = device;
    const { appId, environment, scopes, userCode } = code;
    const membership = chosenMembership(usableMemberships(signedIn), fields.get("account"));
    const again = (field: ChoiceFault["field"], message: string) =>
      this.#confirmation(device, signedIn, { field, message, sent: fields });
    if (!membership || !(await hasCredential(membership, environment, keys, clock.nowSeconds()))) {
      return again("account", "Choose one of your accounts.");
    }
    const chosen = chosenTools(await this.#choiceOf(device, signedIn), fields);
    if ("fault" in chosen) return again("tools", chosen.fault);
    const cap = chosenCap(device.app, scopes, fields);
    if ("fault" in cap) return again("cap", cap.fault);
    const { id: membershipId, accountId, personId } = membership;
    const authorization = { appId, personId, accountId, membershipId, environment, scopes, ...chosen, ...cap };
    const event = this.#event("device.approved", device, { signedIn, exchange, accountId });
    if (!(await oauth.decideDeviceCode(userCode, { state: "approved", authorization }, event))) throw goneMeanwhile();
    return redirectTo(`${path}/approved`);
  }

  async #deny(device: PendingDevice, signedIn: SignedIn, exchange: Exchange): Promise<PlainAnswer> {
    const event = this.#event("device.denied", device, { signedIn, exchange, accountId: null });
    const { userCode } = device.code;
    if (!(await this.#deps.oauth.decideDeviceCode(userCode, { state: "denied" }, event))) throw goneMeanwhile();
    return redirectTo(`${path}/denied`);
  }

  #event(
    action: "device.approved" | "device.denied",
    { code: { appId, environment, scopes } }: PendingDevice,
    { signedIn, exchange, accountId }: { signedIn: SignedIn; exchange: Exchange; accountId: string | null },
  ) {
    const about = { accountId, targetId: appId, detail: { environment, scopes } };
    return auditEvent(action, signedIn, originOf(exchange, this.#deps), about);
  }
}

/**
 * Reports whether the app may get the scopes. A third-party app never gets more scopes than any app may have, whatever
 * the database row of the device says.
 */
function grantable(app: PublishedApp, scopes: readonly Scope[]): boolean {
  const most: readonly Scope[] = app.id === commandLineAppId ? app.scopes : appScopes;
  return scopes.length > 0 && scopes.every((scope) => app.scopes.includes(scope) && most.includes(scope));
}

/**
 * Returns the facts about the device that the page shows. If one of them changes, the form's ticket becomes invalid.
 */
function subjectOf({ code, app }: PendingDevice, signedIn: SignedIn): TicketSubject {
  const { id, name, publisher } = app;
  return { purpose: "device", signedIn, about: [code.digest, code.userCode, id, name, publisher, ...code.scopes] };
}

function unknownCode(): GatewayError {
  return invalidRequest(
    "user_code: does not match a waiting device. Compare it with the code on the device. After some minutes the device shows a new code.",
  );
}

/** Returns the error if the code has expired or was used, or if the facts that the page showed have changed. */
function goneMeanwhile(): GatewayError {
  return invalidRequest("This code has expired or was already used. Start again on the device to get a new code.", {
    detail: "user_code_gone",
  });
}

function userCodeOf(target: string): string {
  const start = target.indexOf("?");
  return start < 0 ? "" : (new URLSearchParams(target.slice(start)).get("user_code") ?? "");
}
