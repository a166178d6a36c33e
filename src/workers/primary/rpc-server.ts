// Answers one worker's questions about limits and keys, which only the primary process has. Settles the reservations of
// a dead worker.
import { whenSettled } from "../../base/deferred.ts";
import type {
  Admission,
  Granted,
  LimitSet,
  LimitStatus,
  LimitStore,
  Reservation,
  StopLease,
} from "../../domain/limits/limits.ts";
import type { KeyStore } from "../../domain/principal.ts";
import { admitKind, extendKind, reservationAt, settleKind } from "../link/figures.ts";
import type { Words } from "../link/frame-link.ts";
import {
  type AdmissionText,
  errorText,
  finite,
  grantText,
  type ReservationText,
  reservationOf,
  type StopText,
  type ToPrimary,
} from "../link/messages.ts";

export interface RpcServerOptions {
  limits: Pick<LimitStore, "admit" | "peek">;
  keys: Pick<KeyStore, "findChainByDigest" | "credentialRevision" | "touchKeys">;
  /**
   * Called when a key was found by its digest under an older secret. `digest` is the key's digest under the current
   * secret.
   */
  renewals: { keyFound(key: { id: string; digest: string }, digest: string): void };
  /** Called with limits that are used for the first time. */
  limitsSeen(limits: LimitSet): void;
  /** Takes an open-request slot of the limits' key, or throws the refusal. */
  enter(limits: LimitSet): { release(): void };
  /** Called when a request's usage was counted in its limits, with the RpcServer that counted it. */
  used(rpcServer: RpcServer, request: SettledLease): void;
}

/** The answers to the worker. */
export interface RpcAnswers {
  answer(question: number, value: unknown): void;
  refuse(question: number, error: unknown): void;
  /** Grants an admission that has no quota by which its answer could be stopped. */
  grant(question: number, reservedTokens: number, status: LimitStatus): void;
}

/** The usage of a request that was counted under these limits. */
export interface SettledLease {
  readonly limits: LimitSet;
  readonly reservation: Pick<Reservation, "model" | "tags">;
  readonly tokens: number;
  readonly nanoUsd: number;
}

/** A lease of the worker. The lease has the number of the question that asked for it, and is open once granted. */
class OpenLease {
  readonly limits: LimitSet;
  readonly reservation: Reservation;
  readonly slot: { release(): void };
  granted: Granted | undefined;

  constructor(limits: LimitSet, reservation: Reservation, slot: OpenLease["slot"]) {
    this.limits = limits;
    this.reservation = reservation;
    this.slot = slot;
  }
}

/** Leases of a dead worker, by request id. */
export type OrphanedLeases = Map<string, OpenLease>;

/** The names of the messages that an RpcServer accepts. */
export type RpcMessages = Pick<
  ToPrimary,
  "limits" | "forget" | "admit" | "peek" | "grow" | "chain" | "revision" | "touch" | "recovered"
>;

type Handlers = { readonly [Name in keyof RpcMessages]: (...values: RpcMessages[Name]) => void };

const unsaid = { requests: undefined, tokens: undefined } as const;

export class RpcServer implements Handlers {
  readonly #options: RpcServerOptions;
  readonly #answers: RpcAnswers;
  readonly #sets = new Map<number, LimitSet>();
  readonly #leases = new Map<number, OpenLease>();
  readonly #orphans: OrphanedLeases;
  #isClosed = false;

  /** `orphans` are leases of the previous worker with this number. That worker's spool has their usage. */
  constructor(options: RpcServerOptions, answers: RpcAnswers, orphans: OrphanedLeases) {
    this.#options = options;
    this.#answers = answers;
    this.#orphans = orphans;
  }

  /** Handles a message. */
  take(name: keyof RpcMessages, values: readonly unknown[]): void {
    const done = this[name] as (...given: readonly unknown[]) => void;
    done.apply(this, [...values]);
  }

  /** Handles a numeric message. */
  figures(kind: number, words: Words, at: number): void {
    const { numbers } = words;
    const [first, second, third] = [numbers[at] as number, numbers[at + 1] as number, numbers[at + 2] as number];
    if (kind === settleKind) this.#settled(first, second, third);
    else if (kind === admitKind) this.#admit(first, second, reservationAt(words, at));
    else if (kind === extendKind) this.#leases.get(first)?.granted?.lease.extend(second, third);
    else throw new Error(`A worker sent figures of the kind ${kind}.`);
  }

  limits(set: number, limits: LimitSet): void {
    this.#sets.set(set, limits);
    this.#options.limitsSeen(limits);
  }

  forget(sets: readonly number[]): void {
    for (const set of sets) this.#sets.delete(set);
  }

  admit(question: number, set: number, ...text: ReservationText): void {
    this.#admit(question, set, reservationOf(text));
  }

  #admit(question: number, set: number, reservation: Reservation): void {
    const limits = this.#setOf(set);
    let slot: OpenLease["slot"];
    try {
      slot = this.#options.enter(limits);
    } catch (error) {
      this.#answers.answer(question, { status: unsaid, refusal: errorText(error) } satisfies AdmissionText);
      return;
    }
    const asked = new OpenLease(limits, reservation, slot);
    const admission = this.#options.limits.admit(limits, reservation);
    if (admission instanceof Promise) {
      admission.then(
        (later) => this.#admitted(question, asked, later),
        (error: unknown) => {
          slot.release();
          this.#answers.refuse(question, error);
        },
      );
    } else this.#admitted(question, asked, admission);
  }

  peek(question: number, set: number): void {
    this.#answerWith(question, this.#options.limits.peek(this.#setOf(set)));
  }

  grow(question: number, lease: number, moreTokens: number, moreNanoUsd: number): void {
    const stop = this.#leases.get(lease)?.granted?.stop;
    const grown = stop?.grow(moreTokens, moreNanoUsd);
    this.#answerWith(
      question,
      Promise.resolve(grown).then(() => stop && stopText(stop)),
    );
  }

  #settled(lease: number, tokens: number, nanoUsd: number): void {
    const open = this.#leases.get(lease);
    if (!open) return;
    this.#leases.delete(lease);
    this.#settle(open, tokens, nanoUsd);
  }

  recovered(requests: ToPrimary["recovered"][0]): void {
    for (const [requestId, tokens, nanoUsd] of requests) {
      const open = this.#orphans.get(requestId);
      if (!open) continue;
      this.#orphans.delete(requestId);
      this.#settle(open, tokens, nanoUsd);
    }
  }

  /**
   * Called when the worker has reported the whole spool. The remaining leases of the previous worker never reached the
   * ledger.
   */
  recoveredAll(): void {
    for (const open of this.#orphans.values()) this.#settle(open, 0, 0);
    this.#orphans.clear();
  }

  chain(question: number, digests: readonly string[]): void {
    const [digest = "", ...older] = digests;
    const { keys, renewals } = this.#options;
    this.#answerWith(
      question,
      keys.findChainByDigest(digest, ...older).then((chain) => {
        if (chain && chain.keys[0].digest !== digest) renewals.keyFound(chain.keys[0], digest);
        return chain ?? null;
      }),
    );
  }

  revision(question: number): void {
    this.#answerWith(question, this.#options.keys.credentialRevision());
  }

  touch(question: number, uses: readonly (readonly [string, number])[]): void {
    this.#answerWith(question, this.#options.keys.touchKeys(new Map(uses)));
  }

  /** Called when the worker has ended. Returns the worker's reservations, whose usage is in the worker's spool. */
  close(): OrphanedLeases {
    this.#isClosed = true;
    for (const open of this.#leases.values()) {
      const { requestId } = open.reservation;
      if (requestId === undefined) this.#settle(open, 0, 0);
      else this.#orphans.set(requestId, open);
    }
    this.#leases.clear();
    this.#sets.clear();
    return this.#orphans;
  }

  #settle({ granted, limits, reservation, slot }: OpenLease, tokens: number, nanoUsd: number): void {
    slot.release();
    granted?.lease.settle(tokens, nanoUsd);
    this.#options.used(this, { limits, reservation, tokens, nanoUsd });
  }

  #setOf(set: number): LimitSet {
    const limits = this.#sets.get(set);
    if (!limits) throw new Error(`A worker names limits ${set}, which it never told.`);
    return limits;
  }

  #admitted(question: number, asked: OpenLease, admission: Admission): void {
    const { status } = admission;
    if ("refusal" in admission) {
      asked.slot.release();
      this.#answers.answer(question, { status, refusal: errorText(admission.refusal) } satisfies AdmissionText);
      return;
    }
    // The worker ended while the limits were evaluated.
    if (this.#isClosed) {
      asked.slot.release();
      admission.lease.settle(0, 0);
      return;
    }
    asked.granted = admission;
    this.#leases.set(question, asked);
    const { reservedTokens, stop } = admission;
    if (stop) this.#answers.answer(question, grantText(reservedTokens, status, stopText(stop)));
    else this.#answers.grant(question, reservedTokens, status);
  }

  #answerWith(question: number, value: Parameters<typeof whenSettled<unknown>>[0] | object): void {
    if (value instanceof Promise || "whenSettled" in value) {
      whenSettled(
        value as Parameters<typeof whenSettled<unknown>>[0],
        (settled) => this.#answers.answer(question, settled ?? null),
        (error) => this.#answers.refuse(question, error),
      );
    } else this.#answers.answer(question, value);
  }
}

function stopText({ tokens, nanoUsd, mostTokens, mostNanoUsd, tightest }: StopLease): StopText {
  return {
    tokens: finite(tokens),
    nanoUsd: finite(nanoUsd),
    mostTokens: finite(mostTokens),
    mostNanoUsd: finite(mostNanoUsd),
    tightest: tightest && { id: tightest.quota.id, unit: tightest.unit, period: tightest.period },
  };
}
