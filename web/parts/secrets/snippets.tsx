// A chat request as code in several languages, in tabs, each with a copy button.
import { Tabs } from "@mantine/core";
import { CopyBlock } from "./copy.tsx";
import { type SnippetRequest, snippetsOf } from "./snippet-text.ts";

const remembered = "headrace-snippet";

/** Opens the tab that the user chose last, on any page. */
export function Snippets(request: SnippetRequest) {
  const snippets = snippetsOf(request);
  const before = localStorage.getItem(remembered);
  const first = snippets.find(({ name }) => name === before) ?? snippets[0];
  return (
    <Tabs
      defaultValue={first?.name ?? null}
      keepMounted={false}
      onChange={(name) => name !== null && localStorage.setItem(remembered, name)}
    >
      <Tabs.List mb="xs" aria-label="Languages">
        {snippets.map(({ name }) => (
          <Tabs.Tab key={name} value={name} px={{ base: "xs", xs: "md" }}>
            {name}
          </Tabs.Tab>
        ))}
      </Tabs.List>
      {snippets.map(({ name, code }) => (
        <Tabs.Panel key={name} value={name} tabIndex={-1}>
          <CopyBlock value={code} label={`Copy for ${name}`} />
        </Tabs.Panel>
      ))}
    </Tabs>
  );
}

/** Returns the address of this server's API as other programs reach it from the reader's machine. */
export function baseUrlHere(): string {
  return `${window.location.origin}/v1`;
}
