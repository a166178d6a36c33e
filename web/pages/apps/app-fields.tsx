// The form fields for an app's settings, used to register an app and to change it.
import { Checkbox, Code, Input, List, Radio, SimpleGrid, Stack, TagsInput, TextInput } from "@mantine/core";
import type { App } from "../../api/types.ts";
import { ToolListField } from "../../parts/tools/tool-list-field.tsx";
import type { AppDraft, Field } from "./app-draft.ts";
import { appScopes } from "./app-scopes.ts";

interface AppFieldsProps {
  draft: AppDraft;
  change(part: Partial<AppDraft>): void;
  errorOf(field: Field): string | undefined;
  /** If false, the app's type is read-only: it cannot change after registration. */
  isNew: boolean;
}

export function AppFields({ draft, change, errorOf, isNew }: AppFieldsProps) {
  return (
    <Stack gap="lg">
      <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="md">
        <TextInput
          label="Name"
          description="Shown when the app asks people for access"
          placeholder="Meeting notes"
          value={draft.name}
          onChange={(event) => change({ name: event.currentTarget.value })}
          error={errorOf("name")}
          maxLength={100}
          autoComplete="off"
          required
          withAsterisk={false}
          data-autofocus
        />
        <TextInput
          label="Home page"
          description="Optional"
          placeholder="https://notes.example/"
          type="url"
          value={draft.homepage}
          onChange={(event) => change({ homepage: event.currentTarget.value })}
          error={errorOf("homepage_url")}
          maxLength={2048}
          autoComplete="off"
        />
      </SimpleGrid>
      {isNew && (
        <Radio.Group
          label="Where it runs"
          description="Cannot be changed later"
          value={draft.type}
          onChange={(type) => change({ type: type as App["type"] })}
        >
          <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="md" verticalSpacing="xs" mt="xs">
            <Radio
              value="confidential"
              label="On a server"
              description="Confidential client: it has a secret and can keep it safe."
            />
            <Radio
              value="public"
              label="On a user's device"
              description="Public client: an app on the device or in the browser, which cannot keep a secret."
            />
          </SimpleGrid>
        </Radio.Group>
      )}
      <RedirectUris draft={draft} change={change} error={errorOf("redirect_uris")} />
      <MostFields draft={draft} change={change} errorOf={errorOf} />
      <Checkbox
        label="Refuse requests without PKCE"
        description={
          draft.type === "public"
            ? "Always on for a public app: only PKCE proves that the app itself started the sign-in."
            : "PKCE makes a stolen authorization code useless. All current OAuth libraries support it."
        }
        checked={draft.type === "public" || draft.requirePkce}
        disabled={draft.type === "public"}
        onChange={(event) => change({ requirePkce: event.currentTarget.checked })}
        error={errorOf("require_pkce")}
      />
    </Stack>
  );
}

/** The fields for the most permissions and tools that the app may request from its users. */
function MostFields({ draft, change, errorOf }: Omit<AppFieldsProps, "isNew">) {
  return (
    <>
      <Checkbox.Group
        label="Permissions that the app may request"
        description="Choose only what the app needs: people see this list. Apps cannot manage keys."
        value={[...draft.scopes]}
        onChange={(chosen) =>
          change({ scopes: appScopes.flatMap(({ scope }) => (chosen.includes(scope) ? [scope] : [])) })
        }
        error={errorOf("scopes")}
      >
        <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="md" verticalSpacing="xs" mt="xs">
          {appScopes.map(({ scope, title, meaning }) => (
            <Checkbox key={scope} value={scope} label={title} description={`${meaning} ${scope}`} />
          ))}
        </SimpleGrid>
      </Checkbox.Group>
      {(draft.scopes.includes("tools:use") || draft.tools !== null) && (
        <ToolListField
          description="Upper limit. The person who allows the app may choose fewer tools."
          value={draft.tools}
          change={(tools) => change({ tools })}
          error={errorOf("tools")}
        />
      )}
    </>
  );
}

interface RedirectUrisProps extends Pick<AppFieldsProps, "draft" | "change"> {
  error: string | undefined;
}

function RedirectUris({ draft, change, error }: RedirectUrisProps) {
  return (
    <Stack gap={6}>
      <TagsInput
        label="Redirect URIs"
        description="Addresses to which people return after signing in. Press Enter after each. Leave empty if the app uses only the device flow."
        placeholder={draft.redirectUris.length === 0 ? "https://notes.example/callback" : ""}
        value={draft.redirectUris}
        onChange={(uris) => change({ redirectUris: uris.map((uri) => uri.trim()) })}
        // A comma may be part of an address, so it does not separate entries.
        splitChars={[" ", "\n"]}
        maxTags={20}
        error={error}
        styles={{ pill: { maxWidth: "100%" } }}
      />
      <Input.Description component="div">
        <List size="xs" spacing={2}>
          <List.Item>
            <Code>https://</Code> with a host, without wildcards and without <Code>#</Code>
          </List.Item>
          <List.Item>
            <Code>http://</Code> on <Code>127.0.0.1</Code>, <Code>[::1]</Code> or <Code>localhost</Code> only; without a
            port, any port is accepted
          </List.Item>
          <List.Item>
            the app's own scheme, which is a reversed domain name: <Code>com.example.notes:/callback</Code>
          </List.Item>
          <List.Item>compared exactly: an extra slash makes a different address</List.Item>
        </List>
      </Input.Description>
    </Stack>
  );
}
