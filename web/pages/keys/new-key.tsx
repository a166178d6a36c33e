// Shows a new key, which is visible only this once, and a first request with the key.
import { Button, Group, Loader, Stack, Text, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { type ApiFailure, call } from "../../api/client.ts";
import { chatModel } from "../../api/models.ts";
import type { CreatedApiKey, ModelList } from "../../api/types.ts";
import { useFirstButton } from "../../parts/editing/use-first-button.ts";
import { Failure } from "../../parts/page/failure.tsx";
import { AgentSetup } from "../../parts/secrets/agent-setup.tsx";
import { CopyBlock } from "../../parts/secrets/copy.tsx";
import { CopyNow } from "../../parts/secrets/copy-now.tsx";
import { baseUrlHere, Snippets } from "../../parts/secrets/snippets.tsx";
import { environmentNames } from "../../parts/words/environments.ts";
import { Note } from "../../parts/words/note.tsx";
import type { Scope } from "../../parts/words/scopes.ts";

interface NewKeyProps {
  created: CreatedApiKey;
  /** Further hints, such as how long the old key stays valid. */
  children?: ReactNode;
  done(): void;
}

export function NewKey({ created, children, done }: NewKeyProps) {
  // The copy button has the focus, so that a stray Enter does not close the dialog.
  const firstButton = useFirstButton();
  return (
    <Stack ref={firstButton}>
      <CopyNow what="the key" />
      <CopyBlock value={created.key} label="Copy the key" />
      {children}
      <FirstRequest created={created} />
      <Group justify="end">
        <Button onClick={done}>Done</Button>
      </Group>
    </Stack>
  );
}

/** The path of a small request for each scope, which every key with the scope may send. */
const smallest: readonly [Scope, string][] = [
  ["models:read", "/models"],
  ["usage:read", "/usage"],
  ["chat:read", "/chat/completions"],
  ["keys:manage", "/keys"],
  ["admin:manage", "/admin/accounts"],
];

function FirstRequest({ created }: { created: CreatedApiKey }) {
  const { key, scopes, environment, allowed_ips: addresses, models: of } = created;
  const mayChat = scopes.includes("chat:write");
  const models = useQuery<ModelList, ApiFailure>({
    queryKey: ["/v1/models", environment],
    queryFn: ({ signal }) => call("GET", "/v1/models", { headers: { "headrace-environment": environment }, signal }),
    enabled: mayChat,
  });
  const title = (
    <Title order={2} size="h4">
      First request
    </Title>
  );
  if (!mayChat) {
    const [, path = "/models"] = smallest.find(([scope]) => scopes.includes(scope)) ?? [];
    const code = `curl '${baseUrlHere()}${path}' \\\n  -H 'Authorization: Bearer ${key}'`;
    return (
      <>
        {title}
        <CopyBlock value={code} label="Copy for curl" />
      </>
    );
  }
  if (models.isPending) return <Loader size="sm" aria-label="Loading the models" />;
  if (models.error) return <Failure error={models.error} retry={models.refetch} />;
  const model = chatModel(models.data, of)?.id;
  if (model === undefined) {
    return (
      <Text size="sm">
        The environment {environmentNames[environment]} has no model that can chat{" "}
        {of === null ? "yet" : "with this key yet"}. Open the page Models to add or find a model.
      </Text>
    );
  }
  return (
    <>
      {title}
      {addresses.length > 0 && <Note>The key works only from {addresses.join(", ")}.</Note>}
      <Snippets
        baseUrl={baseUrlHere()}
        apiKey={key}
        model={model}
        messages={[{ role: "user", content: "Who are you?" }]}
        parameters={{ temperature: 0 }}
        stream
      />
      <Title order={2} size="h4">
        Use this key with
      </Title>
      <AgentSetup baseUrl={baseUrlHere()} apiKey={key} model={model} />
    </>
  );
}
