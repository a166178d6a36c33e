// Adds an MCP server.
import { call } from "../../api/client.ts";
import type { CreateMcpServerRequest, McpServer } from "../../api/types.ts";
import { useNotifiedChange } from "../../parts/editing/notified-change.ts";
import { mcpServersPath, staleWithMcpServers } from "./mcp-server-paths.ts";
import { creationOf } from "./server-draft.ts";
import { ServerForm } from "./server-form.tsx";

interface AddServerProps {
  /** The names of existing servers. */
  taken: readonly string[];
  close(): void;
  done(server: McpServer): void;
}

export function AddServer({ taken, close, done }: AddServerProps) {
  const add = useNotifiedChange((body: CreateMcpServerRequest) => call<McpServer>("POST", mcpServersPath, { body }), {
    stale: staleWithMcpServers,
    leave: done,
    said: ({ name }) => `${name} was added.`,
  });
  return (
    <ServerForm
      taken={taken}
      action="Add server"
      save={add}
      submit={(draft) => add.mutate(creationOf(draft))}
      cancel={close}
    />
  );
}
