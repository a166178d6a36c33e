// What an app does first, as code, each with a button that copies it.
import { Tabs, Text } from "@mantine/core";
import type { App } from "../../api/types.ts";
import { CopyBlock } from "../../parts/copy.tsx";
import { authorizeUrlName, oauthSnippetsOf } from "./oauth-snippets.ts";

/** `secret`: where it is shown just now. */
export function AppSnippets({ app, secret }: { app: App; secret?: string | undefined }) {
  const snippets = oauthSnippetsOf(app, window.location.origin, secret);
  return (
    <>
      <Tabs defaultValue={snippets[0]?.name ?? null} keepMounted={false}>
        <Tabs.List mb="xs" aria-label="Ways to begin">
          {snippets.map(({ name }) => (
            <Tabs.Tab key={name} value={name}>
              {name}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        {snippets.map(({ name, code }) => (
          <Tabs.Panel key={name} value={name} tabIndex={-1}>
            <CopyBlock value={code} label={`Copy: ${name}`} wrap={name === authorizeUrlName} />
          </Tabs.Panel>
        ))}
      </Tabs>
      <Text size="xs" c="dimmed">
        {app.redirect_uris.length > 0 && "STATE and CHALLENGE are new for each sign-in; an OAuth library makes them. "}
        It finds the rest in <span style={{ overflowWrap: "anywhere" }}>{discoveryUrl()}</span>.
      </Text>
    </>
  );
}

function discoveryUrl(): string {
  return `${window.location.origin}/.well-known/oauth-authorization-server`;
}
