// All settings of an app, read-only.
import { Anchor, Code, Group, List, Paper, SimpleGrid, Stack, Text } from "@mantine/core";
import type { ReactElement } from "react";
import type { App } from "../../api/types.ts";
import { CopyAction } from "../../parts/secrets/copy.tsx";
import { toolListWords } from "../../parts/tools/tool-entries.ts";
import { environmentNames } from "../../parts/words/environments.ts";
import { Facts } from "../../parts/words/facts.tsx";
import { at, day } from "../../parts/words/figures.ts";
import { appScopes } from "./app-scopes.ts";

export const kinds: Record<App["type"], string> = {
  confidential: "Confidential",
  public: "Public",
};

export function AppSettings({ app }: { app: App }) {
  const { client_id: id, homepage_url: homepage, redirect_uris: uris, scopes } = app;
  return (
    <Paper withBorder p="lg">
      <Stack gap="lg">
        <SimpleGrid cols={{ base: 1, sm: 2 }}>
          <Entries title="Client id">
            {[
              <Group key="id" gap={4} wrap="nowrap">
                <Code>{id}</Code>
                <CopyAction value={id} label="Copy the client id" />
              </Group>,
            ]}
          </Entries>
          <Entries title="Home page">
            {homepage === null
              ? "None"
              : [
                  <Anchor key="home" href={homepage} target="_blank" rel="noopener noreferrer" inherit>
                    {homepage}
                  </Anchor>,
                ]}
          </Entries>
        </SimpleGrid>
        <Facts
          facts={[
            ["Kind", app.type === "public" ? "Public: runs on users' devices" : "Confidential: runs on a server"],
            ["State", app.status === "suspended" ? "Suspended: its tokens are refused" : "Active"],
            ["Publisher", app.publisher],
            ["Environment", environmentNames[app.environment]],
            ["Registered", at(app.created_at)],
            ...(app.scopes.includes("tools:use") ? [["Tools", toolListWords(app.tools)] as [string, string]] : []),
            ["PKCE", app.require_pkce ? "Required" : "Not required"],
          ]}
        />
        <SimpleGrid cols={{ base: 1, sm: 3 }}>
          <Entries title="Redirect URIs">
            {uris.length === 0
              ? "None: the app uses only the device flow."
              : uris.map((uri) => <Code key={uri}>{uri}</Code>)}
          </Entries>
          <Entries title="Permissions that the app may request">
            {appScopes.flatMap(({ scope, title }) =>
              scopes.includes(scope)
                ? [
                    <span key={scope}>
                      {title} <Code>{scope}</Code>
                    </span>,
                  ]
                : [],
            )}
          </Entries>
          <Entries title="Active secrets">
            {app.secrets.length === 0
              ? "None: a public app has no secret."
              : app.secrets.map((secret) => (
                  <span key={secret.id}>
                    <Code>…{secret.last4}</Code> created {day(secret.created_at)}
                    {secret.expires_at !== null && `, until ${at(secret.expires_at)}`}
                  </span>
                ))}
          </Entries>
        </SimpleGrid>
      </Stack>
    </Paper>
  );
}

function Entries({ title, children }: { title: string; children: string | ReactElement[] }) {
  return (
    <div>
      <Text size="xs" c="dimmed" component="h2" fw="normal" mb={4}>
        {title}
      </Text>
      {typeof children === "string" ? (
        <Text size="sm">{children}</Text>
      ) : (
        <List listStyleType="none" size="sm" spacing={4}>
          {children.map((child) => (
            <List.Item key={child.key} style={{ overflowWrap: "anywhere" }}>
              {child}
            </List.Item>
          ))}
        </List>
      )}
    </div>
  );
}
