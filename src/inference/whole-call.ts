// A model call without a connection to a client, such as a line of a batch. The answer is complete JSON, not a stream.

import type { MemoryAccount } from "../base/bytes/buffered-bytes.ts";
import type { Bytes } from "../base/bytes/byte-span.ts";
import type { Cancellation } from "../base/cancellation.ts";
import type { GatewayError } from "../base/errors.ts";
import type { Principal } from "../domain/principal.ts";
import type { DecodedRequest } from "../requests/decoded-request.ts";
import type { InferenceAnswer, InferenceCall } from "./call.ts";

/** The dependencies of a call that stores nothing and counts no refusals, because only the caller sees the answer. */
export const keepsNothing = {
  chatWriter: { retentionDays: 0, add: () => {}, notStored: () => {}, flush: () => Promise.resolve() },
  responseKeeper: {
    retentionDays: 0,
    requireRoom: () => Promise.resolve(),
    keep: () => Promise.resolve(true),
    notStored: () => {},
  },
  refusalCounts: { count: () => {} },
};

export interface WholeRequest {
  requestId: string;
  principal: Principal;
  request: DecodedRequest;
  memoryAccount: MemoryAccount;
}

export abstract class WholeCall implements InferenceCall<string> {
  readonly requestId: string;
  readonly principal: Principal;
  readonly request: DecodedRequest;
  readonly memoryAccount: MemoryAccount;
  readonly tagHeader = null;
  abstract readonly clientGone: Cancellation;
  abstract readonly onWanted: (() => void) | undefined;

  constructor({ requestId, principal, request, memoryAccount }: WholeRequest) {
    this.requestId = requestId;
    this.principal = principal;
    this.request = request;
    this.memoryAccount = memoryAccount;
  }

  abstract renderError(error: GatewayError): string;

  answer(answer: InferenceAnswer): string {
    if (typeof answer === "string") return answer;
    if ("pieces" in answer) return textOf(answer);
    throw new Error("An answer that was to be whole came as a stream.");
  }

  onLimits(): void {}

  onServedBy(): void {}

  onIgnored(): void {}

  onCapped(): void {}

  onLedger(): void {}

  onEnd(): void {}
}

function textOf(bytes: Bytes): string {
  return Buffer.concat(bytes.pieces).toString("utf8");
}
