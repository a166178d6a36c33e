// The page MCP servers: the servers, the pending definitions at each, and one server in a drawer, named by the address.
import { Alert, Button, Group, Stack } from "@mantine/core";
import { ClockIcon } from "@primer/octicons-react";
import { useSearchParams } from "wouter";
import { useList } from "../../api/queries.ts";
import type { McpServer } from "../../api/types.ts";
import { FormDrawer } from "../../parts/editing/form-drawer.tsx";
import { AddButton } from "../../parts/page/buttons.tsx";
import { Empty } from "../../parts/page/empty.tsx";
import { NameButton } from "../../parts/page/links.tsx";
import { operatorsOnly } from "../../parts/page/operators-only.tsx";
import { Page } from "../../parts/page/page.tsx";
import type { Column } from "../../parts/table/column.ts";
import { LongTable } from "../../parts/table/long-table.tsx";
import { SmallNote } from "../../parts/words/note.tsx";
import { AddServer } from "./add-server.tsx";
import { mcpServersPath } from "./mcp-server-paths.ts";
import { identityNames, locationOf, ServerState, waitingText } from "./mcp-server-words.tsx";
import { ServerView } from "./server-view.tsx";

export const McpServersPage = operatorsOnly("MCP servers", McpServers);

function McpServers() {
  const [search, setSearch] = useSearchParams();
  const listing = useList<McpServer>(mcpServersPath, {}, { everyMs: 10_000 });
  const name = search.get("server");
  const chosen = listing.items.find((server) => server.name === name);
  const choose = (server: McpServer) => setSearch({ server: server.name });
  const close = () => setSearch({});
  const add = <AddButton onClick={() => setSearch({ new: "" })}>Add a server</AddButton>;
  return (
    <Page
      title="MCP servers"
      about="MCP servers that clients reach through this server, with their sign-in and the approval of their tools."
      actions={listing.items.length > 0 && add}
    >
      <WaitingServers servers={listing.items.filter(({ waiting }) => waiting > 0)} choose={choose} />
      <LongTable
        label="MCP servers"
        listing={listing}
        columns={columnsOf(choose)}
        keyOf={(server) => server.name}
        rowHeight={60}
        choose={choose}
        empty={
          <Empty title="No MCP servers yet" action={add}>
            Add a Model Context Protocol server by its address. Clients then get the tools of all MCP servers at /mcp
            with one key or sign-in.
          </Empty>
        }
      />
      <FormDrawer
        of={search.has("new") ? "new" : chosen}
        title={(shown) => (shown === "new" ? "Add a server" : "MCP server")}
        size="lg"
        close={close}
      >
        {(shown) =>
          shown === "new" ? (
            <AddServer taken={listing.items.map((server) => server.name)} close={close} done={choose} />
          ) : (
            <ServerView key={shown.name} server={shown} close={close} />
          )
        }
      </FormDrawer>
    </Page>
  );
}

function columnsOf(choose: (server: McpServer) => void): Column<McpServer>[] {
  return [
    {
      name: "name",
      head: "Name",
      cell: (server) => (
        <>
          <NameButton show={() => choose(server)}>{server.title ?? server.name}</NameButton>
          <SmallNote lineClamp={1} style={{ overflowWrap: "anywhere" }}>
            {locationOf(server)}
          </SmallNote>
        </>
      ),
    },
    { name: "state", head: "State", cell: (server) => <ServerState server={server} /> },
    { name: "tools", head: "Tools", wideOnly: true, cell: ({ name }) => `${name}_…` },
    { name: "identity", head: "Signs in as", wideOnly: true, cell: ({ credentials }) => identityNames[credentials] },
    {
      name: "source",
      head: "Source",
      wideOnly: true,
      cell: ({ source }) => (source === "database" ? "Added in the dashboard" : "headrace.yaml"),
    },
  ];
}

const maxNamed = 5;

function WaitingServers({ servers, choose }: { servers: readonly McpServer[]; choose(server: McpServer): void }) {
  const waiting = servers.reduce((all, server) => all + server.waiting, 0);
  if (waiting === 0) return null;
  const title = `${waitingText(waiting)} ${waiting === 1 ? "waits" : "wait"} for your approval`;
  return (
    <Alert icon={<ClockIcon />} color="yellow" title={title} role="status">
      <Stack gap="xs" align="start">
        Their descriptions are new or changed. Clients cannot see or call them until you approve them.
        <Group gap="xs">
          {servers.slice(0, maxNamed).map((server) => (
            <Button key={server.name} size="xs" onClick={() => choose(server)}>
              Review {server.name}
            </Button>
          ))}
        </Group>
      </Stack>
    </Alert>
  );
}
