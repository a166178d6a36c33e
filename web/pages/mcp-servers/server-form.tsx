// The form of an MCP server, new or stored, which can be tested before it is saved.
import { Group, Stack } from "@mantine/core";
import { BeakerIcon } from "@primer/octicons-react";
import { useEffect } from "react";
import { call } from "../../api/client.ts";
import { type Change, useChange } from "../../api/queries.ts";
import type { McpServer, McpServerTest, McpServerTestRequest } from "../../api/types.ts";
import { Form } from "../../parts/editing/form.tsx";
import { useDraft } from "../../parts/editing/use-draft.ts";
import { PlainButton } from "../../parts/page/buttons.tsx";
import { Note } from "../../parts/words/note.tsx";
import { IdentityFields, storedOf } from "./identity-fields.tsx";
import { LocationFields } from "./location-fields.tsx";
import { testsPath } from "./mcp-server-paths.ts";
import { AccessFields, BoundFields, NameFields, OfferFields } from "./rule-fields.tsx";
import { draftOf, errorsOf, fields, newServer, type ServerDraft, suggestedName, testOf } from "./server-draft.ts";
import { TestResult } from "./test-result.tsx";

interface ServerFormProps<Sent> {
  /** The stored server; absent for a new server. */
  server?: McpServer;
  /** The names of existing servers. */
  taken?: readonly string[];
  action: string;
  save: Change<Sent, McpServer>;
  submit(draft: ServerDraft): void;
  cancel(): void;
}

export function ServerForm<Sent>({ server, taken = [], action, save, submit, cancel }: ServerFormProps<Sent>) {
  const before = server && draftOf(server);
  const test = useChange((body: McpServerTestRequest) => call<McpServerTest>("POST", testsPath, { body }), {
    done(result, { url }) {
      if (draft.name !== "" || !result.ok) return;
      const host = url !== undefined && URL.canParse(url) ? new URL(url).hostname : "";
      change({ name: suggestedName(result.server?.name || host, taken) });
    },
  });
  const sending = {
    isPending: save.isPending,
    error: save.error ?? test.error,
    reset() {
      save.reset();
      test.reset();
    },
  };
  const made = useDraft({ fields, errorsOf }, before ?? newServer, sending);
  const { draft, change, errorOf, form } = made;
  const part = { draft, change, errorOf };
  // biome-ignore lint/correctness/useExhaustiveDependencies: the form takes the focus only when it opens
  useEffect(() => form.ref.current?.querySelector("input")?.focus(), []);
  const asked = testOf(draft, before);
  // A result for another address or token is not shown.
  const tested = JSON.stringify(test.variables) === JSON.stringify(asked) ? test.data : undefined;
  return (
    <Form {...form} gap="lg" action={action} submit={made.submit(submit)} cancel={cancel}>
      <LocationFields {...part} />
      <IdentityFields {...part} {...(server ? storedOf(server) : {})} />
      <Stack gap="xs">
        <Group gap="xs">
          <PlainButton
            leftSection={<BeakerIcon />}
            loading={test.isPending}
            disabled={"url" in asked && asked.url === ""}
            onClick={() => test.mutate(asked)}
          >
            Test
          </PlainButton>
          {draft.credentials === "person" && (
            <Note>Without a connected account, the test may only show that the server is reachable.</Note>
          )}
        </Group>
        {tested && <TestResult result={tested} />}
      </Stack>
      <NameFields {...part} isNew={!server} />
      <AccessFields {...part} />
      <OfferFields {...part} found={tested?.tools.map(({ name }) => name) ?? []} />
      <BoundFields {...part} shown={server !== undefined} />
    </Form>
  );
}
