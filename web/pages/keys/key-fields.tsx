// The fields of a key's settings, for making one and for changing one.
import {
  Checkbox,
  Grid,
  Group,
  Input,
  NativeSelect,
  NumberInput,
  SegmentedControl,
  SimpleGrid,
  Stack,
  TagsInput,
  Text,
  TextInput,
} from "@mantine/core";
import type { ReactNode } from "react";
import { nowSeconds } from "../../api/server-time.ts";
import { separate } from "../../parts/editing/separate.ts";
import { QuotaFields } from "../../parts/quotas/quota-fields.tsx";
import type { UsedQuota } from "../../parts/quotas/used-quotas.tsx";
import { keyAmounts } from "../../parts/words/amounts.ts";
import { at, span } from "../../parts/words/figures.ts";
import { SmallNote } from "../../parts/words/note.tsx";
import { type Scope, scopes } from "../../parts/words/scopes.ts";
import { type Expiry, expiresAt, type Field, type KeyDraft } from "./key-draft.ts";
import { NoteFields, ReachFields } from "./key-reach-fields.tsx";

interface KeyFieldsProps {
  draft: KeyDraft;
  change(part: Partial<KeyDraft>): void;
  errorOf(field: Field): string | undefined;
  /** What the person may give; what the key has already is shown as well. */
  grantable: readonly Scope[];
  /** What is used of its quotas. */
  used?: readonly UsedQuota[];
  /** Beside the name. */
  children?: ReactNode;
}

const windows: readonly [number, string][] = [
  [1, "second"],
  [60, "minute"],
  [3_600, "hour"],
  [86_400, "day"],
];

export function KeyFields({ draft, change, errorOf, grantable, used, children }: KeyFieldsProps) {
  const shown = scopes.filter(({ scope }) => grantable.includes(scope) || draft.scopes.includes(scope));
  return (
    <Stack gap="lg">
      <SimpleGrid cols={children ? { base: 1, xs: 2 } : 1} spacing="md">
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
        {children}
      </SimpleGrid>
      <Checkbox.Group
        label="Permissions"
        description="As few as the program needs"
        value={[...draft.scopes]}
        onChange={(chosen) => change({ scopes: shown.flatMap(({ scope }) => (chosen.includes(scope) ? [scope] : [])) })}
        error={errorOf("scopes")}
      >
        <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="md" verticalSpacing="xs" mt="xs">
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
      <ReachFields {...{ draft, change, errorOf }} />
      <ExpiryField draft={draft} change={change} error={errorOf("expires_at")} />
      <TagsInput
        label="Allowed IP addresses"
        description="Addresses or ranges from which it works; none: from anywhere"
        placeholder={draft.addresses.length === 0 ? "203.0.113.0/24" : ""}
        value={draft.addresses}
        onChange={(addresses) => change({ addresses: separate(addresses) })}
        splitChars={[",", ";", " ", "\n"]}
        maxTags={100}
        openOnFocus={false}
        error={errorOf("allowed_ips")}
      />
      <Limits draft={draft} change={change} errorOf={errorOf} />
      <QuotaFields
        quotas={draft.quotas}
        error={errorOf("quotas")}
        about="Of this key, its rotations and the keys that it makes, together; beside those of the account."
        {...(used ? { used } : {})}
        change={(quotas) => change({ quotas })}
      />
      <NoteFields {...{ draft, change, errorOf }} />
    </Stack>
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
        {ends === null || Number.isNaN(ends) ? "It works until somebody revokes it." : `It works until ${at(ends)}.`}
      </SmallNote>
    </Input.Wrapper>
  );
}

function Limits({ draft, change, errorOf }: Pick<KeyFieldsProps, "draft" | "change" | "errorOf">) {
  const isUsual = windows.some(([seconds]) => seconds === draft.windowSeconds);
  const choices = isUsual ? windows : [...windows, [draft.windowSeconds, span(draft.windowSeconds)] as const];
  return (
    <Input.Wrapper
      label="Own limits"
      labelElement="div"
      description="Beside those of the account, which hold for all of its keys together. An empty field sets none."
    >
      <Grid gap="md" mt="xs">
        <Grid.Col span={{ base: 12, xs: 5 }}>
          <Input.Wrapper label="Requests" labelElement="div" error={errorOf("rate_limit")}>
            <Group gap={4} wrap="nowrap" align="start">
              <NumberInput
                aria-label="Requests"
                placeholder="No limit"
                value={draft.rateLimit}
                onChange={(rateLimit) => change({ rateLimit })}
                error={errorOf("rate_limit") !== undefined}
                {...{ min: 1, max: 1_000_000, allowDecimal: false, allowNegative: false, thousandSeparator: "," }}
                hideControls
              />
              <NativeSelect
                aria-label="Requests in which time"
                w="8rem"
                style={{ flexShrink: 0 }}
                value={String(draft.windowSeconds)}
                onChange={(event) => change({ windowSeconds: Number(event.currentTarget.value) })}
                data={choices.map(([seconds, name]) => ({ value: String(seconds), label: `/ ${name}` }))}
              />
            </Group>
          </Input.Wrapper>
        </Grid.Col>
        {keyAmounts.map(({ wire, label, unit, least, most }) => (
          <Grid.Col key={wire} span={{ base: 12, xs: unit === "USD" ? 3 : 4 }}>
            <NumberInput
              label={label}
              placeholder="No limit"
              value={draft.amounts[wire]}
              onChange={(value) => change({ amounts: { ...draft.amounts, [wire]: value } })}
              error={errorOf(wire)}
              {...{ min: least, max: most, allowDecimal: unit === "USD", allowNegative: false, thousandSeparator: "," }}
              {...(unit === "USD" ? { prefix: "$" } : {})}
              hideControls
            />
          </Grid.Col>
        ))}
      </Grid>
    </Input.Wrapper>
  );
}
