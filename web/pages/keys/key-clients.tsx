// Instructions for agents and SDKs to use a key, without the secret, which only the key's owner knows.
import { Paper, Text, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { type ApiFailure, call } from "../../api/client.ts";
import { chatModel } from "../../api/models.ts";
import type { ApiKey, ModelList } from "../../api/types.ts";
import { AgentSetup } from "../../parts/secrets/agent-setup.tsx";
import { baseUrlHere } from "../../parts/secrets/snippets.tsx";

/** Renders nothing if no model can chat: the page Models explains how to add a model. */
export function KeyClients({ record: { environment, models } }: { record: ApiKey }) {
  const { data } = useQuery<ModelList, ApiFailure>({
    queryKey: ["/v1/models", environment],
    queryFn: ({ signal }) => call("GET", "/v1/models", { headers: { "headrace-environment": environment }, signal }),
  });
  const model = data && chatModel(data, models)?.id;
  if (model === undefined) return null;
  return (
    <Paper withBorder p="lg">
      <Title order={2} size="h4" mb="xs">
        Use this key with
      </Title>
      <Text size="sm" c="dimmed" mb="xs">
        Replace YOUR_KEY with the key itself. The server cannot show the key again.
      </Text>
      <AgentSetup baseUrl={baseUrlHere()} model={model} />
    </Paper>
  );
}
