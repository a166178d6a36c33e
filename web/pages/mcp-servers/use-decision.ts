// Approves or refuses the tools and prompts of a server as they were shown.
import { useQueryClient } from "@tanstack/react-query";
import { call } from "../../api/client.ts";
import type { DecideToolDefinition, ToolDefinition } from "../../api/types.ts";
import { useNotifiedChange } from "../../parts/editing/notified-change.ts";
import { counted } from "../../parts/words/figures.ts";
import { definitionsPath, staleWithMcpServers } from "./mcp-server-paths.ts";
import { wordsFor } from "./mcp-server-words.tsx";

export type Decision = DecideToolDefinition["decision"];

interface Decided {
  definitions: readonly ToolDefinition[];
  decision: Decision;
}

/**
 * Sends the decisions one by one: each is an event of the audit log, and the first definition that has changed
 * meanwhile stops the rest.
 */
export function useDecision(server: string) {
  const client = useQueryClient();
  const path = definitionsPath(server);
  return useNotifiedChange(
    async ({ definitions, decision }: Decided) => {
      try {
        for (const { kind, name, digest } of definitions) {
          const body: DecideToolDefinition = { kind, name, digest, decision };
          await call<ToolDefinition>("POST", path, { body });
        }
      } catch (error) {
        // Loads the definitions again: decisions before the failure took effect, and the refused definition may have
        // changed.
        void client.invalidateQueries({ queryKey: [path] });
        throw error;
      }
    },
    {
      stale: staleWithMcpServers,
      said: (_answer, { definitions: [first, ...others], decision }) =>
        first && others.length === 0
          ? `${wordsFor(first)} is ${decision}.`
          : `${counted(others.length + 1, "tool or prompt", "tools and prompts")} are ${decision}.`,
    },
  );
}
