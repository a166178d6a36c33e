// The identity by which an MCP server is asked, in its form: nobody, the same for all, or each person.
import { Fieldset, Group, Input, PasswordInput, Radio, Stack, TagsInput, TextInput } from "@mantine/core";
import { PlusIcon, TrashIcon } from "@primer/octicons-react";
import type { ToolServer } from "../../api/types.ts";
import { MoreSettings } from "../../parts/editing/more-settings.tsx";
import { PlainButton, SmallButton } from "../../parts/page/buttons.tsx";
import { Note } from "../../parts/words/note.tsx";
import type { PartProps } from "./place-fields.tsx";
import { newHeader, type ServerDraft, type TypedHeader } from "./server-draft.ts";

interface IdentityProps extends PartProps {
  /** Names of the headers that are stored. */
  stored?: readonly string[];
  hasSecret?: boolean;
}

export function IdentityFields({ stored = [], hasSecret = false, ...part }: IdentityProps) {
  const { draft, change, errorOf } = part;
  // The node has the credentials of its own servers.
  if (draft.place === "node") return null;
  return (
    <Fieldset legend="As whom it is asked">
      <Stack>
        <Radio.Group
          aria-label="As whom it is asked"
          value={draft.credentials}
          onChange={(credentials) => change({ credentials: credentials as ServerDraft["credentials"] })}
        >
          <Stack gap="xs">
            <Radio value="none" label="Nobody" description="It asks for no credential." />
            <Radio
              value="headers"
              label="The same for all"
              description="A token or key that you have there: whoever uses it here acts with its rights."
            />
            <Radio
              value="person"
              label="Each person"
              description="People connect an account of their own there, by OAuth, and act with their own rights."
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
        <Note>Stored: {stored.join(", ")}. At another host, port or scheme they have to be given again.</Note>
        <SmallButton onClick={() => change({ headers: [{ ...newHeader(0), name: stored[0] ?? "" }] })}>
          Replace them
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
      <Note>They are kept sealed and not shown again.</Note>
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
    <MoreSettings
      label="Its authorization server, and a client of your own"
      shown={isSet}
      hasProblem={error !== undefined}
    >
      <Note>Most servers need none of this: Headrace describes or registers itself there.</Note>
      <TextInput
        label="Authorization server"
        description="Its issuer, where it is inside of your network, or no other is to be taken; empty: the one that the server names."
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
        description="Of a client that you registered there, with the redirect URI /oauth/tools/callback below the public URL."
        value={draft.clientId}
        onChange={(event) => change({ clientId: event.currentTarget.value })}
        error={error !== undefined}
        maxLength={2_048}
        autoComplete="off"
        spellCheck={false}
      />
      <PasswordInput
        label="Client secret"
        description={hasSecret ? "Leave it empty to keep the one that is stored." : "If the client has one."}
        value={draft.clientSecret}
        onChange={(event) => change({ clientSecret: event.currentTarget.value })}
        maxLength={2_048}
        autoComplete="off"
        visibilityToggleButtonProps={{ "aria-label": "Show the client secret" }}
      />
      <TagsInput
        label="Scopes"
        description="That people are asked for; none: those that the server asks for."
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

/** Which of the stored identity its form may keep. */
export function storedOf({ header_names: stored, oauth }: ToolServer) {
  return { stored, hasSecret: oauth?.has_client_secret ?? false };
}
