// Model calls that the gateway makes itself, for guardrail judges, for embeddings that its cache needs, and for shadow
// requests. The operator pays for them.
import type { MemoryAccount } from "../base/bytes/buffered-bytes.ts";
import type { Cancellation } from "../base/cancellation.ts";
import type { Operation } from "../domain/models/operation.ts";
import type { Priority } from "../domain/models/policies/priority.ts";

/** The purpose of a call, which is also its usage tag (`gateway:<purpose>`). */
export type OwnPurpose = "cache" | "guardrail" | "shadow";

export interface OwnCall {
  readonly purpose: OwnPurpose;
  readonly operation: Operation;
  /** JSON text of the request, including `model`. The call must not stream. */
  readonly body: string;
  /** The memory account for bytes that the call buffers. */
  readonly memoryAccount: MemoryAccount;
  /** Cancels the call. The caller must enforce its own deadline. */
  readonly cancellation: Cancellation;
  /** True if the call may go only to local deployments. */
  readonly neverLeaves: boolean;
  /** Priority of the call. Default: normal. */
  readonly priority?: Priority | undefined;
  /** Names of the guardrails that have checked the content. Default: none. */
  readonly checkedBy?: readonly string[] | undefined;
  /**
   * Set for background calls. Called if a client's request needs the slot. The background call must then be cancelled
   * immediately.
   */
  readonly onWanted?: (() => void) | undefined;
  /** Id of the call in the ledger. Default: a new id. */
  readonly requestId?: string;
}

export interface OwnCalls {
  /**
   * Resolves to the JSON of the whole answer. Rejects with a GatewayError. The response cache, shadows and splits do
   * not apply. A model with guardrails that have not checked the content is asked only as a judge.
   */
  ask(call: OwnCall): Promise<string>;
}
