// Limits that the primary process decides, with one decision for all workers.
import type {
  Admission,
  CounterLocation,
  Granted,
  Lease,
  LimitSet,
  LimitStatus,
  LimitStore,
  Reservation,
  StopLease,
  StoppedBy,
} from "../../domain/limits/limits.ts";
import { extendKind, isPlain, settleKind } from "../link/figures.ts";
import {
  type AdmissionText,
  amountOf,
  errorOf,
  type GrantText,
  reservationText,
  type StopText,
  statusOf,
} from "../link/messages.ts";
import type { PrimaryLink } from "./primary-link.ts";

/**
 * A set of limits that the primary process knows by number. The number is stored in this set, and in other sets made of
 * the same limits.
 */
class NamedSet implements CounterLocation {
  readonly lasts = true;
  readonly of: RemoteLimits;
  readonly number: number;

  constructor(of: RemoteLimits, number: number) {
    this.of = of;
    this.number = number;
  }
}

export class RemoteLimits implements Pick<LimitStore, "admit" | "peek"> {
  readonly #link: PrimaryLink;
  #named = 0;
  /** The numbers of sets that are no longer in use. */
  #gone: number[] = [];
  readonly #sets = new FinalizationRegistry<number>((number) => this.#forget(number));

  constructor(link: PrimaryLink) {
    this.#link = link;
  }

  admit(limits: LimitSet, reservation: Reservation): Promise<Admission> {
    const set = this.#numberOf(limits);
    const lease = this.#link.next;
    const asked = isPlain(limits, reservation)
      ? this.#link.admit(set, reservation)
      : this.#link.ask<AdmissionText>("admit", set, ...reservationText(reservation));
    // This creates one promise per request; an async function that awaits a Deferred has four.
    return new Promise((resolve, reject) =>
      asked.whenSettled((text) => resolve(this.#admissionOf(text, lease, limits)), reject),
    );
  }

  #admissionOf(text: AdmissionText, lease: number, limits: LimitSet): Admission {
    if ("refusal" in text) return { refusal: errorOf(text.refusal), status: text.status };
    return new RemoteLease(this.#link, lease, text, limits);
  }

  peek(limits: LimitSet): Promise<LimitStatus> {
    return Promise.resolve(this.#link.ask<LimitStatus>("peek", this.#numberOf(limits)));
  }

  #numberOf(limits: LimitSet): number {
    const known = limits.counted;
    if (known instanceof NamedSet && known.of === this) return known.number;
    const number = ++this.#named;
    const { requests, tokens, quotas, windows } = limits;
    const plain = <One extends { counted?: object | undefined }>({ counted: _, ...one }: One) => one;
    this.#link.send("limits", number, {
      ...{ requests, tokens, quotas: quotas.map(plain) },
      ...(windows && { windows: windows.map(plain) }),
    });
    const named = new NamedSet(this, number);
    limits.counted = named;
    this.#sets.register(named, number);
    return number;
  }

  #forget(number: number): void {
    if (this.#gone.push(number) > 1) return;
    setImmediate(() => {
      this.#link.send("forget", this.#gone);
      this.#gone = [];
    });
  }
}

/** The admission and its lease in one object, because every request has both. */
class RemoteLease implements Lease, Granted {
  readonly reservedTokens: number;
  readonly status: LimitStatus;
  readonly stop: StopLease | undefined;
  readonly #link: PrimaryLink;
  readonly #number: number;
  #tokens: number;
  #nanoUsd = 0;
  #isSettled = false;

  constructor(link: PrimaryLink, number: number, text: GrantText, limits: LimitSet) {
    const [reservedTokens, , , , , , , stop] = text;
    this.#link = link;
    this.#number = number;
    this.#tokens = reservedTokens;
    this.reservedTokens = reservedTokens;
    this.status = statusOf(text);
    this.stop = stop && new RemoteStop(link, number, stop, limits);
  }

  get lease(): Lease {
    return this;
  }

  extend(tokens: number, nanoUsd: number): void {
    if (this.#isSettled || (tokens <= this.#tokens && nanoUsd <= this.#nanoUsd)) return;
    this.#tokens = Math.max(this.#tokens, tokens);
    this.#nanoUsd = Math.max(this.#nanoUsd, nanoUsd);
    this.#link.use(extendKind, this.#number, tokens, nanoUsd);
  }

  settle(tokens: number, nanoUsd: number): void {
    if (this.#isSettled) return;
    this.#isSettled = true;
    this.#link.use(settleKind, this.#number, tokens, nanoUsd);
  }
}

class RemoteStop implements StopLease {
  tokens: number;
  nanoUsd: number;
  readonly mostTokens: number;
  readonly mostNanoUsd: number;
  tightest: StoppedBy | undefined;
  readonly #link: PrimaryLink;
  readonly #lease: number;
  readonly #limits: LimitSet;

  constructor(link: PrimaryLink, lease: number, text: StopText, limits: LimitSet) {
    this.#link = link;
    this.#lease = lease;
    this.#limits = limits;
    this.mostTokens = amountOf(text.mostTokens);
    this.mostNanoUsd = amountOf(text.mostNanoUsd);
    this.tokens = amountOf(text.tokens);
    this.nanoUsd = amountOf(text.nanoUsd);
    this.tightest = this.#tightestOf(text);
  }

  async grow(moreTokens: number, moreNanoUsd: number): Promise<void> {
    const asked = this.#link.ask<StopText | null>("grow", this.#lease, moreTokens, moreNanoUsd);
    const text = await Promise.resolve(asked).catch(() => null);
    if (!text) return;
    this.tokens = amountOf(text.tokens);
    this.nanoUsd = amountOf(text.nanoUsd);
    this.tightest = this.#tightestOf(text);
  }

  #tightestOf({ tightest }: StopText): StoppedBy | undefined {
    const quota = tightest && this.#limits.windows?.find(({ id }) => id === tightest.id);
    return quota && { quota, unit: tightest.unit, period: tightest.period };
  }
}
