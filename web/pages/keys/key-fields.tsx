// The form fields for a key's settings, used to create a key and to change it.
import { Checkbox, Grid, Input, SegmentedControl, SimpleGrid, Stack, TagsInput, Text, TextInput } from "@mantine/core";
import { type ReactNode, useState } from "react";
import { nowSeconds } from "../../api/server-time.ts";
import { MoreSettings } from "../../parts/editing/more-settings.tsx";
import { separate } from "../../parts/editing/separate.ts";
import { QuotaFields } from "../../parts/quotas/quota-fields.tsx";
import type { UsedQuota } from "../../parts/quotas/used-quotas.tsx";
import { ToolListField } from "../../parts/tools/tool-list-field.tsx";
import { at } from "../../parts/words/figures.ts";
import { SmallNote } from "../../parts/words/note.tsx";
import { presetOf, presetsOf, type Scope, scopes } from "../../parts/words/scopes.ts";
import { type Expiry, expiresAt, type Field, type KeyDraft } from "./key-draft.ts";
import { AmountFields, LimitFields } from "./key-limit-fields.tsx";
import { ModelFields, NoteFields } from "./key-model-fields.tsx";
import {
  addressSummary,
  labelSummary,
  limitSummary,
  modelSummary,
  moreSummary,
  permissionSummary,
  toolSummary,
} from "./key-summary.ts";

interface KeyFieldsProps {
  draft: KeyDraft;
  change(part: Partial<KeyDraft>): void;
  errorOf(field: Field): string | undefined;
  /** The scopes that the user may grant; scopes that the key already has are shown as well. */
  grantable: readonly Scope[];
  /** The usage of the key's quotas. */
  used?: readonly UsedQuota[];
  /** Rendered first in the collapsed section "More settings". */
  children?: ReactNode;
}

export function KeyFields({ draft, change, errorOf, grantable, used, children }: KeyFieldsProps) {
  const part = { draft, change, errorOf };
  const isWrong = (...fields: Field[]) => fields.some((field) => errorOf(field) !== undefined);
  const wrong = {
    models: isWrong("models", "never_leaves", "priority", "response_cache"),
    tools: isWrong("tools"),
    limits: isWrong("rate_limit", "monthly_tokens", "quotas"),
    network: isWrong("allowed_ips"),
    labels: isWrong("tags", "note"),
  };
  const summary = moreSummary(draft);
  return (
    <Stack gap="lg">
      <TextInput
        label="Name"
        description="Which program or person will use it"
        placeholder="Web shop"
        value={draft.name}
        onChange={(event) => change({ name: event.currentTarget.value })}
        error={errorOf("name")}
        maxLength={100}
        autoComplete="off"
        required
        withAsterisk={false}
        data-autofocus
      />
      <PermissionFields {...part} grantable={grantable} />
      <Grid gap="md">
        <Grid.Col span={{ base: 12, xs: 8 }}>
          <ExpiryField draft={draft} change={change} error={errorOf("expires_at")} />
        </Grid.Col>
        <Grid.Col span={{ base: 12, xs: 4 }}>
          <AmountFields unit="USD" {...part} />
        </Grid.Col>
      </Grid>
      <MoreSettings
        summary={summary || "Models, limits, network, tags"}
        hasProblem={Object.values(wrong).includes(true)}
      >
        {children}
        <Stack gap="xs">
          <MoreSettings label="Models" summary={modelSummary(draft)} hasProblem={wrong.models}>
            <ModelFields {...part} />
          </MoreSettings>
          {(draft.scopes.includes("tools:use") || draft.tools !== null) && (
            <MoreSettings label="Tools" summary={toolSummary(draft)} hasProblem={wrong.tools}>
              <ToolListField
                description="Choose from the tools that the creator of the key may use"
                value={draft.tools}
                change={(tools) => change({ tools })}
                error={errorOf("tools")}
              />
            </MoreSettings>
          )}
          <MoreSettings label="Other limits" summary={limitSummary(draft)} hasProblem={wrong.limits}>
            <LimitFields {...part} />
            <QuotaFields
              quotas={draft.quotas}
              error={errorOf("quotas")}
              about="Shared by this key, its rotated copies and keys it created. Account quotas also apply."
              {...(used ? { used } : {})}
              change={(quotas) => change({ quotas })}
            />
          </MoreSettings>
          <MoreSettings label="Network" summary={addressSummary(draft)} hasProblem={wrong.network}>
            <TagsInput
              label="Allowed IP addresses"
              description="Addresses or ranges. Leave empty to allow any."
              placeholder={draft.addresses.length === 0 ? "203.0.113.0/24" : ""}
              value={draft.addresses}
              onChange={(addresses) => change({ addresses: separate(addresses) })}
              splitChars={[",", ";", " ", "\n"]}
              maxTags={100}
              openOnFocus={false}
              error={errorOf("allowed_ips")}
            />
          </MoreSettings>
          <MoreSettings label="Tags and note" summary={labelSummary(draft)} hasProblem={wrong.labels}>
            <NoteFields {...part} />
          </MoreSettings>
        </Stack>
      </MoreSettings>
    </Stack>
  );
}

/** Chooses the permissions by a preset, or one by one. */
function PermissionFields(props: Pick<KeyFieldsProps, "draft" | "change" | "errorOf" | "grantable">) {
  const { draft, change, errorOf, grantable } = props;
  const presets = presetsOf(grantable);
  // If the user chose single permissions, their checkboxes stay open even if the choice equals a preset.
  const [isOwn, setOwn] = useState(() => presetOf(draft.scopes, presets) === "restricted");
  const preset = isOwn ? "restricted" : presetOf(draft.scopes, presets);
  const shown = scopes.filter(({ scope }) => grantable.includes(scope) || draft.scopes.includes(scope));
  const choose = (wanted: string) => {
    setOwn(wanted === "restricted");
    if (wanted === "all" || wanted === "read") change({ scopes: presets[wanted] });
  };
  return (
    <Input.Wrapper
      label="Permissions"
      labelElement="div"
      error={preset === "restricted" ? undefined : errorOf("scopes")}
    >
      <SegmentedControl
        aria-label="Permissions"
        fullWidth
        size="xs"
        mt={4}
        value={preset}
        onChange={choose}
        data={[
          { value: "all", label: "All" },
          { value: "restricted", label: "Restricted" },
          { value: "read", label: "Read only" },
        ]}
      />
      {preset !== "restricted" && (
        <SmallNote mt={6} aria-live="polite">
          {permissionSummary(draft)}
        </SmallNote>
      )}
      {preset === "restricted" && (
        <Checkbox.Group
          aria-label="Single permissions"
          value={[...draft.scopes]}
          onChange={(chosen) =>
            change({ scopes: shown.flatMap(({ scope }) => (chosen.includes(scope) ? [scope] : [])) })
          }
          error={errorOf("scopes")}
        >
          <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="md" verticalSpacing="xs" mt="sm">
            {shown.map(({ scope, title, meaning }) => (
              <Checkbox
                key={scope}
                value={scope}
                label={
                  <>
                    {title}{" "}
                    <Text span size="xs" c="dimmed" ff="monospace">
                      {scope}
                    </Text>
                  </>
                }
                description={meaning}
              />
            ))}
          </SimpleGrid>
        </Checkbox.Group>
      )}
    </Input.Wrapper>
  );
}

interface ExpiryFieldProps extends Pick<KeyFieldsProps, "draft" | "change"> {
  error: string | undefined;
}

function ExpiryField({ draft, change, error }: ExpiryFieldProps) {
  const ends = draft.expiry === "never" ? null : expiresAt(draft, nowSeconds());
  return (
    <Input.Wrapper label="Expiration" labelElement="div" error={draft.expiry === "date" ? undefined : error}>
      <SegmentedControl
        aria-label="Expiration"
        fullWidth
        size="xs"
        mt={4}
        value={draft.expiry}
        onChange={(expiry) => change({ expiry: expiry as Expiry })}
        data={[
          { value: "7", label: "7 days" },
          { value: "30", label: "30 days" },
          { value: "90", label: "90 days" },
          { value: "date", label: "Date" },
          { value: "never", label: "Never" },
        ]}
      />
      {draft.expiry === "date" && (
        <TextInput
          mt="xs"
          type="date"
          label="Last day"
          value={draft.date}
          onChange={(event) => change({ date: event.currentTarget.value })}
          error={error}
        />
      )}
      <SmallNote mt={6} aria-live="polite">
        {ends === null || Number.isNaN(ends)
          ? "The key works until it is revoked."
          : `The key works until ${at(ends)}.`}
      </SmallNote>
    </Input.Wrapper>
  );
}
