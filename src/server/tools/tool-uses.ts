// Composes the recording of tool calls, and the models for sampling.
import type { ReloadableConfig } from "../../config/config.ts";
import type { McpServerSlots } from "../../domain/tools/mcp-server-slots.ts";
import type { ToolObserver, ToolSampler, ToolUses } from "../../domain/tools/tool-use.ts";
import { noteRefused } from "../../http/api/usage/refused-inference.ts";
import type { InferenceDeps } from "../../inference/call.ts";
import type { Catalog } from "../../inference/models/catalog.ts";
import { ModelSampler } from "../../mcp/accounting/model-sampler.ts";
import { ServerSlots } from "../../mcp/accounting/server-slots.ts";
import { MeteredUses, type MeteredUsesOptions } from "../../mcp/accounting/tool-uses.ts";
import type { OpenRequests } from "../../policy/open-requests.ts";
import { renderError } from "../../wire/errors.ts";
import type { Governance } from "../governance.ts";

export interface ToolUsesOptions {
  /** Returns the current configuration. */
  current(): Pick<ReloadableConfig, "limits" | "tools">;
  governance: Governance;
  inference: InferenceDeps;
  catalog: Pick<Catalog, "list">;
  openRequests: Pick<OpenRequests, "enter">;
  quotaWatch: MeteredUsesOptions["quotaWatch"];
  observer: ToolObserver;
}

/** The recording of tool calls, and the sampling requests of MCP servers. */
export interface ToolUseParts {
  toolUses: ToolUses;
  mcpServerSlots: McpServerSlots;
  toolSampler: ToolSampler;
}

export function openToolUses(options: ToolUsesOptions): ToolUseParts {
  const { current, governance, inference, catalog, openRequests, quotaWatch, observer } = options;
  const { admitter, throttle, ledger, refusalCounts } = governance;
  const { clock } = inference;
  const mcpServerSlots = new ServerSlots();
  const noting = { ...governance, clock };
  return {
    mcpServerSlots,
    toolUses: new MeteredUses({
      ...{ admitter, throttle, ledger, refusalCounts, quotaWatch, observer, clock },
      slots: mcpServerSlots,
      contents: governance.toolContentWriter,
      stopping: inference.stopping,
      noteRefused: ({ requestId, principal }, model, error, durationMs) =>
        noteRefused("tool", { requestId, line: { model, stream: false } }, principal, error, durationMs, noting),
    }),
    toolSampler: new ModelSampler({
      ...{ inference, catalog, openRequests, renderError },
      still: (principal) => governance.authenticator.still(principal),
      defaultModel: () => current().tools.samplingModel,
      requestLimits: () => current().limits,
      noteRefused: ({ requestId, model, principal }, error) =>
        noteRefused("chat", { requestId, line: { model, stream: false } }, principal, error, 0, noting),
    }),
  };
}
