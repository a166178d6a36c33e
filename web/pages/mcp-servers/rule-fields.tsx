// The form fields for the name of an MCP server, its users, tools, limits and price.
import {
  Fieldset,
  Group,
  NativeSelect,
  NumberInput,
  Radio,
  Stack,
  Switch,
  TagsInput,
  Textarea,
  TextInput,
} from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { listAll } from "../../api/names.ts";
import type { Account, McpServer } from "../../api/types.ts";
import { EnvironmentBoxes } from "../../parts/editing/environment-boxes.tsx";
import { MoreSettings } from "../../parts/editing/more-settings.tsx";
import { MultiChoice } from "../../parts/editing/multi-choice.tsx";
import { WholeNumber } from "../../parts/editing/whole-number.tsx";
import type { PartProps } from "./location-fields.tsx";
import type { Field, ServerDraft } from "./server-draft.ts";

export function NameFields({ isNew, draft, change, errorOf }: PartProps & { isNew: boolean }) {
  return (
    <Fieldset legend="Name">
      <Stack>
        {isNew && (
          <TextInput
            label="Name"
            description={`Prefix for its tools: ${draft.name === "" ? "weather" : draft.name}_… Cannot be changed later.`}
            placeholder="weather"
            value={draft.name}
            onChange={(event) => change({ name: event.currentTarget.value })}
            error={errorOf("name")}
            maxLength={24}
            autoComplete="off"
            spellCheck={false}
            required
          />
        )}
        <TextInput
          label="Title"
          description="Optional"
          value={draft.title}
          onChange={(event) => change({ title: event.currentTarget.value })}
          error={errorOf("title")}
          maxLength={128}
          autoComplete="off"
        />
        <Textarea
          label="Description"
          description="Optional"
          value={draft.description}
          onChange={(event) => change({ description: event.currentTarget.value })}
          error={errorOf("description")}
          maxLength={1_024}
          autosize
          minRows={1}
          maxRows={6}
        />
      </Stack>
    </Fieldset>
  );
}

export function AccessFields({ draft, change, errorOf }: PartProps) {
  const { data: accounts = [] } = useQuery({
    queryKey: ["/v1/admin/accounts", "all"],
    queryFn: ({ signal }) => listAll<Account>("/v1/admin/accounts", signal),
    staleTime: 60_000,
  });
  const unnamed = draft.accounts.filter((chosen) => !accounts.some(({ id }) => id === chosen));
  return (
    <Fieldset legend="Access">
      <Stack>
        <EnvironmentBoxes
          description="Keys of these environments may use its tools."
          value={draft.environments}
          change={(environments) => change({ environments })}
          error={errorOf("environments")}
        />
        <MultiChoice
          label="Accounts"
          description="Leave empty to allow all accounts. Keys, apps and members can have shorter lists of tools."
          placeholder={draft.accounts.length === 0 ? "All accounts" : ""}
          data={[
            ...accounts.map(({ id, name }) => ({ value: id, label: name })),
            ...unnamed.map((id) => ({ value: id, label: id })),
          ]}
          value={[...draft.accounts]}
          onChange={(chosen) => change({ accounts: chosen })}
          limit={50}
          error={errorOf("accounts")}
        />
        <Switch
          label="Local server"
          description="Local-only keys may use this server. Turn this on only if the server sends nothing on to other systems."
          checked={draft.isLocal}
          onChange={(event) => change({ isLocal: event.currentTarget.checked })}
          error={errorOf("local")}
        />
      </Stack>
    </Fieldset>
  );
}

interface OfferProps extends PartProps {
  /** The names of tools that a test found. */
  found: readonly string[];
}

export function OfferFields({ found, draft, change, errorOf }: OfferProps) {
  return (
    <Fieldset legend="Tools">
      <Stack>
        <Radio.Group
          label="Approval"
          description="Models trust tool descriptions as if you wrote them. Review changes."
          value={draft.approval}
          onChange={(approval) => change({ approval: approval as ServerDraft["approval"] })}
          error={errorOf("approval")}
        >
          <Stack gap="xs" mt="xs">
            <Radio
              value="first"
              label="Approve the first version, review changes"
              description="Changed and new tools wait for your approval."
            />
            <Radio value="each" label="Review everything" description="Each tool waits for your approval." />
            <Radio
              value="all"
              label="Accept all changes"
              description="Changes need no approval. Only for your own servers."
            />
          </Stack>
        </Radio.Group>
        <TagsInput
          label="Tools"
          description="Tool names, or prefixes such as search_*. Leave empty to allow all tools."
          placeholder={draft.tools.length === 0 ? "search_*" : ""}
          value={[...draft.tools]}
          onChange={(tools) => change({ tools })}
          splitChars={[",", ";", " ", "\n"]}
          acceptValueOnBlur
          maxTags={1_000}
          data={[...found]}
          limit={50}
          openOnFocus={found.length > 0}
          error={errorOf("tools")}
        />
      </Stack>
    </Fieldset>
  );
}

const bounds: readonly Field[] = [
  ...([
    "price_per_call",
    "timeout_seconds",
    "max_concurrency",
    "max_result_bytes",
    "protocol_version",
    "sharing",
  ] as const),
];

const revisions: readonly NonNullable<McpServer["protocol_version"]>[] = ["2026-07-28", "2025-11-25", "2025-06-18"];

export function BoundFields({ draft, change, errorOf, shown }: PartProps & { shown: boolean }) {
  return (
    <MoreSettings
      label="Limits, price and protocol"
      shown={shown}
      hasProblem={bounds.some((field) => errorOf(field) !== undefined)}
    >
      <Group grow align="start">
        <NumberInput
          label="Price per call"
          description="USD. Leave empty for free."
          value={draft.price}
          onChange={(price) => change({ price })}
          min={0}
          max={1_000}
          decimalScale={9}
          hideControls
          error={errorOf("price_per_call")}
        />
        <WholeNumber
          label="Call timeout (s)"
          description="1 to 3,600."
          value={draft.timeoutSeconds}
          onChange={(timeoutSeconds) => change({ timeoutSeconds })}
          max={3_600}
          error={errorOf("timeout_seconds")}
        />
      </Group>
      <Group grow align="start">
        <WholeNumber
          label="Max concurrent calls"
          description="Further calls wait."
          value={draft.maxConcurrency}
          onChange={(maxConcurrency) => change({ maxConcurrency })}
          max={10_000}
          error={errorOf("max_concurrency")}
        />
        <WholeNumber
          label="Max result size (bytes)"
          description="Calls with a larger result fail."
          value={draft.maxResultBytes}
          onChange={(maxResultBytes) => change({ maxResultBytes })}
          min={1_024}
          max={67_108_864}
          thousandSeparator=","
          error={errorOf("max_result_bytes")}
        />
      </Group>
      <NativeSelect
        label="Protocol revision"
        description="Choose a revision only if the server does not negotiate it correctly."
        value={draft.protocolVersion ?? ""}
        onChange={(event) => change({ protocolVersion: event.currentTarget.value as ServerDraft["protocolVersion"] })}
        data={[{ value: "", label: "Newest supported" }, ...revisions]}
        error={errorOf("protocol_version")}
      />
      {draft.credentials !== "person" && (
        <Switch
          label="Share one connection"
          description="Off: each person has a separate connection, so that data remembered in a connection is not shared."
          checked={draft.isShared}
          onChange={(event) => change({ isShared: event.currentTarget.checked })}
          error={errorOf("sharing")}
        />
      )}
    </MoreSettings>
  );
}
