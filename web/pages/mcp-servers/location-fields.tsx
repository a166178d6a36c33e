// The form fields for the place of an MCP server: an address, or a node of the network.
import { Autocomplete, Fieldset, Group, NativeSelect, SegmentedControl, Stack, TextInput } from "@mantine/core";
import { useList } from "../../api/queries.ts";
import type { Node } from "../../api/types.ts";
import { type Field, placedAt, type ServerDraft } from "./server-draft.ts";

export interface PartProps {
  draft: ServerDraft;
  change(part: Partial<ServerDraft>): void;
  errorOf(field: Field): string | undefined;
}

export function LocationFields({ draft, change, errorOf }: PartProps) {
  const nodes = useList<Node>("/v1/admin/nodes").items;
  const offered = nodes.find(({ id }) => id === draft.node)?.tool_servers ?? [];
  const move = (place: Parameters<typeof placedAt>[1]) => change(placedAt(draft, place));
  const mayBeNode = nodes.length > 0 || draft.place === "node";
  return (
    <Fieldset legend="Location">
      <Stack>
        {mayBeNode && (
          <SegmentedControl
            aria-label="Location"
            value={draft.place}
            onChange={(place) => {
              move({ place: place === "node" ? "node" : "http" });
              // A node holds the credentials of its own MCP servers.
              if (place === "node") change({ credentials: "none" });
            }}
            data={[
              { value: "http", label: "At a URL" },
              { value: "node", label: "On a node" },
            ]}
          />
        )}
        {draft.place === "http" ? (
          <TextInput
            label="Address"
            description="MCP endpoint (streamable HTTP), often ending in /mcp."
            placeholder="https://tools.example.com/mcp"
            value={draft.url}
            onChange={(event) => move({ url: event.currentTarget.value })}
            error={errorOf("url")}
            inputMode="url"
            maxLength={2_048}
            autoComplete="off"
            spellCheck={false}
            required
            data-autofocus
          />
        ) : (
          <Group grow align="start">
            <NativeSelect
              label="Node"
              data={[
                { value: "", label: "Choose" },
                // A node that is gone stays selectable until another is chosen.
                ...(draft.node !== "" && !nodes.some(({ id }) => id === draft.node) ? [draft.node] : []),
                ...nodes.map(({ id, name }) => ({ value: id, label: name })),
              ]}
              value={draft.node}
              onChange={(event) => move({ node: event.currentTarget.value })}
              error={errorOf("node")}
              required
            />
            <Autocomplete
              label="Server name"
              placeholder="files"
              data={offered.map(({ name }) => name)}
              value={draft.nodeServer}
              onChange={(nodeServer) => change({ nodeServer })}
              error={errorOf("node") !== undefined}
              maxLength={24}
              spellCheck={false}
              required
            />
          </Group>
        )}
      </Stack>
    </Fieldset>
  );
}
