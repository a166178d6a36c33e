// The endpoints for the signed-in person's profile, current account and sessions.

import { z } from "zod";
import { type BrowserSessions, idleSeconds } from "../../../accounts/browser-sessions.ts";
import type { OwnAccount } from "../../../accounts/own-account.ts";
import { forbidden, GatewayError, invalidRequest } from "../../../base/errors.ts";
import { invalidApiKey } from "../../../base/invalid-api-key.ts";
import { shown } from "../../../base/text/shown.ts";
import type { OwnMembership, Person, PersonStore } from "../../../domain/people/person.ts";
import type { SessionStore } from "../../../domain/people/session.ts";
import { auditEvent, type Origin } from "../../../policy/records/audit.ts";
import type { Throttle } from "../../../policy/throttle.ts";
import {
  browserSessionShape,
  browserSessionToWire,
  changedPassword,
  changePasswordRequest,
  endedSession,
  endedSessions,
  type SessionWire,
  sessionShape,
  updateSessionRequest,
} from "../../../wire/people/people.ts";
import { browserOrigin } from "../../exchange/browser.ts";
import type { PersonPrincipal, PersonRoute } from "../../exchange/route.ts";
import type { EndpointDeps } from "../endpoint.ts";
import { listOf, pageOf, pageQuery } from "../list.ts";
import { managingEndpoints, peopleEndpoints } from "./people-endpoint.ts";

export interface SessionRouteDeps extends EndpointDeps {
  people: Pick<PersonStore, "findPerson" | "membershipsOf">;
  ownAccount: Pick<OwnAccount, "hasPassword" | "renameSelf" | "changeOwnPassword">;
  sessionStore: Pick<SessionStore, "list" | "end" | "endAll" | "setAccount">;
  sessions: Pick<BrowserSessions, "csrfTokenOf">;
  throttle: Pick<Throttle, "require">;
  /** Called after logins may have ended, to clear caches of them. */
  changed(ids?: readonly string[]): void;
}

const sessionQuery = z.object(pageQuery);
const sessionList = listOf(browserSessionShape, "BrowserSessionList");

const reading = peopleEndpoints<SessionRouteDeps>();
const managing = managingEndpoints<SessionRouteDeps>();

export function sessionRoutes(deps: SessionRouteDeps): PersonRoute[] {
  return [retrieve(deps), update(deps), changePassword(deps), list(deps), endOthers(deps), end(deps)];
}

const retrieve = reading("GET", "/v1/session", {
  operationId: "getSession",
  summary: "Retrieve the signed-in person and account",
  response: { description: "The session or login.", json: sessionShape },
  answer: ({ deps, principal }) => toWire(principal, principal.account.id, deps),
});

const update = managing("PATCH", "/v1/session", {
  operationId: "updateSession",
  summary: "Switch to another account, or change your name",
  requestBody: updateSessionRequest,
  example: { name: "Ada Lovelace" },
  response: { description: "The changed session or login.", json: sessionShape },
  async answer({ deps, exchange, principal, body: { account_id: wanted, name } }) {
    const { sessionId } = principal.person;
    // Both changes are validated before the first one is made.
    const membership = wanted === undefined ? undefined : await requireMembership(wanted, principal, deps);
    if (name !== undefined) {
      await deps.throttle.require("change", principal);
      const person = await requirePerson(principal, deps);
      const by = sessionId === null ? { person } : { person, session: { id: sessionId } };
      await deps.ownAccount.renameSelf(by, name, browserOrigin(exchange));
    }
    if (membership && sessionId !== null) await deps.sessionStore.setAccount(sessionId, membership.accountId);
    return toWire(principal, membership?.accountId ?? principal.account.id, deps);
  },
});

async function requireMembership(
  accountId: string,
  { person }: PersonPrincipal,
  { people }: SessionRouteDeps,
): Promise<OwnMembership> {
  if (person.sessionId === null) {
    throw forbidden("account_id: a login is for the account that it was allowed for; sign in again for another one.");
  }
  const memberships = await people.membershipsOf(person.id);
  const found = memberships.find((membership) => membership.accountId === accountId);
  if (found?.accountStatus === "active") return found;
  const why = found ? "this account is suspended" : "must be one of `accounts`, which GET /v1/session lists";
  throw invalidRequest(`account_id: ${why}.`);
}

async function toWire(principal: PersonPrincipal, accountId: string, deps: SessionRouteDeps): Promise<SessionWire> {
  const { person, environment, scopes } = principal;
  const [found, memberships] = await Promise.all([
    requirePerson(principal, deps),
    deps.people.membershipsOf(person.id),
  ]);
  const membership = memberships.find((one) => one.accountId === accountId);
  if (!membership) throw goneMeanwhile();
  return {
    object: "session",
    person: { id: found.id, email: found.email, name: found.name, is_operator: found.isOperator },
    account: { id: membership.accountId, name: membership.accountName },
    role: membership.role,
    environment,
    scopes: [...scopes],
    session_id: person.sessionId,
    csrf_token: person.sessionId === null ? null : deps.sessions.csrfTokenOf(person.sessionId),
    // Null for a token, because a stolen token must not reveal how the person signs in.
    has_password: person.sessionId === null ? null : await deps.ownAccount.hasPassword(found),
    accounts: memberships.map(
      ({ id: membershipId, accountId: id, accountName: name, role, accountStatus: status }) => ({
        ...{ id, name, role, status, membership_id: membershipId },
      }),
    ),
  };
}

async function requirePerson({ person }: PersonPrincipal, { people }: SessionRouteDeps): Promise<Person> {
  const found = await people.findPerson(person.id);
  if (found) return found;
  throw goneMeanwhile();
}

/** Returns the error for a person who was deleted, or removed from the account, during the request. */
function goneMeanwhile(): GatewayError {
  return invalidApiKey("ended_meanwhile");
}

const changePassword = managing("POST", "/v1/session/password", {
  operationId: "changePassword",
  summary: "Change your password",
  description:
    "Only in a browser session. All other sessions and all command line logins of the person end. Keys and apps stay valid.",
  requestBody: changePasswordRequest,
  example: { current_password: "correct horse battery", new_password: "a few other words than that" },
  response: { description: "The password is changed.", json: changedPassword },
  async answer({ deps, exchange, principal, body }) {
    const { sessionId } = principal.person;
    // Only a browser session may set a first password, because a stolen token must not set one.
    if (sessionId === null) {
      throw forbidden("A password is changed in a browser: sign in there, and open Settings.");
    }
    const signedIn = { person: await requirePerson(principal, deps), session: { id: sessionId } };
    const given = { current: body.current_password ?? "", next: body.new_password };
    await deps.ownAccount.changeOwnPassword(signedIn, given, browserOrigin(exchange)).catch((error: unknown) => {
      throw withFieldsOf(error);
    });
    deps.changed([signedIn.person.id]);
    return { object: "password", changed: true };
  },
});

/** Renames the field in an error to this endpoint's name for it, because the request has two password fields. */
function withFieldsOf(error: unknown): unknown {
  if (!(error instanceof GatewayError) || error.code !== "invalid_request") return error;
  return invalidRequest(error.message.replace(/^password:/, "new_password:"));
}

const list = reading("GET", "/v1/sessions", {
  operationId: "listSessions",
  summary: "List your browser sessions",
  description:
    "Lists only your sessions, newest first. Tokens of `headrace login` are listed under `GET /v1/authorizations`.",
  query: sessionQuery,
  response: { description: "One page of sessions.", json: sessionList },
  async answer({ deps, principal: { person }, query: { limit, after } }) {
    const now = deps.clock.nowSeconds();
    const all = await deps.sessionStore.list(person.id, now);
    const current = all.filter(({ lastSeenAt }) => lastSeenAt + idleSeconds > now);
    const start = after === undefined ? 0 : current.findIndex(({ id }) => id === after) + 1;
    if (after !== undefined && start === 0) {
      throw invalidRequest("after: must be the id of a session of this list.");
    }
    const found = current.slice(start).map((session) => browserSessionToWire(session, person.sessionId));
    return pageOf(found, limit);
  },
});

const end = managing("DELETE", "/v1/sessions/:id", {
  operationId: "endSession",
  summary: "Sign out in one browser",
  description: "Ends the session immediately. It can also be the session of the request.",
  parameters: [{ name: "id", in: "path", description: "Id of the session, `ses_…`." }],
  response: { description: "It ended.", json: endedSession },
  async answer({ deps, principal, id, origin }) {
    const event = endEvent(principal, id, { reason: "ended_by_person" }, origin);
    if (await deps.sessionStore.end(id, principal.person.id, event)) {
      return { object: "browser_session", id, deleted: true };
    }
    throw new GatewayError("not_found", `There is no session ${shown(id)} of yours. GET /v1/sessions lists them.`);
  },
});

const endOthers = managing("DELETE", "/v1/sessions", {
  operationId: "endOtherSessions",
  summary: "Sign out of all other sessions",
  description:
    "Ends all your sessions and command line logins except the one of the request. Apps that you allowed stay valid.",
  response: { description: "They ended.", json: endedSessions },
  async answer({ deps, principal, origin }) {
    const { id: personId, sessionId } = principal.person;
    const own = sessionId ?? principal.keys[0].id;
    const event = endEvent(principal, null, { reason: "ended_by_person", all_but: own }, origin);
    const deleted = await deps.sessionStore.endAll(personId, own, event);
    deps.changed([personId]);
    return { object: "browser_session.deleted", deleted };
  },
});

function endEvent(principal: PersonPrincipal, id: string | null, detail: Record<string, unknown>, origin: Origin) {
  return auditEvent("session.ended", principal, origin, { accountId: null, targetId: id, detail });
}
