// Model calls that the gateway makes for itself: judges, embeddings of its cache, shadows. They are charged to the
// operator.
import type { MemoryAccount } from "../base/bytes/buffered-bytes.ts";
import type { Cancellation } from "../base/cancellation.ts";
import type { Operation } from "../domain/models/operation.ts";
import type { Priority } from "../domain/models/policies/priority.ts";

/** The purpose of a call, which is also its usage tag (`gateway:<purpose>`). */
export type OwnPurpose = "cache" | "guardrail" | "shadow";

export interface OwnCall {
  readonly purpose: OwnPurpose;
  readonly operation: Operation;
  /** JSON text of the request, including `model`; not streamed. */
  readonly body: string;
  /** The account for buffered bytes. */
  readonly memoryAccount: MemoryAccount;
  /** Ends the call early. The caller enforces its own deadline. */
  readonly cancellation: Cancellation;
  /** True if only local deployments may be asked, as for the request that the call belongs to. */
  readonly neverLeaves: boolean;
  /** Priority of the request that the call belongs to. Default: the normal one. */
  readonly priority?: Priority | undefined;
  /** Names of the guardrails that have checked the content. Default: none. */
  readonly checkedBy?: readonly string[] | undefined;
  /** For calls of the idle lane: called if a live request wants the slot, which must be released immediately. */
  readonly onWanted?: (() => void) | undefined;
  /** Id in the ledger. Default: a new one. */
  readonly requestId?: string;
}

export interface OwnCalls {
  /**
   * Resolves to the JSON of the whole answer. Rejects with a GatewayError. The call is recorded as the operator's
   * usage, and has no cache, shadow or split of its own. A model with guardrails that have not checked the content is
   * asked only as a judge.
   */
  ask(call: OwnCall): Promise<string>;
}
