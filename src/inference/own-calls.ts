// Calls of models that the gateway makes for itself: judges, embeddings of its cache, shadows; metered to the operator.
import type { MemoryAccount } from "../base/bytes/buffered-bytes.ts";
import type { Cancellation } from "../base/cancellation.ts";
import type { Operation } from "../domain/models/operation.ts";
import type { Priority } from "../domain/models/policies/priority.ts";

/** What it is made for, by which its usage is tagged (`gateway:<purpose>`). */
export type OwnPurpose = "cache" | "guardrail" | "shadow";

export interface OwnCall {
  readonly purpose: OwnPurpose;
  readonly operation: Operation;
  /** JSON text of the request, its `model` included; no stream. */
  readonly body: string;
  /** On whose account its bytes are held. */
  readonly memoryAccount: MemoryAccount;
  /** Ends it early; its deadline is the caller's to keep. */
  readonly cancellation: Cancellation;
  /** Whether only deployments may be asked that an operator marked as local: as the request that it is made for. */
  readonly neverLeaves: boolean;
  /** That of the request that it is made for; left out: the usual one. */
  readonly priority?: Priority | undefined;
  /** Names of the guardrails that have looked at what is asked; left out: none has. */
  readonly checkedBy?: readonly string[] | undefined;
  /** Only for a call of the idle lane: called where a live request wants its place, which it is to give back at once. */
  readonly onWanted?: (() => void) | undefined;
  /** Under which it is on the ledger; left out: one of its own. */
  readonly requestId?: string;
}

export interface OwnCalls {
  /**
   * The JSON of the whole answer. Rejects with a GatewayError. Such a call is on the ledger as the operator's own usage, and
   * has no cache, shadow or split of its own. A model with guardrails that have not looked at it yet is not asked, but as a judge.
   */
  ask(call: OwnCall): Promise<string>;
}
