// Links that work once: to set up the installation, to join an account, to set another password.

import type { Clock } from "../base/clock.ts";
import { GatewayError, invalidRequest } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { Account } from "../domain/account.ts";
import type { AuditAction, AuditActor, AuditEvent } from "../domain/audit.ts";
import { currentKey, type Keys, keyRing } from "../domain/key-ring.ts";
import type { LimitStore } from "../domain/limits/limits.ts";
import type { MailMessage, MailSender } from "../domain/people/mail.ts";
import type { LinkDelivery, LinkPurpose, OneTimeLink, PersonStore } from "../domain/people/person.ts";
import type { Role } from "../domain/people/role.ts";
import { actorOf, type Principal } from "../domain/principal.ts";
import { clientNetwork } from "../policy/client-network.ts";
import { newOpaqueToken } from "../policy/credentials/opaque-token.ts";
import { requireOperator } from "../policy/manage/operator.ts";
import { auditEvent, type Origin } from "../policy/records/audit.ts";
import { Turns } from "../policy/turns.ts";
import { Attempts } from "./attempts.ts";
import type { BrowserOrigin, BrowserSessions } from "./browser-sessions.ts";
import { checkEmail } from "./email.ts";
import { LinkAcceptance } from "./link-acceptance.ts";
import { invitationMail, resetMail } from "./link-mails.ts";
import { linkDigest, linkUrl, newLinkId, setupToken } from "./link-token.ts";
import { requireMayInvite, requireMayWithdraw } from "./members.ts";

export interface OneTimeLinksOptions {
  people: PersonStore;
  sessions: Pick<BrowserSessions, "start">;
  clock: Clock;
  /** Returns the public origin without a trailing slash. */
  publicOrigin(): string;
  firstAccountId(): Promise<string>;
  /** Sends mail; undefined if no mail server is configured. Invitations are then shown to the person who makes them. */
  mail: MailSender | undefined;
  limits: Pick<LimitStore, "admit">;
  log: Log;
}

export interface MadeLink {
  id: string;
  /** The address with the token: shown once, never stored. */
  url: string;
  expiresAt: number;
}

/** A new invitation, without the URL if it was mailed: the inviter must not be able to join as another person. */
export type MadeInvitation = Omit<MadeLink, "url"> & { url: string | undefined };

/** The origin of the request for a link. The time is omitted, because the clock supplies it. */
type Asking = Pick<Origin, "clientAddress" | "requestId">;

type About = Partial<Pick<OneTimeLink, "email" | "personId" | "accountId" | "role" | "createdBy">>;

interface Asked {
  by: Principal | AuditActor;
  origin: Asking;
  detail?: Record<string, unknown>;
}

const madeActions: Record<LinkPurpose, AuditAction> = {
  setup: "setup_link.created",
  invitation: "invitation.created",
  password_reset: "password_reset.created",
};
const lifeSeconds: Record<LinkPurpose, number> = { setup: 86_400, invitation: 7 * 86_400, password_reset: 3_600 };
const hourSeconds = 3_600;
/** An open set-up link is shown again only if it stays valid for at least this long. */
const usefulSeconds = hourSeconds;
const resetsPerAddress = { limit: 10, windowSeconds: hourSeconds };
/** Limits the reset mails that strangers can request for one person. */
const resetsPerPerson = { limit: 3, windowSeconds: hourSeconds };
const invitationsPerAccount = { limit: 100, windowSeconds: hourSeconds };

export class OneTimeLinks {
  readonly #options: OneTimeLinksOptions;
  readonly #attempts: Attempts;
  /** Redeems the links. Each method throws `invalid_request` for a link that no longer works. */
  readonly acceptance: LinkAcceptance;
  readonly #resets = new Turns(2, 100);
  #resetting: Promise<unknown> = Promise.resolve();
  #isClosing = false;

  constructor(options: OneTimeLinksOptions) {
    this.#options = options;
    this.#attempts = new Attempts(options.limits);
    this.acceptance = new LinkAcceptance(options, (token, purpose) => this.find(token, purpose));
  }

  /** Reports whether links are sent by mail. */
  get isMailing(): boolean {
    return this.#options.mail !== undefined;
  }

  /** Creates a set-up link, whose visitor becomes an operator. Earlier set-up links are replaced. */
  async createSetupLink(by: { type: "system" | "operator" } = { type: "operator" }): Promise<MadeLink> {
    const nobody = { clientAddress: null, requestId: null };
    return this.#make("setup", "shown", {}, { by, origin: nobody });
  }

  /**
   * Returns the same set-up link at every starting replica: a later replica must not end a link that another has shown.
   * The token is derived from the link's id and one of the `keys`, 32 bytes each. Returns undefined if an operator
   * created the open link.
   */
  async sharedSetupLink(keys: Keys): Promise<MadeLink | undefined> {
    const nobody = { clientAddress: null, requestId: null };
    const id = newLinkId();
    const { link, event } = this.#draft(
      "setup",
      "shown",
      {},
      { by: { type: "system" }, origin: nobody },
      {
        id,
        token: setupToken(id, currentKey(keys)),
      },
    );
    const open = await this.#options.people.ensureLink(link, link.createdAt + usefulSeconds, event);
    const token = keyRing(keys)
      .map((key) => setupToken(open.id, key))
      .find((one) => linkDigest(one) === open.digest);
    if (token === undefined) return undefined;
    return { id: open.id, url: linkUrl(this.#options.publicOrigin(), "setup", token), expiresAt: open.expiresAt };
  }

  /**
   * Invites a person. Throws `permission_denied` if the principal may not invite with that role, `invalid_request` if
   * the address is invalid or belongs to a member, and `rate_limit_exceeded`.
   */
  async invite(request: {
    by: Principal;
    account: Pick<Account, "id" | "name">;
    email: string;
    role: Role;
    origin: Asking;
  }): Promise<MadeInvitation> {
    const { by, account, role, origin } = request;
    requireMayInvite(by, account.id, role);
    const email = checkEmail(request.email);
    await this.#requireNoMember(email, account.id);
    await this.#requireMayReplace(by, email, account.id);
    const rule = { id: `invitations:${account.id}`, ...invitationsPerAccount };
    await this.#attempts.count([rule], "Too many invitations were made for this account.");
    const about = { email, accountId: account.id, role, createdBy: actorOf(by).id };
    const asked = { by, origin, detail: { email, role } };
    if (this.isMailing) {
      const made = await this.#make("invitation", "mail", about, asked);
      const mail = invitationMail(email, account.name, made.url);
      if (await this.#mail(mail, "invitation_not_mailed")) return { ...made, url: undefined };
    }
    // The failed mail may have arrived after all, so a new link replaces the mailed one. Only the new link is shown.
    return this.#make("invitation", "shown", about, asked);
  }

  /**
   * Requests a reset. Resolves equally fast and with the same result for an unknown address: the work is done
   * afterwards. Throws `invalid_request` for an invalid address, and `rate_limit_exceeded`.
   */
  async requestReset(text: string, origin: BrowserOrigin): Promise<void> {
    const email = checkEmail(text);
    const rule = { id: `reset:address:${clientNetwork(origin.clientAddress)}`, ...resetsPerAddress };
    await this.#attempts.count([rule], "Too many new passwords were asked for from your address.");
    const { log } = this.#options;
    const turn = this.#resets.run(() => this.#sendReset(email, origin));
    if (!turn) return log.warn("password_reset_dropped", { detail: "too many at once" });
    const done = turn.catch((error) => log.error("password_reset_failed", { detail: String(error) }));
    // The result is dropped, because it would keep the results of all earlier resets in memory.
    this.#resetting = Promise.all([this.#resetting, done]).then(() => {});
  }

  /** Resolves once the mails of all requested resets are sent or have failed. */
  async settled(): Promise<void> {
    await this.#resetting;
  }

  /** Drops the waiting resets. If the mail server hangs, a hundred of them would take half an hour. */
  async close(): Promise<void> {
    this.#isClosing = true;
    await this.settled();
  }

  /**
   * Creates a reset link for an operator to pass on. The link is always shown, because not everybody has a mailbox.
   * Throws `not_found`, or `permission_denied` if the principal is no operator.
   */
  async createReset({ by, personId, origin }: { by: Principal; personId: string; origin: Asking }): Promise<MadeLink> {
    requireOperator(by);
    const person = await this.#options.people.findPerson(personId);
    if (!person) throw new GatewayError("not_found", "There is no such person. GET /v1/admin/people lists them.");
    return this.#make("password_reset", "shown", { personId, createdBy: actorOf(by).id }, { by, origin });
  }

  /** Returns the link; undefined if it is unknown, used, expired, or has another purpose. */
  async find(token: string, purpose: LinkPurpose): Promise<OneTimeLink | undefined> {
    const digest = linkDigest(token);
    if (digest === undefined) return undefined;
    const link = await this.#options.people.findLink(digest);
    const isUsable =
      link?.purpose === purpose && link.usedAt === null && link.expiresAt > this.#options.clock.nowSeconds();
    return isUsable ? link : undefined;
  }

  /**
   * Does the slow part of a reset after the answer, so that the answer's delay does not reveal whether the person
   * exists.
   */
  async #sendReset(email: string, origin: BrowserOrigin): Promise<void> {
    const { people, mail, log } = this.#options;
    if (this.#isClosing) return log.warn("password_reset_dropped", { detail: "stopping" });
    const person = await people.findByEmail(email);
    if (!person) return;
    if (!mail) return log.info("password_reset_asked", { person_id: person.id });
    // Further mails would only fill the mailbox, because only the last link works.
    const attempt = await this.#attempts.begin([{ id: `reset:person:${person.id}`, ...resetsPerPerson }]);
    if ("retryAfterSeconds" in attempt) return;
    attempt.failed();
    const asked = { by: { type: "anonymous" }, origin } as const;
    const { url } = await this.#make("password_reset", "mail", { personId: person.id }, asked);
    await this.#mail(resetMail(person.email, url), "password_reset_not_mailed");
  }

  async #requireNoMember(email: string, accountId: string): Promise<void> {
    const { people } = this.#options;
    const person = await people.findByEmail(email);
    const memberships = person ? await people.membershipsOf(person.id) : [];
    if (!memberships.some((membership) => membership.accountId === accountId)) return;
    throw invalidRequest("email: is the address of a member of this account already.");
  }

  /** Throws `permission_denied` if the principal may not withdraw an open invitation that the new one would replace. */
  async #requireMayReplace(by: Principal, email: string, accountId: string): Promise<void> {
    const { people, clock } = this.#options;
    for (const open of await people.findInvitations(email, clock.nowSeconds())) {
      if (open.accountId === accountId) requireMayWithdraw(by, accountId, open.role ?? "owner");
    }
  }

  /** Creates a link. Unused links for the same purpose are replaced. */
  async #make(purpose: LinkPurpose, delivery: LinkDelivery, about: About, asked: Asked): Promise<MadeLink> {
    const made = { id: newLinkId(), token: newOpaqueToken() };
    const { link, event } = this.#draft(purpose, delivery, about, asked, made);
    await this.#options.people.insertLink(link, event);
    return { id: link.id, url: linkUrl(this.#options.publicOrigin(), purpose, made.token), expiresAt: link.expiresAt };
  }

  #draft(
    purpose: LinkPurpose,
    delivery: LinkDelivery,
    about: About,
    asked: Asked,
    made: { id: string; token: string },
  ): { link: OneTimeLink; event: AuditEvent } {
    const createdAt = this.#options.clock.nowSeconds();
    const link: OneTimeLink = {
      id: made.id,
      purpose,
      digest: linkDigest(made.token) ?? "",
      delivery,
      ...{ email: null, personId: null, accountId: null, role: null, createdBy: null, ...about },
      createdAt,
      expiresAt: createdAt + lifeSeconds[purpose],
      usedAt: null,
    };
    const { id, expiresAt } = link;
    const event = auditEvent(
      madeActions[purpose],
      asked.by,
      { ...asked.origin, nowSeconds: createdAt },
      {
        accountId: link.accountId,
        targetId: link.personId ?? id,
        detail: { ...asked.detail, link_id: id, expires_at: expiresAt, delivery },
      },
    );
    return { link, event };
  }

  /** Sends a mail. Returns whether the mail server accepted it; the log has the reason if not. */
  async #mail(message: MailMessage, fault: string): Promise<boolean> {
    const { mail, log } = this.#options;
    if (!mail) return false;
    try {
      await mail.send(message);
      return true;
    } catch (error) {
      log.warn(fault, { detail: (error instanceof GatewayError ? error.detail : undefined) ?? String(error) });
      return false;
    }
  }
}
