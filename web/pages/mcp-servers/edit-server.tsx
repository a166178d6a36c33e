// Changes an MCP server that was added in the dashboard.
import { useState } from "react";
import { call } from "../../api/client.ts";
import type { McpServer, UpdateMcpServerRequest } from "../../api/types.ts";
import { changedMembers } from "../../parts/editing/changed-members.ts";
import { useNotifiedChange } from "../../parts/editing/notified-change.ts";
import { RecordTitle } from "../../parts/page/section.tsx";
import { mcpServerPath, staleWithMcpServers } from "./mcp-server-paths.ts";
import { draftOf, movedOf, settingsOf } from "./server-draft.ts";
import { ServerForm } from "./server-form.tsx";

export function EditServer({ server, done }: { server: McpServer; done(): void }) {
  // The server as it was when editing began; only the user's own changes are sent, because others may change it
  // meanwhile.
  const [before] = useState(server);
  const save = useNotifiedChange(
    (body: UpdateMcpServerRequest) => call<McpServer>("PATCH", mcpServerPath(server.name), { body }),
    { stale: staleWithMcpServers, said: ({ name }) => `${name} was saved.`, done },
  );
  const stored = draftOf(before);
  return (
    <>
      <RecordTitle>{server.name}</RecordTitle>
      <ServerForm
        server={before}
        action="Save"
        save={save}
        submit={(draft) =>
          save.mutate({ ...movedOf(draft, stored), ...changedMembers(settingsOf(draft), settingsOf(stored)) })
        }
        cancel={done}
      />
    </>
  );
}
