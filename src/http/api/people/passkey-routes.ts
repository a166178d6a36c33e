// The endpoints for a person's passkeys, and for signing in with a passkey.
import type { AuthenticationResponseJSON, RegistrationResponseJSON } from "@simplewebauthn/server";
import type { z } from "zod";
import { type AttemptLimit, Attempts } from "../../../accounts/attempts.ts";
import type { BrowserSessions } from "../../../accounts/browser-sessions.ts";
import type { Passkeys } from "../../../accounts/passkeys.ts";
import { forbidden, GatewayError } from "../../../base/errors.ts";
import type { LimitStore } from "../../../domain/limits/limits.ts";
import type { Passkey, PersonStore } from "../../../domain/people/person.ts";
import type { SessionStore } from "../../../domain/people/session.ts";
import type { IncomingRequest } from "../../../http1/message.ts";
import { clientNetwork } from "../../../policy/client-network.ts";
import {
  addPasskeyRequest,
  creationOptions,
  deletedPasskey,
  passkeyShape,
  passkeySignedIn,
  passkeySignInOptions,
  passkeySignInRequest,
  updatePasskeyRequest,
} from "../../../wire/people/passkeys.ts";
import { readStrictBody } from "../../content/strict-body.ts";
import { browserOrigin } from "../../exchange/browser.ts";
import type { ApiRoute, Exchange, PersonPrincipal, RouteDoc } from "../../exchange/route.ts";
import { home, localPath } from "../../pages/local-path.ts";
import { bodyErrors, noStore, originOf } from "../changes.ts";
import { type EndpointDeps, personEndpoints } from "../endpoint.ts";
import { listOf, pageOf } from "../list.ts";

export interface PasskeyRouteDeps extends EndpointDeps {
  passkeys: Passkeys;
  people: Pick<PersonStore, "findPerson" | "membershipsOf">;
  sessions: Pick<BrowserSessions, "start">;
  sessionStore: Pick<SessionStore, "list">;
  limits: Pick<LimitStore, "admit">;
  isOwnOrigin(origin: string, req: IncomingRequest): boolean;
}

/**
 * Maximum requests for sign-in options per minute and address. Each sign-in page sends one, and an office may
 * share an address.
 */
const optionsPerMinute = 120;
/** Minutes after a sign-in during which a passkey can be added. */
const freshMinutes = 15;
/** Maximum failed sign-ins in ten minutes, the same as for passwords. */
const failures = { limit: 30, windowSeconds: 600 };
const idParameter = [{ name: "id", in: "path", description: "Id of the passkey." }] as const;
const passkeyList = listOf(passkeyShape, "PasskeyList");

export function passkeyRoutes(deps: PasskeyRouteDeps): ApiRoute[] {
  const attempts = new Attempts(deps.limits);
  return [
    ...[list(deps), additionOptions(deps), add(deps), rename(deps), remove(deps)],
    {
      method: "POST",
      path: "/sign-in/passkey/options",
      access: "public",
      throttle: "form",
      doc: signInOptionsDoc,
      handle: (exchange) => signInOptions(exchange, deps, attempts),
    },
    {
      method: "POST",
      path: "/sign-in/passkey",
      access: "public",
      throttle: "form",
      doc: signInDoc,
      handle: (exchange) => signIn(exchange, deps, attempts),
    },
  ];
}

interface BrowserPerson {
  id: string;
  sessionId: string;
}

/**
 * Throws if the caller has no browser session. With a command-line token, a program could register a passkey that no
 * person holds.
 */
function requireBrowser({ person: { id, sessionId } }: PersonPrincipal): BrowserPerson {
  if (sessionId !== null) return { id, sessionId };
  throw forbidden("Passkeys are managed at a browser: sign in there and open /settings.");
}

const endpoint = personEndpoints<PasskeyRouteDeps, BrowserPerson>({
  tag: "People",
  errors: [],
  admit: requireBrowser,
});

const list = endpoint("GET", "/v1/passkeys", {
  operationId: "listPasskeys",
  summary: "List your passkeys",
  description: "Only in a browser session, like the other endpoints of passkeys. Oldest first, all in one page.",
  response: { description: "The passkeys.", json: passkeyList },
  async answer({ deps: { passkeys }, principal: { id } }) {
    const all = await passkeys.list(id);
    return pageOf(all.map(toWire), all.length);
  },
});

const additionOptions = endpoint("POST", "/v1/passkeys/options", {
  operationId: "createPasskeyOptions",
  summary: "Begin to add a passkey",
  description: `Only within ${freshMinutes} minutes of signing in; later, sign in again. Pass the answer to \`navigator.credentials.create()\`. It is valid once, in this session, within five minutes.`,
  response: { description: "Options for the browser.", json: creationOptions },
  async answer({ deps: { passkeys, people, sessionStore, clock }, exchange: { req }, principal: { id, sessionId } }) {
    const person = await people.findPerson(id);
    if (!person) throw gone();
    const nowSeconds = clock.nowSeconds();
    const session = (await sessionStore.list(id, nowSeconds)).find((one) => one.id === sessionId);
    // Only a recent sign-in may add a passkey. A stranger at an unlocked browser must not get permanent access.
    if (!session || session.createdAt + freshMinutes * 60 < nowSeconds) throw stale();
    return { ...(await passkeys.additionOptions(person, sessionId, originIn(req))) };
  },
});

const add = endpoint("POST", "/v1/passkeys", {
  operationId: "addPasskey",
  summary: "Add the passkey that the browser made",
  requestBody: addPasskeyRequest,
  response: { description: "The passkey.", json: passkeyShape },
  async answer({ deps, exchange, principal: { id, sessionId }, body: { name, response }, origin }) {
    const person = await deps.people.findPerson(id);
    if (!person) throw gone();
    const given = { name, response: response as RegistrationResponseJSON };
    const ceremony = { ...origin, pageOrigin: originIn(exchange.req) };
    return toWire(await deps.passkeys.add(person, sessionId, given, ceremony));
  },
});

const rename = endpoint("PATCH", "/v1/passkeys/:id", {
  operationId: "updatePasskey",
  summary: "Rename a passkey",
  parameters: idParameter,
  requestBody: updatePasskeyRequest,
  example: { name: "Laptop" },
  response: { description: "The passkey.", json: passkeyShape },
  async answer({ deps, principal: person, id, body: { name } }) {
    await deps.passkeys.rename(id, person.id, name);
    const renamed = (await deps.passkeys.list(person.id)).find((passkey) => passkey.id === id);
    if (!renamed) throw gone();
    return toWire(renamed);
  },
});

const remove = endpoint("DELETE", "/v1/passkeys/:id", {
  operationId: "deletePasskey",
  summary: "Remove a passkey",
  description:
    "The passkey no longer works for signing in. Existing sessions stay: if the passkey was lost, end those sessions as well.",
  parameters: idParameter,
  response: { description: "The passkey is removed.", json: deletedPasskey },
  async answer({ deps, principal: person, id, origin }) {
    await deps.passkeys.remove(id, person.id, origin);
    return { object: "passkey.deleted", id, deleted: true };
  },
});

const signInOptionsDoc: RouteDoc = {
  operationId: "createPasskeySignInOptions",
  summary: "Begin to sign in with a passkey",
  description:
    "Only for the sign-in page of this server. Pass `options` to `navigator.credentials.get()`. They are valid once, within five minutes.",
  tag: "People",
  response: { description: "Options for the browser.", json: passkeySignInOptions },
  errors: ["permission_denied", "rate_limit_exceeded"],
};

async function signInOptions(exchange: Exchange, deps: PasskeyRouteDeps, attempts: Attempts): Promise<Response> {
  const pageOrigin = requireOwnPage(exchange, deps);
  const rule = ruleFor("passkey-options", exchange, { limit: optionsPerMinute, windowSeconds: 60 });
  await attempts.count([rule], "Too many attempts from your address.");
  const { challengeId, options } = await deps.passkeys.signInOptions(pageOrigin, clientNetwork(exchange.clientAddress));
  return Response.json({ challenge_id: challengeId, options }, { headers: noStore });
}

const signInDoc: RouteDoc = {
  operationId: "signInWithPasskey",
  summary: "Sign in with a passkey",
  description: "Only for the sign-in page of this server. The answer sets the session's cookie.",
  tag: "People",
  requestBody: passkeySignInRequest,
  response: { description: "The person is signed in.", json: passkeySignedIn },
  errors: [...bodyErrors, "permission_denied", "rate_limit_exceeded", "service_unavailable"],
};

async function signIn(exchange: Exchange, deps: PasskeyRouteDeps, attempts: Attempts): Promise<Response> {
  const pageOrigin = requireOwnPage(exchange, deps);
  const request = await readStrictBody(passkeySignInRequest, exchange.req, deps.requestLimits());
  const given = { challengeId: request.challenge_id, response: request.response as AuthenticationResponseJSON };
  const ceremony = { ...originOf(exchange, deps), pageOrigin };
  const rule = ruleFor("passkey-failed", exchange, failures);
  const cookie = await attempts.run([rule], "Too many attempts to sign in failed.", async () => {
    const person = await deps.passkeys.signIn(given, ceremony);
    const [first] = await deps.people.membershipsOf(person.id);
    const proof = { passkeyId: given.response.id };
    const origin = browserOrigin(exchange);
    const started = await deps.sessions.start(person, first?.accountId ?? null, "passkey", origin, proof);
    return started.cookie;
  });
  const body: z.infer<typeof passkeySignedIn> = { next: localPath(request.next) ?? home };
  return Response.json(body, { headers: { ...noStore, "set-cookie": cookie } });
}

/**
 * Returns the origin of the page. Throws if the page is not the gateway's own, because another site could sign its
 * visitors in to a different person's account.
 */
function requireOwnPage({ req }: Exchange, { isOwnOrigin }: PasskeyRouteDeps): string {
  const origin = req.headers.get("origin");
  if (origin !== null && isOwnOrigin(origin, req)) return origin;
  throw forbidden("Only this server's own sign-in page signs people in with a passkey.", {
    detail: "origin",
  });
}

/** Returns the origin header of a session's request. Authentication has already checked that origin. */
function originIn({ headers }: IncomingRequest): string {
  const origin = headers.get("origin");
  if (origin !== null) return origin;
  throw forbidden("Passkeys are managed by this server's own pages: open /settings.");
}

function ruleFor(name: string, { clientAddress }: Exchange, bound: Omit<AttemptLimit, "id">): AttemptLimit {
  return { id: `${name}:${clientNetwork(clientAddress)}`, ...bound };
}

function toWire(passkey: Passkey): z.infer<typeof passkeyShape> {
  return {
    object: "passkey",
    id: passkey.id,
    name: passkey.name,
    backed_up: passkey.backedUp,
    created_at: passkey.createdAt,
    last_used_at: passkey.lastUsedAt,
  };
}

function stale(): GatewayError {
  return forbidden(
    `You signed in more than ${freshMinutes} minutes ago. Sign out and in again, then add the passkey: so nobody does who finds this browser open.`,
  );
}

/** Returns the error for a person who was deleted during the request. */
function gone(): GatewayError {
  return new GatewayError("not_found", "This is not there any more. Load the page again.");
}
