// Instructions for agents and SDKs to use this server, in tabs, each with a copy button.
import { Code, Stack, Tabs, Text } from "@mantine/core";
import { type AgentClient, agentClients } from "../../api/agent-clients.ts";
import { CopyBlock } from "./copy.tsx";
import { shellWord } from "./snippet-text.ts";

const remembered = "headrace-agent";

interface AgentSetupProps {
  /** The address of the API, which ends in /v1. */
  baseUrl: string;
  model: string;
  /** The key; absent if it is not known any more. The instructions then contain the placeholder `YOUR_KEY`. */
  apiKey?: string | undefined;
}

/** Opens the tab that the user chose last, on any page. */
export function AgentSetup(props: AgentSetupProps) {
  const before = localStorage.getItem(remembered);
  const first = agentClients.find(({ id }) => id === before) ?? agentClients[0];
  return (
    <Tabs
      defaultValue={first?.id ?? null}
      keepMounted={false}
      onChange={(id) => id !== null && localStorage.setItem(remembered, id)}
    >
      <Tabs.List mb="xs" aria-label="Clients">
        {agentClients.map(({ id, name }) => (
          <Tabs.Tab key={id} value={id} px={{ base: "xs", xs: "md" }}>
            {name}
          </Tabs.Tab>
        ))}
      </Tabs.List>
      {agentClients.map((client) => (
        <Tabs.Panel key={client.id} value={client.id} tabIndex={-1}>
          <ClientSetup client={client} {...props} />
        </Tabs.Panel>
      ))}
    </Tabs>
  );
}

function ClientSetup({ client, ...props }: AgentSetupProps & { client: AgentClient }) {
  const { name, file, text, start } = client;
  const variables = exportsOf(client, props);
  return (
    <Stack gap="xs">
      {file !== null && text !== null && (
        <>
          <Text size="sm">
            In <Code>{file}</Code>, add to the existing content:
          </Text>
          <CopyBlock value={configurationOf(text, props)} label={`Copy the configuration of ${name}`} />
          <Text size="sm">Or run this command. It shows the change and writes it after you confirm:</Text>
          <CopyBlock value={commandOf(client, props)} label={`Copy the command for ${name}`} />
        </>
      )}
      {variables !== "" && (
        <>
          <Text size="sm">In the shell that starts {start}:</Text>
          <CopyBlock value={variables} label={`Copy the variables of ${name}`} />
        </>
      )}
    </Stack>
  );
}

/**
 * Returns the command that sets up the agent. It names the address, because the user's machine may run another server,
 * and the model, because the key may allow several models.
 */
function commandOf({ id }: AgentClient, { baseUrl, model, apiKey }: AgentSetupProps): string {
  return [
    `export HEADRACE_BASE_URL=${shellWord(baseUrl)}`,
    `export HEADRACE_API_KEY=${apiKey ?? "YOUR_KEY"}`,
    `headrace connect ${id} --write --model ${shellWord(model)}`,
  ].join("\n");
}

/** Fills in the values with JSON's escapes, which are valid in strings of JSON and of TOML. */
function configurationOf(text: string, { baseUrl, model, apiKey }: AgentSetupProps): string {
  const values = { root_url: rootOf(baseUrl), model, key: apiKey ?? "YOUR_KEY" };
  return filled(text, values, (value) => JSON.stringify(value).slice(1, -1));
}

function exportsOf({ environment }: AgentClient, { baseUrl, model, apiKey }: AgentSetupProps): string {
  const values = { root_url: rootOf(baseUrl), model, key: apiKey ?? "YOUR_KEY" };
  return environment
    .map(([name, value]) => `export ${name}=${shellWord(filled(value, values, (plain) => plain))}`)
    .join("\n");
}

function filled(text: string, values: Readonly<Record<string, string>>, written: (value: string) => string): string {
  return text.replace(/\{(root_url|model|key)\}/g, (_, name: string) => written(values[name] ?? ""));
}

function rootOf(baseUrl: string): string {
  return baseUrl.replace(/\/v1$/, "");
}
