// Sign-in with an e-mail address and a password: throttled, without revealing who is known here.
import { createHash } from "node:crypto";
import type { Clock } from "../base/clock.ts";
import { type GatewayError, invalidRequest } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { LimitStore } from "../domain/limits/limits.ts";
import type { Person, PersonStore } from "../domain/people/person.ts";
import type { Session } from "../domain/people/session.ts";
import { clientNetwork } from "../policy/client-network.ts";
import { auditEvent } from "../policy/records/audit.ts";
import { type AttemptLimit, Attempts } from "./attempts.ts";
import type { BrowserOrigin, BrowserSessions } from "./browser-sessions.ts";
import { checkEmail } from "./email.ts";
import type { FailedSignIns } from "./failed-sign-ins.ts";
import { hashPassword, isOutdatedHash, verifyPassword } from "./passwords.ts";
import { Pending, type PendingOptions } from "./pending.ts";

export interface SignInOptions {
  people: Pick<PersonStore, "findByEmail" | "membershipsOf" | "apply">;
  sessions: Pick<BrowserSessions, "start">;
  limits: Pick<LimitStore, "admit">;
  failures: Pick<FailedSignIns, "record">;
  clock: Clock;
  log: Log;
  /** The store of recent sign-ins: which address signed in from which network. */
  pending: PendingOptions;
  /**
   * The failures allowed in a row, per network address and per email address. They are restored within `windowSeconds`.
   */
  throttle?: { perAddress: number; perEmail: number; windowSeconds: number };
}

/** A session that was started; `cookie` is its `Set-Cookie`. */
export interface StartedSession {
  person: Person;
  session: Session;
  cookie: string;
}

const defaultThrottle = { perAddress: 30, perEmail: 10, windowSeconds: 600 };
/** The recent sign-ins of people: for each sign-in, the digest of an email address and a network. */
const familiarLogins = { name: "familiar_place", lifeSeconds: 90 * 86_400, most: 20_000 };

export class SignIn {
  readonly #options: SignInOptions;
  readonly #attempts: Attempts;
  readonly #familiar: Pending<true>;

  constructor(options: SignInOptions) {
    this.#options = options;
    this.#attempts = new Attempts(options.limits);
    this.#familiar = new Pending(options.pending, familiarLogins);
  }

  /**
   * Signs in. Throws `invalid_request` with the same message for every fault, `rate_limit_exceeded`, or
   * `service_unavailable`.
   */
  async password(email: string, password: string, origin: BrowserOrigin): Promise<StartedSession> {
    const { sessions, people, failures } = this.#options;
    const address = checkEmail(email);
    const loginDigest = digestOf(`${address} ${clientNetwork(origin.clientAddress)}`);
    const start = async () => {
      const { passwordHash, ...person } = await this.#verified(address, password, origin);
      const [first] = await people.membershipsOf(person.id);
      const started = await sessions.start(person, first?.accountId ?? null, "password", origin, { passwordHash });
      await this.#remember(loginDigest);
      if (isOutdatedHash(passwordHash)) await this.#renew(person, password, passwordHash, origin);
      return { person, ...started };
    };
    const onRefused = () => failures.record("throttled", null, origin);
    const rules = await this.#limitsOf(address, loginDigest, origin);
    return this.#attempts.run(rules, "Too many attempts to sign in failed.", start, onRefused);
  }

  /**
   * Returns the limits on failed attempts. On a network where the person signed in before, failures are counted
   * separately. So a stranger who uses up the address's attempts elsewhere does not lock out the person on that
   * network.
   */
  async #limitsOf(address: string, loginDigest: string, { clientAddress }: BrowserOrigin): Promise<AttemptLimit[]> {
    const { perAddress, perEmail, windowSeconds } = this.#options.throttle ?? defaultThrottle;
    const isFamiliar = await this.#familiar.has(loginDigest);
    return [
      { id: `sign-in:address:${clientNetwork(clientAddress)}`, limit: perAddress, windowSeconds },
      {
        id: isFamiliar ? `sign-in:place:${loginDigest}` : `sign-in:email:${digestOf(address)}`,
        limit: perEmail,
        windowSeconds,
      },
    ];
  }

  /** Stores the network of this sign-in. The sign-in succeeds even if storing fails. */
  async #remember(loginDigest: string): Promise<void> {
    await this.#familiar.put(loginDigest, true).catch((error) => {
      this.#options.log.warn("familiar_place_not_kept", { detail: String(error) });
    });
  }

  async #verified(address: string, password: string, origin: BrowserOrigin) {
    const { people, failures } = this.#options;
    const found = await people.findByEmail(address);
    if (!(await verifyPassword(password, found?.passwordHash))) {
      const reason = found ? (found.passwordHash === null ? "no_password" : "wrong_password") : "unknown_email";
      failures.record(reason, found?.id ?? null, origin);
      throw wrong();
    }
    // The person is read again, because the comparison took a while: a password that was changed meanwhile must not
    // work.
    const now = await people.findByEmail(address);
    const passwordHash = now?.passwordHash ?? null;
    if (!now || passwordHash === null || now.id !== found?.id || passwordHash !== found.passwordHash) throw wrong();
    return { ...now, passwordHash };
  }

  /**
   * Hashes the password again with the current parameters, which is possible only while the password is known. The
   * sign-in succeeds even if this fails.
   */
  async #renew(person: Person, password: string, insteadOf: string, origin: BrowserOrigin): Promise<void> {
    const { people, clock, log } = this.#options;
    try {
      const passwordHash = await hashPassword(password);
      const event = auditEvent(
        "person.updated",
        { type: "person", id: person.id },
        { nowSeconds: clock.nowSeconds(), ...origin },
        { accountId: null, targetId: person.id, detail: { password_hash: "renewed" } },
      );
      await people.apply({ setPassword: { personId: person.id, passwordHash, insteadOf } }, event);
    } catch (error) {
      log.warn("password_hash_not_renewed", { detail: String(error) });
    }
  }
}

function wrong(): GatewayError {
  return invalidRequest("The e-mail address or the password is wrong.");
}

/** Returns a digest, which suffices for counting, so that addresses are not stored. */
function digestOf(text: string): string {
  return createHash("sha256").update(text).digest("base64url");
}
