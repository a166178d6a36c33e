// Redeems one-time links. All changes, including that the link is used, are made in one transaction.

import type { Clock } from "../base/clock.ts";
import { forbidden, type GatewayError, invalidRequest } from "../base/errors.ts";
import type { AuditAction, AuditEvent } from "../domain/audit.ts";
import type {
  LinkPurpose,
  Membership,
  OneTimeLink,
  PeopleChange,
  PeopleConflict,
  Person,
  PersonStore,
} from "../domain/people/person.ts";
import { auditEvent } from "../policy/records/audit.ts";
import type { BrowserOrigin, BrowserSessions } from "./browser-sessions.ts";
import { checkEmail } from "./email.ts";
import { firstProof, firstProofDetail } from "./email-proof.ts";
import { checkPassword, hashPassword } from "./passwords.ts";
import { checkPersonName } from "./person-name.ts";
import type { StartedSession } from "./sign-in.ts";

export interface LinkAcceptanceOptions {
  people: PersonStore;
  sessions: Pick<BrowserSessions, "start">;
  clock: Clock;
  firstAccountId(): Promise<string>;
}

const membersAtOnce = 500;

export class LinkAcceptance {
  readonly #options: LinkAcceptanceOptions;
  readonly #find: (token: string, purpose: LinkPurpose) => Promise<OneTimeLink | undefined>;

  constructor(
    options: LinkAcceptanceOptions,
    find: (token: string, purpose: LinkPurpose) => Promise<OneTimeLink | undefined>,
  ) {
    this.#options = options;
    this.#find = find;
  }

  /**
   * Makes the person an operator, and the owner of the first account, or its admin if it has an owner. If a person with
   * this address exists, that person gets the new password. This gives no new access, because the link's creator
   * already has the data directory.
   */
  async setup(
    token: string,
    given: { email: string; name: string; password: string },
    origin: BrowserOrigin,
  ): Promise<StartedSession> {
    const { people } = this.#options;
    const link = await this.#require(token, "setup");
    const email = checkEmail(given.email);
    const name = checkPersonName(given.name);
    const passwordHash = await hashPassword(checkPassword(given.password, email));
    const known = await people.findByEmail(email);
    const person: Person = known
      ? {
          id: known.id,
          email,
          name,
          isEmailProven: false,
          isOperator: true,
          suspendedAt: null,
          createdAt: known.createdAt,
        }
      : this.#newPerson({ email, name, isEmailProven: false, isOperator: true });
    const { id: personId } = person;
    const membership = await this.#firstMembership(personId);
    const change: PeopleChange = {
      useLink: { id: link.id, nowSeconds: this.#now() },
      ...(known
        ? {
            setPassword: { personId, passwordHash },
            // The address stays unproven: the mailbox may belong to another person than the one at the console.
            setEmailProven: { personId, isEmailProven: false },
            setName: { personId, name },
            setOperator: { personId, isOperator: true },
            setSuspended: { personId, suspendedAt: null },
            endSessions: { personId },
          }
        : { addPerson: { ...person, passwordHash } }),
      ...(membership ? { addMembership: membership } : {}),
    };
    const detail = { by: "setup_link", email, operator: true, ...(membership ? { role: membership.role } : {}) };
    const about = { accountId: membership?.accountId ?? null, targetId: personId, detail };
    await this.#apply(change, known ? "person.updated" : "person.created", origin, about);
    return this.#start(person, membership?.accountId, origin);
  }

  /**
   * Accepts an invitation. A new person is created and signed in. A signed-in person must have the invited address, and
   * keeps the current session. Throws `invalid_request` and `permission_denied`.
   */
  async invitation(
    token: string,
    guest: { name: string; password: string } | { person: Person },
    origin: BrowserOrigin,
  ): Promise<{ person: Person; membership: Membership; cookie: string | undefined }> {
    const link = await this.#require(token, "invitation");
    const { email, accountId, role } = link;
    if (email === null || accountId === null || role === null) throw ended();
    const joining = await this.#guestOf(guest, email, link.delivery === "mail");
    const { person, addPerson } = joining;
    const membership = this.#newMembership(accountId, person.id, role);
    const useLink = { id: link.id, nowSeconds: this.#now() };
    const change: PeopleChange = { useLink, ...(addPerson ? { addPerson } : {}), addMembership: membership };
    const detail = { person_id: person.id, email, role, invited_by: link.createdBy };
    await this.#apply(change, "member.added", origin, { accountId, targetId: membership.id, detail });
    const started = addPerson ? await this.#start(person, accountId, origin) : undefined;
    return { person, membership, cookie: started?.cookie };
  }

  /**
   * Sets the password, ends all sessions and command line logins of the person, and starts a session. A link sent only
   * by mail proves the address. After a link shown on a screen, the address counts as unproven, since anybody who saw
   * the link may have used it.
   */
  async passwordReset(token: string, password: string, origin: BrowserOrigin): Promise<StartedSession> {
    const { people } = this.#options;
    const link = await this.#require(token, "password_reset");
    const person = link.personId === null ? undefined : await people.findPerson(link.personId);
    if (!person) throw ended();
    const { id: personId } = person;
    const passwordHash = await hashPassword(checkPassword(password, person.email));
    const isEmailProven = link.delivery === "mail";
    const isFirstProof = isEmailProven && !person.isEmailProven;
    const change: PeopleChange = {
      useLink: { id: link.id, nowSeconds: this.#now() },
      ...(isFirstProof ? firstProof(personId) : {}),
      setEmailProven: { personId, isEmailProven },
      setPassword: { personId, passwordHash },
      endSessions: { personId },
    };
    const detail = { by: "link", delivery: link.delivery, ...(isFirstProof ? firstProofDetail : {}) };
    await this.#apply(change, "password.changed", origin, { accountId: null, targetId: personId, detail });
    return this.#start({ ...person, isEmailProven }, undefined, origin);
  }

  async #guestOf(
    guest: { name: string; password: string } | { person: Person },
    email: string,
    isEmailProven: boolean,
  ): Promise<{ person: Person; addPerson?: Person & { passwordHash: string } }> {
    if ("person" in guest) {
      if (guest.person.email === email) return { person: guest.person };
      throw forbidden("This invitation is for another address. Sign out, and open the link again.");
    }
    const person = this.#newPerson({ email, name: checkPersonName(guest.name), isEmailProven, isOperator: false });
    return { person, addPerson: { ...person, passwordHash: await hashPassword(checkPassword(guest.password, email)) } };
  }

  /** Returns the person's new membership in the first account; undefined if the person is a member already. */
  async #firstMembership(personId: string): Promise<Membership | undefined> {
    const { people, firstAccountId } = this.#options;
    const accountId = await firstAccountId();
    let role: Membership["role"] = "owner";
    let after: string | undefined;
    for (;;) {
      const members = await people.listMembers(accountId, { after, limit: membersAtOnce });
      if (members.some((member) => member.personId === personId)) return undefined;
      if (members.some((member) => member.role === "owner")) role = "admin";
      if (members.length < membersAtOnce) return this.#newMembership(accountId, personId, role);
      after = members.at(-1)?.id;
    }
  }

  #newPerson(about: Omit<Person, "id" | "suspendedAt" | "createdAt">): Person {
    return { id: `usr_${Bun.randomUUIDv7()}`, ...about, suspendedAt: null, createdAt: this.#now() };
  }

  #newMembership(accountId: string, personId: string, role: Membership["role"]): Membership {
    const createdAt = this.#now();
    return { id: `mbr_${Bun.randomUUIDv7()}`, accountId, personId, role, seesAllUsage: false, createdAt };
  }

  async #require(token: string, purpose: LinkPurpose): Promise<OneTimeLink> {
    const link = await this.#find(token, purpose);
    if (link) return link;
    throw ended();
  }

  async #apply(
    change: PeopleChange,
    action: AuditAction,
    origin: BrowserOrigin,
    about: Pick<AuditEvent, "accountId" | "targetId" | "detail">,
  ): Promise<void> {
    // The event names an anonymous actor, because the person or membership is only created here.
    const event = auditEvent(action, { type: "anonymous" }, { nowSeconds: this.#now(), ...origin }, about);
    const outcome = await this.#options.people.apply(change, event);
    if (outcome !== "done") throw conflict(outcome);
  }

  async #start(person: Person, accountId: string | undefined, origin: BrowserOrigin): Promise<StartedSession> {
    const { people, sessions } = this.#options;
    const [first] = accountId === undefined ? await people.membershipsOf(person.id) : [];
    const started = await sessions.start(person, accountId ?? first?.accountId ?? null, "link", origin);
    return { person, ...started };
  }

  #now(): number {
    return this.#options.clock.nowSeconds();
  }
}

/** Returns one error for all faults of a link, so that it does not reveal whether the link ever existed. */
function ended(): GatewayError {
  return invalidRequest("This link was used already or has expired. Ask for a new one.", {
    detail: "link_ended",
  });
}

function conflict(outcome: PeopleConflict): GatewayError {
  if (outcome === "link_used") return ended();
  if (outcome === "member_already") {
    return invalidRequest("You are a member of this account already.");
  }
  return invalidRequest(
    "email: somebody signs in here with this address already. If it is you, sign in first and open the link again.",
  );
}
