// The port by which each call of a tool is admitted, and put on the ledger with what became of it.
import type { Eventual } from "../../base/later.ts";
import type { Principal } from "../principal.ts";
import type { ToolServer } from "./tool-server.ts";

export interface ToolUse {
  readonly requestId: string;
  readonly principal: Principal;
  readonly server: ToolServer;
  /** `tools/call`, `prompts/get`, `resources/read` or another method that a server answers. */
  readonly method: string;
  /** The server's own name of the tool or prompt, or the address of a resource; null: the method has none. */
  readonly name: string | null;
  /** JSON text of what it is asked with; kept only where content is. */
  readonly content: () => string;
}

export interface OpenToolUse {
  /** Once. `isError`: the tool said of its own result that it failed. Resolves once it survives `kill -9`. */
  ended(end: {
    outcome: "completed" | "failed" | "cancelled";
    code: string | null;
    isError: boolean;
    content(): string;
  }): Eventual<void>;
}

export interface ToolUses {
  /** Rejects with the refusal of a limit, and counts it; once it resolves it is on the ledger. */
  begin(use: ToolUse): Promise<OpenToolUse>;
}

/** Runs one of the gateway's own models for a server that asks for a sample, as a request of the principal. */
export interface ToolSampler {
  /** `params` of `sampling/createMessage`; gives its result. Rejects with a GatewayError. */
  sample(
    principal: Principal,
    params: Readonly<Record<string, unknown>>,
    signal: AbortSignal,
  ): Promise<Readonly<Record<string, unknown>>>;
}
