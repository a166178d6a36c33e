// The frequent messages of requests: numbers at fixed positions, which need no formatting and parsing.
import type { LimitSet, LimitState, LimitStatus, Reservation } from "../../domain/limits/limits.ts";
import type { FrameLink, Words } from "./frame-link.ts";
import type { GrantText } from "./messages.ts";

/** The kind of a message that asks for an admission. The same question as JSON is the message `admit`. */
export const admitKind = 1;
/** The kind of a message that grants an admission. */
export const grantKind = 2;
/** The kind of a message that reserves more for a lease. Its numbers: the lease, tokens, nano-USD. */
export const extendKind = 3;
/** The kind of a message with the final use of a lease. Its numbers: the lease, tokens, nano-USD. */
export const settleKind = 4;

/** The part of a link that sends numeric messages. */
export type Figures = Pick<FrameLink, "begin" | "words">;

/** The length of request ids, in ASCII. */
const idBytes = 40;
const wordBytes = 8;
const admitNumbers = 6;
const grantNumbers = 8;

/**
 * Reports whether an admission can be requested with numbers only. Window quotas also depend on the model's name and on
 * tags.
 */
export function isPlain({ windows }: LimitSet, { requestId, stop }: Reservation): boolean {
  return windows === undefined && stop === undefined && requestId?.length === idBytes;
}

export function putAdmit(link: Figures, question: number, set: number, reservation: Reservation): void {
  const at = link.begin(admitKind, admitNumbers + idBytes / wordBytes);
  const { numbers, bytes } = link.words;
  numbers[at] = question;
  numbers[at + 1] = set;
  numbers[at + 2] = reservation.tokens;
  numbers[at + 3] = reservation.nanoUsd;
  numbers[at + 4] = reservation.minTokens;
  numbers[at + 5] = reservation.minNanoUsd;
  bytes.write(reservation.requestId ?? "", (at + admitNumbers) * wordBytes, idBytes, "latin1");
}

export function reservationAt({ numbers, bytes }: Words, at: number): Reservation {
  const id = (at + admitNumbers) * wordBytes;
  return {
    tokens: numbers[at + 2] as number,
    nanoUsd: numbers[at + 3] as number,
    minTokens: numbers[at + 4] as number,
    minNanoUsd: numbers[at + 5] as number,
    requestId: bytes.toString("latin1", id, id + idBytes),
  };
}

export function putGrant(link: Figures, question: number, reservedTokens: number, status: LimitStatus): void {
  const at = link.begin(grantKind, grantNumbers);
  const { numbers } = link.words;
  numbers[at] = question;
  numbers[at + 1] = reservedTokens;
  putState(numbers, at + 2, status.requests);
  putState(numbers, at + 5, status.tokens);
}

export function grantAt({ numbers }: Words, at: number): GrantText {
  return [
    numbers[at + 1] as number,
    limitAt(numbers, at + 2),
    numbers[at + 3] as number,
    numbers[at + 4] as number,
    limitAt(numbers, at + 5),
    numbers[at + 6] as number,
    numbers[at + 7] as number,
  ];
}

/** Writes a message about a lease. `kind` is `extendKind` or `settleKind`. */
export function putUse(link: Figures, kind: number, lease: number, tokens: number, nanoUsd: number): void {
  const at = link.begin(kind, 3);
  const { numbers } = link.words;
  numbers[at] = lease;
  numbers[at + 1] = tokens;
  numbers[at + 2] = nanoUsd;
}

/** Writes a limit's state; NaN means no limit. */
function putState(numbers: Float64Array, at: number, state: LimitState | undefined): void {
  numbers[at] = state?.limit ?? Number.NaN;
  numbers[at + 1] = state?.remaining ?? 0;
  numbers[at + 2] = state?.resetMs ?? 0;
}

function limitAt(numbers: Float64Array, at: number): number | null {
  const limit = numbers[at] as number;
  return Number.isNaN(limit) ? null : limit;
}
