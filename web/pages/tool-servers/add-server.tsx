// Adds an MCP server.
import { call } from "../../api/client.ts";
import type { CreateToolServerRequest, ToolServer } from "../../api/types.ts";
import { useToldChange } from "../../parts/editing/told-change.ts";
import { creationOf } from "./server-draft.ts";
import { ServerForm } from "./server-form.tsx";
import { mcpServersPath, staleWithMcpServers } from "./tool-server-paths.ts";

interface AddServerProps {
  /** Names that there are. */
  taken: readonly string[];
  close(): void;
  done(server: ToolServer): void;
}

export function AddServer({ taken, close, done }: AddServerProps) {
  const add = useToldChange((body: CreateToolServerRequest) => call<ToolServer>("POST", mcpServersPath, { body }), {
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
