// Connects an MCP client: the address, of all servers or of one, and a snippet for each client.
import { Divider, NativeSelect, Stack, Tabs, Text } from "@mantine/core";
import { useState } from "react";
import { CopyBlock } from "../../parts/secrets/copy.tsx";
import { Note } from "../../parts/words/note.tsx";
import { clientSnippets } from "./client-snippets.ts";

const remembered = "headrace-tool-client";

/** Shows the setup of a client. `servers` holds the names of the MCP servers to choose from. */
export function ConnectClient({ servers }: { servers: readonly string[] }) {
  const [server, setServer] = useState("");
  const url = `${window.location.origin}/mcp${server === "" ? "" : `/${server}`}`;
  const snippets = clientSnippets(url);
  const before = localStorage.getItem(remembered);
  const first = snippets.find(({ id }) => id === before) ?? snippets[0];
  return (
    <Stack>
      <Note>
        One address offers the tools of all servers that you may use. Clients that support sign-in need no key. Other
        clients need an API key with the permission “Use tools”.
      </Note>
      <NativeSelect
        label="Servers"
        description="If you choose one server, its tools keep their own names."
        data={[{ value: "", label: "All available servers" }, ...servers]}
        value={server}
        onChange={(event) => setServer(event.currentTarget.value)}
      />
      <CopyBlock value={url} label="Copy the address" wrap />
      <Divider />
      <Tabs
        defaultValue={first?.id ?? null}
        keepMounted={false}
        onChange={(id) => id !== null && localStorage.setItem(remembered, id)}
      >
        <Tabs.List mb="xs" aria-label="Clients">
          {snippets.map(({ id, name }) => (
            <Tabs.Tab key={id} value={id} px={{ base: "xs", xs: "md" }}>
              {name}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        {snippets.map(({ id, name, about, code }) => (
          <Tabs.Panel key={id} value={id} tabIndex={-1}>
            <Stack gap="xs">
              <Text size="sm">{about}</Text>
              <CopyBlock value={code} label={`Copy for ${name}`} />
            </Stack>
          </Tabs.Panel>
        ))}
      </Tabs>
    </Stack>
  );
}
