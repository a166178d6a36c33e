// Handles the forms of the settings page.
import { idleSeconds } from "../../accounts/browser-sessions.ts";
import type { OwnAccount } from "../../accounts/own-account.ts";
import type { Passkeys } from "../../accounts/passkeys.ts";
import type { Clock } from "../../base/clock.ts";
import { forbidden } from "../../base/errors.ts";
import type { OAuthStore } from "../../domain/people/oauth.ts";
import type { PersonStore } from "../../domain/people/person.ts";
import type { SessionStore, SignedIn } from "../../domain/people/session.ts";
import { auditEvent } from "../../policy/records/audit.ts";
import { originOf } from "../api/changes.ts";
import { browserOrigin } from "../exchange/browser.ts";
import type { Exchange, PageRoute, PlainAnswer } from "../exchange/route.ts";
import { faultOf } from "./form.ts";
import { signInPath } from "./local-path.ts";
import { formAt, type PageDeps, pageAt, readForm, redirectTo, signedInAt } from "./page.ts";
import { type SettingsView, settingsPage } from "./settings-view.ts";

export interface SettingsPageDeps extends PageDeps {
  ownAccount: Pick<OwnAccount, "hasPassword" | "renameSelf" | "changeOwnPassword">;
  people: Pick<PersonStore, "listPasskeys">;
  passkeys: Pick<Passkeys, "remove">;
  sessionStore: Pick<SessionStore, "list" | "end" | "endAll" | "setAccount">;
  oauth: Pick<OAuthStore, "listAllowedApps" | "revokeAllowedApp">;
  clock: Clock;
  /** Called after grants or logins may have ended, to clear caches of them. */
  changed(ids?: readonly string[]): void;
}

const path = "/settings";

interface Change {
  exchange: Exchange;
  deps: SettingsPageDeps;
  signedIn: SignedIn;
  fields: ReadonlyMap<string, string>;
}

export function settingsRoutes(deps: SettingsPageDeps): PageRoute[] {
  const change = (what: string, make: (change: Change) => Promise<PlainAnswer>) =>
    formAt(`${path}/${what}`, async (exchange) => {
      const signedIn = await signedInAt(exchange, deps);
      // If the session has ended, the form is dropped, and the person must sign in again.
      if (!signedIn) return redirectTo(signInPath(path));
      return make({ exchange, deps, signedIn, fields: await readForm(exchange, deps, signedIn) });
    });
  return [
    pageAt(path, (exchange) => settings(exchange, deps)),
    change("name", changeName),
    change("password", changePassword),
    change("account", switchAccount),
    change("passkeys/remove", removePasskey),
    change("sessions/end", endSession),
    change("sessions/end-others", endOtherSessions),
    change("apps/remove", removeApp),
  ];
}

async function settings(exchange: Exchange, deps: SettingsPageDeps): Promise<PlainAnswer> {
  const signedIn = await signedInAt(exchange, deps);
  if (!signedIn) return redirectTo(signInPath(path));
  const query = exchange.req.target.split("?")[1] ?? "";
  return shown(deps, signedIn, { done: new URLSearchParams(query).get("done") ?? undefined });
}

async function shown(
  deps: SettingsPageDeps,
  signedIn: SignedIn,
  outcome: Pick<SettingsView, "done" | "refused">,
): Promise<PlainAnswer> {
  const { ownAccount, people, sessionStore, oauth, clock } = deps;
  const { person } = signedIn;
  const nowSeconds = clock.nowSeconds();
  const [hasPassword, sessions, passkeys, apps] = await Promise.all([
    ownAccount.hasPassword(person),
    sessionStore.list(person.id, nowSeconds),
    people.listPasskeys(person.id),
    oauth.listAllowedApps(person.id, nowSeconds),
  ]);
  return settingsPage({
    signedIn,
    hasPassword,
    sessions: sessions.filter(({ lastSeenAt }) => lastSeenAt + idleSeconds > nowSeconds),
    passkeys,
    apps,
    nowSeconds,
    ...outcome,
  });
}

async function changeName({ exchange, deps, signedIn, fields }: Change): Promise<PlainAnswer> {
  const name = fields.get("name") ?? "";
  try {
    await deps.ownAccount.renameSelf(signedIn, name, browserOrigin(exchange));
  } catch (error) {
    const fault = faultOf(error, ["name"], exchange);
    return shown(deps, signedIn, { refused: { form: "name", fault, name } });
  }
  return done("name");
}

async function changePassword({ exchange, deps, signedIn, fields }: Change): Promise<PlainAnswer> {
  const passwords = { current: fields.get("current_password") ?? "", next: fields.get("password") ?? "" };
  try {
    await deps.ownAccount.changeOwnPassword(signedIn, passwords, browserOrigin(exchange));
  } catch (error) {
    const fault = faultOf(error, ["current_password", "password"], exchange);
    return shown(deps, signedIn, { refused: { form: "password", fault } });
  }
  deps.changed([signedIn.person.id]);
  return done("password");
}

async function switchAccount({ deps, signedIn, fields }: Change): Promise<PlainAnswer> {
  const wanted = signedIn.memberships.find(({ accountId }) => accountId === fields.get("account_id"));
  if (!wanted) throw forbidden("You are no longer a member of this account.");
  if (wanted.accountStatus === "suspended") {
    throw forbidden(`${wanted.accountName} is suspended.`);
  }
  await deps.sessionStore.setAccount(signedIn.session.id, wanted.accountId);
  return done("account");
}

async function removePasskey({ exchange, deps, signedIn, fields }: Change): Promise<PlainAnswer> {
  await deps.passkeys.remove(fields.get("id") ?? "", signedIn.person.id, originOf(exchange, deps));
  return done("passkey_removed");
}

async function endSession({ exchange, deps, signedIn, fields }: Change): Promise<PlainAnswer> {
  const { session, person } = signedIn;
  const id = fields.get("session_id") ?? "";
  if (id === session.id) {
    exchange.answerHeaders["set-cookie"] = await deps.sessions.end(signedIn, browserOrigin(exchange));
    return redirectTo("/sign-in");
  }
  const detail = { reason: "ended_by_person" };
  // If that session has already ended, nothing happens.
  await deps.sessionStore.end(id, person.id, ended(exchange, deps, signedIn, { targetId: id, detail }));
  return done("session");
}

async function endOtherSessions({ exchange, deps, signedIn }: Change): Promise<PlainAnswer> {
  const { session, person } = signedIn;
  const detail = { reason: "ended_by_person", all_but: session.id };
  const event = ended(exchange, deps, signedIn, { targetId: null, detail });
  await deps.sessionStore.endAll(person.id, session.id, event);
  deps.changed([person.id]);
  return done("sessions");
}

async function removeApp({ exchange, deps, signedIn, fields }: Change): Promise<PlainAnswer> {
  const { oauth, clock } = deps;
  const { person } = signedIn;
  const [appId, accountId] = [fields.get("app_id"), fields.get("account_id")];
  const allowed = (await oauth.listAllowedApps(person.id, clock.nowSeconds())).find(
    (one) => one.appId === appId && one.accountId === accountId,
  );
  if (allowed) {
    const { environment, scopes } = allowed;
    const about = { accountId: allowed.accountId, targetId: allowed.appId, detail: { environment, scopes } };
    const event = auditEvent("grant.revoked", signedIn, originOf(exchange, deps), about);
    await oauth.revokeAllowedApp(person.id, allowed.appId, allowed.accountId, event);
    deps.changed([person.id]);
  }
  return done("app");
}

function ended(
  exchange: Exchange,
  deps: SettingsPageDeps,
  signedIn: SignedIn,
  about: { targetId: string | null; detail: Record<string, unknown> },
) {
  return auditEvent("session.ended", signedIn, originOf(exchange, deps), { accountId: null, ...about });
}

function done(what: string): PlainAnswer {
  return redirectTo(`${path}?done=${what}`);
}
