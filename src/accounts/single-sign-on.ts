// Signs in at the operator's identity provider: starts the sign-in, verifies its result, and finds the person.

import { createHash, randomBytes } from "node:crypto";
import type { Clock } from "../base/clock.ts";
import { forbidden, type GatewayError, invalidRequest } from "../base/errors.ts";
import { longLived } from "../base/long-lived.ts";
import type { Identity, Membership, OneTimeLink, PeopleChange, Person, PersonStore } from "../domain/people/person.ts";
import type { Role } from "../domain/people/role.ts";
import { sameSecret } from "../policy/credentials/opaque-token.ts";
import { auditEvent, type Origin } from "../policy/records/audit.ts";
import { checkEmail } from "./email.ts";
import { firstProof, firstProofDetail } from "./email-proof.ts";
import {
  IdentityProvider,
  type IdentityProviderSettings,
  type ProvenIdentity,
  type SignInSecrets,
} from "./identity-provider.ts";
import { Pending, type PendingOptions } from "./pending.ts";
import { checkPersonName } from "./person-name.ts";

export interface SingleSignOnSettings extends IdentityProviderSettings {
  /** Domains in lower case. People with an address in one of them may join. */
  allowedDomains: readonly string[];
  /** The role that people get in the account when they join. */
  role: Role;
}

export interface SingleSignOnOptions {
  settings: SingleSignOnSettings;
  people: Pick<PersonStore, "findByIdentity" | "findByEmail" | "findInvitations" | "membershipsOf" | "apply">;
  /** Returns the account that people of the allowed domains join. */
  joinAccountId(): Promise<string>;
  clock: Clock;
  /** The store of sign-ins that wait for the return from the provider. */
  pending: PendingOptions;
  /** The time limit of each request to the provider. */
  timeoutMs?: number;
}

interface Begun extends SignInSecrets {
  /** The digest of the browser's secret, in base64url. */
  browserDigest: string;
  /** A path on this server to continue with. */
  next: string;
}

export interface SsoSignIn {
  person: Person;
  /** The account to show. */
  accountId: string | null;
  next: string;
  /** True if this sign-in ended other credentials of the person. */
  isFirstProof: boolean;
}

interface Found {
  person: Person;
  accountId?: string;
  isFirstProof?: boolean;
}

export const ssoLifeSeconds = longLived.beginning.maxMs / 1_000;
const maxPending = longLived.beginning.bounds.total.most;
const browserPattern = /^[\w-]{43}$/;

export class SingleSignOn {
  readonly name: string;
  readonly #options: SingleSignOnOptions;
  readonly #provider: IdentityProvider;
  /** Sign-ins that wait for the provider's callback, by state. */
  readonly #begun: Pending<Begun>;

  constructor(options: SingleSignOnOptions) {
    const { settings, clock, timeoutMs } = options;
    this.name = settings.name;
    this.#options = options;
    this.#provider = new IdentityProvider({ settings, clock, ...(timeoutMs === undefined ? {} : { timeoutMs }) });
    this.#begun = new Pending(options.pending, {
      name: "single_sign_on",
      lifeSeconds: ssoLifeSeconds,
      most: maxPending,
    });
  }

  /**
   * Begins a sign-in. `browser` is the secret from an earlier start in this browser, if any; reusing it lets two
   * windows sign in at once. Returns the secret, to be stored in a cookie, and the provider's URL. Throws
   * `service_unavailable`.
   */
  async begin(given: {
    browser: string | undefined;
    redirectUri: string;
    next: string;
    /** The network of the browser's address. */
    network: string;
  }): Promise<{ browser: string; url: string }> {
    const { redirectUri, next, network } = given;
    const browser = given.browser !== undefined && browserPattern.test(given.browser) ? given.browser : random();
    const secrets: SignInSecrets = {
      state: this.#begun.newKey(network),
      nonce: random(),
      verifier: random(),
      redirectUri,
    };
    const url = await this.#provider.authorizationUrl(secrets);
    await this.#begun.put(secrets.state, { ...secrets, next, browserDigest: digestOf(browser) });
    return { browser, url };
  }

  /**
   * Returns the person, from the query of the provider's callback. Throws `invalid_request` if this browser did not
   * begin the sign-in, or too long ago, and `permission_denied` if the person is not admitted. For the provider's
   * faults, throws `upstream_error` or `service_unavailable`.
   */
  async complete(query: URLSearchParams, browser: string | undefined, origin: Origin): Promise<SsoSignIn> {
    const states = query.getAll("state");
    const begun = states.length === 1 ? await this.#begun.take(states[0] ?? "") : undefined;
    // The browser's secret is required: with the state alone, an attacker's link would sign another person in as the
    // attacker (RFC 9700, 4.7).
    if (!begun || browser === undefined || !sameSecret(digestOf(browser), begun.browserDigest)) throw notBegun();
    const identity = await this.#provider.redeem(query, begun);
    const found = await this.#personOf(identity, origin);
    const [first] = found.accountId === undefined ? await this.#options.people.membershipsOf(found.person.id) : [];
    const { person, isFirstProof = false } = found;
    return { person, accountId: found.accountId ?? first?.accountId ?? null, next: begun.next, isFirstProof };
  }

  async #personOf(proven: ProvenIdentity, origin: Origin): Promise<Found> {
    const known = await this.#options.people.findByIdentity(proven.issuer, proven.subject);
    if (known) return { person: known };
    if (proven.verifiedEmail === undefined) throw this.#unproven();
    const email = checkEmail(proven.verifiedEmail);
    const found = (await this.#linked(email, proven, origin)) ?? (await this.#joined(email, proven, origin));
    if (found) return found;
    throw this.#uninvited();
  }

  /**
   * Links the person who has this address to the provider's identity. Throws if the person is linked to another
   * identity already: an address may pass to another person, but a provider's id does not (OpenID Connect Core, 5.7).
   * If the address was never proven, another person may have created its credentials after seeing the invitation link,
   * so these credentials end.
   */
  async #linked(email: string, proven: ProvenIdentity, origin: Origin): Promise<Found | undefined> {
    const { people } = this.#options;
    const found = await people.findByEmail(email);
    if (!found) return undefined;
    const { passwordHash: _, ...person } = found;
    const isFirstProof = !person.isEmailProven;
    const event = auditEvent("identity.linked", { type: "person", id: person.id }, origin, {
      accountId: null,
      targetId: person.id,
      detail: { issuer: proven.issuer, email, ...(isFirstProof ? firstProofDetail : {}) },
    });
    const addIdentity = identityFor(person.id, proven, origin);
    const outcome = await people.apply({ addIdentity, ...(isFirstProof ? firstProof(person.id) : {}) }, event);
    if (outcome === "done") return { person: { ...person, isEmailProven: true }, isFirstProof };
    // A concurrent sign-in in another window may have linked the identity.
    const known = await people.findByIdentity(proven.issuer, proven.subject);
    if (known?.id === person.id) return { person: known, isFirstProof: false };
    throw this.#somebodyElse();
  }

  /** Creates a person and membership; undefined if no rule admits a new person. */
  async #joined(email: string, proven: ProvenIdentity, origin: Origin): Promise<Found | undefined> {
    const { people } = this.#options;
    const [invitation] = await people.findInvitations(email, origin.nowSeconds);
    const assigned = await this.#membershipFor(email, invitation);
    if (!assigned) return undefined;
    const person: Person = {
      id: `usr_${Bun.randomUUIDv7()}`,
      email,
      name: nameFor(proven, email),
      isEmailProven: true,
      suspendedAt: null,
      isOperator: false,
      createdAt: origin.nowSeconds,
    };
    const membership: Membership = {
      id: `mbr_${Bun.randomUUIDv7()}`,
      ...assigned,
      personId: person.id,
      seesAllUsage: false,
      createdAt: origin.nowSeconds,
    };
    const change: PeopleChange = {
      ...(invitation ? { useLink: { id: invitation.id, nowSeconds: origin.nowSeconds } } : {}),
      addPerson: { ...person, passwordHash: null },
      addIdentity: identityFor(person.id, proven, origin),
      addMembership: membership,
    };
    const by = invitation ? { invited_by: invitation.createdBy } : { by: "allowed_domain" };
    // The event names an anonymous actor, because the person is only created here.
    const event = auditEvent("member.added", { type: "anonymous" }, origin, {
      accountId: assigned.accountId,
      targetId: membership.id,
      detail: { person_id: person.id, email, role: assigned.role, issuer: proven.issuer, ...by },
    });
    const outcome = await people.apply(change, event);
    if (outcome === "done") return { person, accountId: assigned.accountId };
    // In another window, the invitation was used or the person was created meanwhile.
    throw invalidRequest("Something changed while you signed in. Sign in once more.", {
      detail: `sso: ${outcome}`,
    });
  }

  async #membershipFor(
    email: string,
    invitation: OneTimeLink | undefined,
  ): Promise<{ accountId: string; role: Role } | undefined> {
    const { settings, joinAccountId } = this.#options;
    if (invitation?.accountId && invitation.role) return { accountId: invitation.accountId, role: invitation.role };
    const domain = email.slice(email.lastIndexOf("@") + 1);
    if (!settings.allowedDomains.includes(domain)) return undefined;
    return { accountId: await joinAccountId(), role: settings.role };
  }

  #unproven(): GatewayError {
    return forbidden(
      `${this.name} does not say which e-mail address is yours for certain, so it cannot be told who you are here. Sign in another way, or ask whoever runs this server.`,
      { detail: "sso: email_not_verified" },
    );
  }

  #somebodyElse(): GatewayError {
    return forbidden(
      `Your address belongs here to somebody with another sign-in at ${this.name}. If both are yours, sign in with the other one; else ask whoever runs this server.`,
      { detail: "sso: identity_taken" },
    );
  }

  #uninvited(): GatewayError {
    return forbidden(
      "Nobody is known here by your address. Ask an owner or admin of an account for an invitation, then sign in again.",
      { detail: "sso: not_invited" },
    );
  }
}

function identityFor(personId: string, { issuer, subject }: ProvenIdentity, { nowSeconds }: Origin): Identity {
  return { issuer, subject, personId, createdAt: nowSeconds };
}

/** Returns the provider's name for the person, or else the address. It can be changed in the settings. */
function nameFor({ name }: ProvenIdentity, email: string): string {
  try {
    return checkPersonName(name ?? "");
  } catch {
    return email.slice(0, email.lastIndexOf("@"));
  }
}

function notBegun(): GatewayError {
  return invalidRequest(
    "This sign-in was not begun in this browser, took too long, or was finished already. Sign in once more.",
    { detail: "sso: state" },
  );
}

function random(): string {
  return randomBytes(32).toString("base64url");
}

function digestOf(text: string): string {
  return createHash("sha256").update(text).digest("base64url");
}
