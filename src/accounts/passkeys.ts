// Passkeys (WebAuthn): adds a passkey to a signed-in person, and signs people in with a passkey.

import type { AuthenticationResponseJSON, RegistrationResponseJSON } from "@simplewebauthn/server";
import type { Clock } from "../base/clock.ts";
import { forbidden, GatewayError, invalidRequest } from "../base/errors.ts";
import { longLived } from "../base/long-lived.ts";
import type { Passkey, Person, PersonStore } from "../domain/people/person.ts";
import { auditEvent, type Origin } from "../policy/records/audit.ts";
import type { FailedSignIns, PasskeyFault } from "./failed-sign-ins.ts";
import { Pending, type PendingOptions } from "./pending.ts";

export interface PasskeysOptions {
  people: Pick<
    PersonStore,
    "findPerson" | "listPasskeys" | "findPasskey" | "insertPasskey" | "passkeyUsed" | "renamePasskey" | "deletePasskey"
  >;
  failures: Pick<FailedSignIns, "recordPasskey">;
  clock: Clock;
  /** Stores WebAuthn ceremonies that wait for the browser's answer. */
  pending: PendingOptions;
}

/**
 * The request of a page that uses passkeys. `pageOrigin` is the page's origin as the browser sent it, which must be
 * ours.
 */
interface Ceremony extends Origin {
  pageOrigin: string;
}

export const maxPasskeys = 20;
export const maxPasskeyNameLength = 60;
const lifeSeconds = 300;
const maxPending = longLived.beginning.bounds.total.most;
/** ES256, EdDSA and RS256; every authenticator supports at least one of these. */
const algorithms = [-7, -8, -257];

/**
 * Returns the relying party id for pages of an origin: its host. Undefined if browsers allow no passkeys there: at an
 * IP address, and without encryption except at `localhost` (WebAuthn Level 3, 5.1.2 and 13.4.9).
 */
export function relyingPartyId(pageOrigin: string): string | undefined {
  const { protocol, hostname } = new URL(pageOrigin);
  if (hostname === "localhost") return hostname;
  const isAddress = hostname.startsWith("[") || /^[\d.]+$/.test(hostname);
  return protocol === "https:" && !isAddress ? hostname : undefined;
}

export class Passkeys {
  readonly #options: PasskeysOptions;
  /** Challenges for adding a passkey, by session. */
  readonly #additions: Pending<string>;
  /** Challenges for signing in, by an id that the page got: without a sign-in, a browser has no other identity. */
  readonly #signIns: Pending<string>;

  constructor(options: PasskeysOptions) {
    this.#options = options;
    const bounds = { lifeSeconds, most: maxPending };
    this.#additions = new Pending(options.pending, { name: "passkey_addition", ...bounds });
    this.#signIns = new Pending(options.pending, { name: "passkey_sign_in", ...bounds });
  }

  list(personId: string): Promise<Passkey[]> {
    return this.#options.people.listPasskeys(personId);
  }

  /**
   * Returns the argument of the browser's `create()`. Throws `permission_denied` if the person has enough passkeys, or
   * if passkeys are not possible here.
   */
  async additionOptions(person: Person, sessionId: string, pageOrigin: string) {
    const rpID = requirePartyId(pageOrigin);
    const known = await this.#requireRoom(person.id);
    const { generateRegistrationOptions } = await import("@simplewebauthn/server");
    const options = await generateRegistrationOptions({
      rpName: "Headrace",
      rpID,
      userID: new TextEncoder().encode(person.id),
      userName: person.email,
      userDisplayName: person.name,
      timeout: lifeSeconds * 1000,
      attestationType: "none",
      excludeCredentials: known.map(({ id, transports }) => ({ id, transports: [...transports] })),
      authenticatorSelection: { residentKey: "required", userVerification: "required" },
      supportedAlgorithmIDs: algorithms,
    });
    await this.#additions.put(sessionId, options.challenge);
    return options;
  }

  /** Adds a passkey. Throws `invalid_request` if the session did not request one, or if the passkey does not verify. */
  async add(
    person: Person,
    sessionId: string,
    given: { name: string; response: RegistrationResponseJSON },
    ceremony: Ceremony,
  ): Promise<Passkey> {
    const { people } = this.#options;
    const name = requireName(given.name);
    const rpId = requirePartyId(ceremony.pageOrigin);
    const challenge = await this.#additions.take(sessionId);
    if (challenge === undefined) throw tooLate();
    const found = await verifyAddition(given.response, challenge, ceremony.pageOrigin, rpId);
    await this.#requireRoom(person.id);
    const passkey: Passkey = {
      id: found.credential.id,
      personId: person.id,
      name,
      publicKey: Buffer.from(found.credential.publicKey).toString("base64url"),
      counter: found.credential.counter,
      transports: (found.credential.transports ?? []).slice(0, 8),
      backedUp: found.credentialBackedUp,
      createdAt: ceremony.nowSeconds,
      lastUsedAt: null,
    };
    const event = auditEvent("passkey.added", { person, session: { id: sessionId } }, ceremony, {
      accountId: null,
      targetId: passkey.id,
      detail: { name, backed_up: passkey.backedUp },
    });
    if (await people.insertPasskey(passkey, event)) return passkey;
    throw invalidRequest("This passkey is known here already. Use it, or make another one.");
  }

  /** Renames a passkey. Throws `invalid_request`, or `not_found` if the person has no such passkey. */
  async rename(id: string, personId: string, name: string): Promise<void> {
    if (!(await this.#options.people.renamePasskey(id, personId, requireName(name)))) throw missing();
  }

  /** Removes a passkey. Throws `not_found` if the person has no such passkey. */
  async remove(id: string, personId: string, origin: Origin): Promise<void> {
    const event = auditEvent("passkey.removed", { type: "person", id: personId }, origin, {
      accountId: null,
      targetId: id,
      detail: {},
    });
    if (!(await this.#options.people.deletePasskey(id, personId, event))) throw missing();
  }

  /** Returns the argument of the browser's `get()`. It names no passkeys, so that nobody learns who has one. */
  async signInOptions(pageOrigin: string, network: string) {
    const rpID = requirePartyId(pageOrigin);
    const { generateAuthenticationOptions } = await import("@simplewebauthn/server");
    const options = await generateAuthenticationOptions({
      rpID,
      timeout: lifeSeconds * 1000,
      userVerification: "required",
    });
    const challengeId = this.#signIns.newKey(network);
    await this.#signIns.put(challengeId, options.challenge);
    return { challengeId, options };
  }

  /**
   * Returns the person with this passkey. Throws `permission_denied` with one message for every fault of a passkey, and
   * `invalid_request` if the challenge has expired or was used.
   */
  async signIn(
    given: { challengeId: string; response: AuthenticationResponseJSON },
    ceremony: Ceremony,
  ): Promise<Person> {
    const { people } = this.#options;
    const { response } = given;
    const rpId = requirePartyId(ceremony.pageOrigin);
    const challenge = await this.#signIns.take(given.challengeId);
    if (challenge === undefined) throw tooLate();
    const passkey = await people.findPasskey(response.id);
    const person = passkey && (await people.findPerson(passkey.personId));
    if (!person) throw refused("unknown_passkey");
    const handle = response.response.userHandle;
    const isTheirs = !handle || handle === Buffer.from(person.id).toString("base64url");
    const used = isTheirs ? await verifyUse(response, passkey, challenge, ceremony.pageOrigin, rpId) : undefined;
    if (!used) throw this.#refused("not_verified", passkey, ceremony);
    // A counter that stays 0 belongs to an authenticator without one (WebAuthn Level 3, 6.1.1).
    const hasCounter = used.counter > 0 || passkey.counter > 0;
    if (hasCounter && used.counter <= passkey.counter) throw this.#refused("counter_went_back", passkey, ceremony);
    if (await people.passkeyUsed(passkey.id, used.counter, used.backedUp, ceremony.nowSeconds)) return person;
    throw this.#refused("ended_meanwhile", passkey, ceremony);
  }

  #refused(reason: PasskeyFault, passkey: Passkey, origin: Origin): GatewayError {
    this.#options.failures.recordPasskey(reason, passkey, origin);
    return refused(reason);
  }

  async #requireRoom(personId: string): Promise<Passkey[]> {
    const known = await this.#options.people.listPasskeys(personId);
    if (known.length < maxPasskeys) return known;
    throw forbidden(
      `You have ${maxPasskeys} passkeys, the most there may be. Remove one that you no longer use first.`,
    );
  }
}

async function verifyAddition(
  response: RegistrationResponseJSON,
  expectedChallenge: string,
  expectedOrigin: string,
  expectedRPID: string,
) {
  const { verifyRegistrationResponse } = await import("@simplewebauthn/server");
  const expected = { expectedChallenge, expectedOrigin, expectedRPID };
  const checks = { requireUserVerification: true, supportedAlgorithmIDs: algorithms };
  try {
    requireOwnPage(response.response.clientDataJSON);
    await requireNoCertificates(response.response.attestationObject);
    const { verified, registrationInfo } = await verifyRegistrationResponse({ response, ...expected, ...checks });
    if (verified) return registrationInfo;
  } catch {
    // The library's error messages quote what the browser sent, so they are not reported.
  }
  throw invalidRequest("The passkey could not be checked. Try to add it once more.", {
    detail: "passkey_not_verified",
  });
}

/**
 * Throws if the passkey was made or used within a page of another origin (WebAuthn Level 3, 7.1 step 11 and 7.2 step
 * 14). Our pages cannot be framed, so a page in a frame only pretends to be ours.
 */
function requireOwnPage(clientDataJSON: string): void {
  const data = JSON.parse(Buffer.from(clientDataJSON, "base64url").toString()) as Readonly<Record<string, unknown>>;
  const { crossOrigin = false, topOrigin } = data;
  if (crossOrigin !== false || topOrigin !== undefined) throw new Error("a frame of another origin");
}

/**
 * Refuses certificates. We request no attestation, but the library would still check one, and fetch revocation lists
 * from any address in its certificates.
 */
async function requireNoCertificates(attestationObject: string): Promise<void> {
  const { decodeAttestationObject } = await import("@simplewebauthn/server/helpers");
  const attestation = decodeAttestationObject(new Uint8Array(Buffer.from(attestationObject, "base64url")));
  const format = attestation.get("fmt");
  const isOwn = format === "packed" && attestation.get("attStmt").get("x5c") === undefined;
  if (format !== "none" && !isOwn) throw new Error("an attestation that was not asked for");
}

async function verifyUse(
  response: AuthenticationResponseJSON,
  { id, publicKey }: Passkey,
  expectedChallenge: string,
  expectedOrigin: string,
  expectedRPID: string,
): Promise<{ counter: number; backedUp: boolean } | undefined> {
  const { verifyAuthenticationResponse } = await import("@simplewebauthn/server");
  try {
    requireOwnPage(response.response.clientDataJSON);
    const { verified, authenticationInfo } = await verifyAuthenticationResponse({
      response,
      ...{ expectedChallenge, expectedOrigin, expectedRPID },
      // The library does not check the counter. The caller compares the counter after the signature is verified.
      credential: { id, publicKey: new Uint8Array(Buffer.from(publicKey, "base64url")), counter: 0 },
      requireUserVerification: true,
    });
    if (!verified) return undefined;
    return { counter: authenticationInfo.newCounter, backedUp: authenticationInfo.credentialBackedUp };
  } catch {
    return undefined;
  }
}

function requirePartyId(pageOrigin: string): string {
  const id = relyingPartyId(pageOrigin);
  if (id !== undefined) return id;
  throw forbidden("Browsers have passkeys only at a name with https, or at localhost. Open this server's pages there.");
}

function requireName(text: string): string {
  const name = text.trim();
  if (name !== "" && name.length <= maxPasskeyNameLength && !/\p{Cc}/u.test(name)) return name;
  throw invalidRequest(
    `name: must be 1 to ${maxPasskeyNameLength} characters in one line. Give it a name such as Laptop.`,
  );
}

function tooLate(): GatewayError {
  return invalidRequest("This took too long, or was sent twice. Try again.", {
    detail: "passkey_challenge",
  });
}

function missing(): GatewayError {
  return new GatewayError("not_found", "You have no such passkey. Load the page again to see those that you have.");
}

function refused(detail: string): GatewayError {
  return forbidden("This passkey does not sign you in here. Try another one, or sign in another way.", {
    detail: `passkey: ${detail}`,
  });
}
