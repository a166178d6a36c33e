// The form fields for the identity at an MCP server: none, one for all, or one per person.
import { Fieldset, Group, Input, PasswordInput, Radio, Stack, TagsInput, TextInput } from "@mantine/core";
import { PlusIcon, TrashIcon } from "@primer/octicons-react";
import type { McpServer } from "../../api/types.ts";
import { MoreSettings } from "../../parts/editing/more-settings.tsx";
import { PlainButton, SmallButton } from "../../parts/page/buttons.tsx";
import { Note } from "../../parts/words/note.tsx";
import type { PartProps } from "./location-fields.tsx";
import { newHeader, type ServerDraft, type TypedHeader } from "./server-draft.ts";

interface IdentityProps extends PartProps {
  /** The names of the stored headers. */
  stored?: readonly string[];
  hasSecret?: boolean;
}

export function IdentityFields({ stored = [], hasSecret = false, ...part }: IdentityProps) {
  const { draft, change, errorOf } = part;
  // Renders nothing for a node, which holds the credentials of its own MCP servers.
  if (draft.place === "node") return null;
  return (
    <Fieldset legend="Sign-in to the server">
      <Stack>
        <Radio.Group
          aria-label="Sign-in to the server"
          value={draft.credentials}
          onChange={(credentials) => change({ credentials: credentials as ServerDraft["credentials"] })}
        >
          <Stack gap="xs">
            <Radio value="none" label="No sign-in" description="The server needs no credential." />
            <Radio
              value="headers"
              label="Shared credential"
              description="A token or key of the server. Everyone who uses the server here acts with its rights."
            />
            <Radio
              value="person"
              label="Per-user sign-in"
              description="Each person connects their own account with OAuth and acts with their own rights."
            />
          </Stack>
        </Radio.Group>
        {draft.credentials === "headers" && (
          <HeaderFields draft={draft} change={change} stored={stored} error={errorOf("headers")} />
        )}
        {draft.credentials === "person" && (
          <OAuthFields draft={draft} change={change} hasSecret={hasSecret} error={errorOf("oauth")} />
        )}
      </Stack>
    </Fieldset>
  );
}

interface HeadersProps extends Pick<PartProps, "draft" | "change"> {
  stored: readonly string[];
  error: string | undefined;
}

function HeaderFields({ draft: { headers }, change, stored, error }: HeadersProps) {
  if (headers === null) {
    return (
      <Stack gap="xs" align="start">
        <Note>Stored: {stored.join(", ")}. If you change the host, port or scheme, enter them again.</Note>
        <SmallButton onClick={() => change({ headers: [{ ...newHeader(0), name: stored[0] ?? "" }] })}>
          Replace headers
        </SmallButton>
        {error && <Input.Error role="alert">{error}</Input.Error>}
      </Stack>
    );
  }
  const set = (changed: TypedHeader) =>
    change({ headers: headers.map((one) => (one.key === changed.key ? changed : one)) });
  const next = Math.max(-1, ...headers.map(({ key }) => key)) + 1;
  return (
    <Stack gap="xs">
      {headers.map((header, index) => (
        <Group key={header.key} align="end" gap="xs" wrap="nowrap">
          <TextInput
            label={index === 0 ? "Header" : undefined}
            aria-label={`Header ${index + 1}`}
            placeholder="authorization"
            value={header.name}
            onChange={(event) => set({ ...header, name: event.currentTarget.value })}
            maxLength={128}
            autoComplete="off"
            spellCheck={false}
            flex={2}
            miw={0}
            error={error !== undefined}
          />
          <PasswordInput
            label={index === 0 ? "Value" : undefined}
            aria-label={`Value of header ${index + 1}`}
            placeholder="Bearer …"
            value={header.value}
            onChange={(event) => set({ ...header, value: event.currentTarget.value })}
            maxLength={8_192}
            autoComplete="off"
            visibilityToggleButtonProps={{ "aria-label": "Show the value" }}
            flex={3}
            miw={0}
            error={error !== undefined}
          />
          {headers.length > 1 && (
            <PlainButton
              onClick={() => change({ headers: headers.filter((one) => one !== header) })}
              aria-label={`Remove header ${index + 1}`}
              px="xs"
            >
              <TrashIcon />
            </PlainButton>
          )}
        </Group>
      ))}
      {error && <Input.Error role="alert">{error}</Input.Error>}
      <Note>Stored encrypted; not shown again.</Note>
      <Group>
        <SmallButton
          leftSection={<PlusIcon />}
          disabled={headers.length >= 64}
          onClick={() => change({ headers: [...headers, newHeader(next)] })}
        >
          Add a header
        </SmallButton>
      </Group>
    </Stack>
  );
}

interface OAuthProps extends Pick<PartProps, "draft" | "change"> {
  hasSecret: boolean;
  error: string | undefined;
}

function OAuthFields({ draft, change, hasSecret, error }: OAuthProps) {
  const isSet = draft.issuer !== "" || draft.clientId !== "" || draft.scopes.length > 0;
  return (
    <MoreSettings label="Authorization server and client" shown={isSet} hasProblem={error !== undefined}>
      <Note>Most servers need none of these settings, because Headrace registers itself automatically.</Note>
      <TextInput
        label="Authorization server"
        description="The issuer address. Needed if it is inside your network, or to allow only this one. Defaults to the one that the MCP server names."
        placeholder="https://login.example.com"
        value={draft.issuer}
        onChange={(event) => change({ issuer: event.currentTarget.value })}
        error={error !== undefined}
        maxLength={2_048}
        autoComplete="off"
        spellCheck={false}
      />
      <TextInput
        label="Client id"
        description="Id of a client that you registered there. Its redirect URI is the public URL followed by /oauth/tools/callback."
        value={draft.clientId}
        onChange={(event) => change({ clientId: event.currentTarget.value })}
        error={error !== undefined}
        maxLength={2_048}
        autoComplete="off"
        spellCheck={false}
      />
      <PasswordInput
        label="Client secret"
        description={hasSecret ? "Leave empty to keep the stored secret." : "Optional"}
        value={draft.clientSecret}
        onChange={(event) => change({ clientSecret: event.currentTarget.value })}
        maxLength={2_048}
        autoComplete="off"
        visibilityToggleButtonProps={{ "aria-label": "Show the client secret" }}
      />
      <TagsInput
        label="Scopes"
        description="Scopes to request. Defaults to the scopes that the MCP server names."
        value={[...draft.scopes]}
        onChange={(scopes) => change({ scopes })}
        splitChars={[",", " ", "\n"]}
        acceptValueOnBlur
        maxTags={100}
        openOnFocus={false}
      />
      {error && <Input.Error role="alert">{error}</Input.Error>}
    </MoreSettings>
  );
}

/** Returns which parts of the stored identity the form may keep. */
export function storedOf({ header_names: stored, oauth }: McpServer) {
  return { stored, hasSecret: oauth?.has_client_secret ?? false };
}
