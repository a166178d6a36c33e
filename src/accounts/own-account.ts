// People's changes to themselves: their name and their password.
import type { Clock } from "../base/clock.ts";
import { type GatewayError, invalidRequest } from "../base/errors.ts";
import type { LimitStore } from "../domain/limits/limits.ts";
import type { Person, PersonStore } from "../domain/people/person.ts";
import type { Session } from "../domain/people/session.ts";
import { auditEvent, changedMembers } from "../policy/records/audit.ts";
import { Attempts } from "./attempts.ts";
import type { BrowserOrigin } from "./browser-sessions.ts";
import { checkPassword, hashPassword, verifyPassword } from "./passwords.ts";
import { checkPersonName } from "./person-name.ts";

export interface OwnAccountOptions {
  people: Pick<PersonStore, "findByEmail" | "apply">;
  limits: Pick<LimitStore, "admit">;
  clock: Clock;
}

/** The person who changes their own data. `session` is absent with `headrace login`. */
interface Self {
  person: Person;
  session?: Pick<Session, "id">;
}

/** Limits guesses of the current password, because another person may find an unlocked browser. */
const guesses = { limit: 10, windowSeconds: 600 };

export class OwnAccount {
  readonly #options: OwnAccountOptions;
  readonly #attempts: Attempts;

  constructor(options: OwnAccountOptions) {
    this.#options = options;
    this.#attempts = new Attempts(options.limits);
  }

  async hasPassword(person: Person): Promise<boolean> {
    const found = await this.#options.people.findByEmail(person.email);
    return found !== undefined && found.passwordHash !== null;
  }

  /** Renames the person and returns the name as stored. Throws `invalid_request`, naming `name`. */
  async renameSelf(by: Self, text: string, origin: BrowserOrigin): Promise<string> {
    const { person } = by;
    const name = checkPersonName(text);
    if (name === person.name) return name;
    const detail = changedMembers({ name: person.name }, { name });
    await this.#options.people.apply(
      { setName: { personId: person.id, name } },
      this.#event("person.updated", by, origin, detail),
    );
    return name;
  }

  /**
   * Changes the password, and ends the person's other sessions and command line logins. `current` is compared only if
   * there is a password. Throws `invalid_request`, naming `current_password` or `password`, and `rate_limit_exceeded`.
   */
  async changeOwnPassword(
    by: Required<Self>,
    given: { current: string; next: string },
    origin: BrowserOrigin,
  ): Promise<void> {
    const { people } = this.#options;
    const { person, session } = by;
    const password = checkPassword(given.next, person.email);
    const known = await people.findByEmail(person.email);
    const before = known?.passwordHash ?? null;
    if (before !== null) await this.#requireCurrent(person, given.current, before);
    const passwordHash = await hashPassword(password);
    const outcome = await people.apply(
      {
        setPassword: { personId: person.id, passwordHash, insteadOf: before },
        endSessions: { personId: person.id, exceptId: session.id },
      },
      this.#event("password.changed", by, origin, { by: "person", first: before === null }),
    );
    // The password was set with a reset link meanwhile, and the link takes precedence.
    if (outcome !== "done") throw notCurrent();
  }

  async #requireCurrent(person: Person, current: string, hash: string): Promise<void> {
    const rule = { id: `own-password:${person.id}`, ...guesses };
    await this.#attempts.run([rule], "Too many wrong passwords.", async () => {
      if (await verifyPassword(current, hash)) return;
      throw notCurrent();
    });
  }

  #event(
    action: "person.updated" | "password.changed",
    { person, session }: Self,
    origin: BrowserOrigin,
    detail: Record<string, unknown>,
  ) {
    const by = session ? { person, session } : ({ type: "person", id: person.id } as const);
    const at = { nowSeconds: this.#options.clock.nowSeconds(), ...origin };
    return auditEvent(action, by, at, { accountId: null, targetId: person.id, detail });
  }
}

function notCurrent(): GatewayError {
  return invalidRequest("current_password: is not your password.");
}
