// Code examples for an app's first requests, each with a copy button.
import { Tabs } from "@mantine/core";
import type { App } from "../../api/types.ts";
import { CopyBlock } from "../../parts/secrets/copy.tsx";
import { SmallNote } from "../../parts/words/note.tsx";
import { authorizeUrlName, oauthSnippetsOf } from "./oauth-snippets.ts";

/** Shows the examples with `secret`, which the page knows only right after the secret was created. */
export function AppSnippets({ app, secret }: { app: App; secret?: string | undefined }) {
  const snippets = oauthSnippetsOf(app, window.location.origin, secret);
  return (
    <>
      {/* Numbers identify the tabs, because a tab's value becomes part of an id, which must not contain spaces. */}
      <Tabs defaultValue="0" keepMounted={false}>
        <Tabs.List mb="xs" aria-label="Examples">
          {snippets.map(({ name }, index) => (
            <Tabs.Tab key={name} value={String(index)}>
              {name}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        {snippets.map(({ name, code }, index) => (
          <Tabs.Panel key={name} value={String(index)} tabIndex={-1}>
            <CopyBlock
              value={code}
              label={name === authorizeUrlName ? "Copy the URL" : "Copy the commands"}
              wrap={name === authorizeUrlName}
            />
          </Tabs.Panel>
        ))}
      </Tabs>
      <SmallNote>
        {app.redirect_uris.length > 0 &&
          "Each sign-in needs a new STATE and CHALLENGE. An OAuth library creates them. "}
        The library reads all endpoints from <span style={{ overflowWrap: "anywhere" }}>{discoveryUrl()}</span>.
      </SmallNote>
    </>
  );
}

function discoveryUrl(): string {
  return `${window.location.origin}/.well-known/oauth-authorization-server`;
}
