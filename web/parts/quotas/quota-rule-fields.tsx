// The fields of one quota: amount, unit, span, kind of window, and models.
import { Group, NativeSelect, NumberInput, Paper, Switch, TagsInput, Text, TextInput } from "@mantine/core";
import { TrashIcon } from "@primer/octicons-react";
import { useEffect, useRef } from "react";
import { SmallButton } from "../page/buttons.tsx";
import { quotaInWords } from "../words/quotas.ts";
import {
  hasCalendar,
  kindOf,
  maxModelPatternLength,
  maxQuotaModels,
  maxTagLength,
  type QuotaDraft,
  type QuotaProblem,
  ruleOf,
  spanUnits,
  withSpan,
} from "./quota-draft.ts";
import { type UsedQuota, UsedQuotaMeter } from "./used-quotas.tsx";

interface QuotaRuleFieldsProps {
  quota: QuotaDraft;
  number: number;
  /** True right after the quota was added. */
  isNew: boolean;
  /** The model ids to choose from. */
  models: readonly string[];
  used: readonly UsedQuota[];
  problem: QuotaProblem | undefined;
  change(quota: QuotaDraft): void;
  remove(): void;
}

const units = [
  { value: "requests", label: "Requests" },
  { value: "tokens", label: "Tokens" },
  { value: "usd", label: "USD" },
] as const satisfies readonly { value: QuotaDraft["unit"]; label: string }[];

const spans = [
  { value: "hour", label: "Hour" },
  { value: "5h", label: "5 hours" },
  { value: "day", label: "Day" },
  { value: "week", label: "Week" },
  { value: "month", label: "Month" },
  { value: "other", label: "Custom" },
] as const satisfies readonly { value: QuotaDraft["per"]; label: string }[];

const windows = [
  { value: "calendar", label: "Calendar (UTC)" },
  { value: "rolling", label: "From first use" },
] as const satisfies readonly { value: QuotaDraft["window"]; label: string }[];

export function QuotaRuleFields(props: QuotaRuleFieldsProps) {
  const { quota, number, isNew, models, used, problem, change, remove } = props;
  const { unit, amount, per, window } = quota;
  const first = useRef<HTMLInputElement>(null);
  useEffect(() => {
    if (isNew) first.current?.focus();
  }, [isNew]);
  const set = (part: Partial<QuotaDraft>) => change({ ...quota, ...part });
  const errorOf = (field: string) => (problem?.field === field ? problem.text : undefined);
  const rule = ruleOf(quota);
  const isWhole = Number.isFinite(rule.amount) && !Number.isNaN(rule.per);
  const known = used.find((one) => kindOf(one) === kindOf(rule));
  return (
    <Paper withBorder p="sm" component="section" aria-label={`Quota ${number}`}>
      <Group justify="space-between" wrap="nowrap" align="start" gap="xs" mb={6}>
        <Text size="sm" fw={500} style={{ overflowWrap: "anywhere" }} miw={0}>
          {isWhole ? quotaInWords(rule) : "New quota"}
        </Text>
        <SmallButton onClick={remove} aria-label={`Remove quota ${number}`} px={6}>
          <TrashIcon />
        </SmallButton>
      </Group>
      <div className="quota-fields">
        <NumberInput
          ref={first}
          label="Amount"
          value={amount}
          onChange={(value) => set({ amount: value })}
          min={0}
          decimalScale={9}
          {...(unit === "usd" ? { prefix: "$" } : {})}
          allowNegative={false}
          thousandSeparator=","
          hideControls
          error={errorOf("amount")}
        />
        <NativeSelect
          label="Unit"
          data={units}
          value={unit}
          onChange={(event) => set({ unit: event.currentTarget.value as QuotaDraft["unit"] })}
          error={errorOf("unit")}
        />
        <NativeSelect
          label="Per"
          data={spans}
          value={per}
          onChange={(event) => change(withSpan(quota, event.currentTarget.value as QuotaDraft["per"]))}
          error={per === "other" ? undefined : errorOf("per")}
        />
        {per === "other" && <OtherSpan quota={quota} error={errorOf("per")} set={set} />}
        <NativeSelect
          className="quota-window"
          label="Window"
          data={windows.filter(({ value }) => value === "rolling" || hasCalendar(per))}
          value={window}
          onChange={(event) => set({ window: event.currentTarget.value as QuotaDraft["window"] })}
          error={errorOf("window")}
        />
        <WhichFields {...{ quota, models, errorOf, set }} />
      </div>
      {problem && !knownFields.has(problem.field ?? "") && (
        <Text size="sm" c="var(--mantine-color-error)" role="alert" mt={6}>
          {problem.text}
        </Text>
      )}
      {known && <UsedQuotaMeter quota={known} mt="sm" />}
    </Paper>
  );
}

interface WhichFieldsProps {
  quota: QuotaDraft;
  models: readonly string[];
  errorOf(field: string): string | undefined;
  set(part: Partial<QuotaDraft>): void;
}

/** The fields that restrict which requests count. */
function WhichFields({ quota, models, errorOf, set }: WhichFieldsProps) {
  return (
    <>
      <TagsInput
        className="quota-models"
        label="Models"
        description="Model ids or prefixes such as gpt-*. Leave empty to count all models."
        data={[...models]}
        value={quota.models}
        onChange={(chosen) => set({ models: chosen })}
        splitChars={[",", ";", " "]}
        maxTags={maxQuotaModels}
        maxLength={maxModelPatternLength}
        limit={20}
        comboboxProps={{ keepMounted: false }}
        error={errorOf("models")}
      />
      <TextInput
        className="quota-tag"
        label="Tag"
        description="Counts only requests with this tag. Leave empty to count all."
        value={quota.tag}
        onChange={(event) => set({ tag: event.currentTarget.value })}
        maxLength={maxTagLength}
        autoComplete="off"
        spellCheck={false}
        error={errorOf("tag")}
      />
      {quota.unit !== "requests" && (
        <Switch
          className="quota-stop"
          label="Hard stop"
          description="On: an answer is cut off as soon as the quota is spent, as with max_tokens. Off: an answer that has started is completed."
          checked={quota.hardStop}
          onChange={(event) => set({ hardStop: event.currentTarget.checked })}
        />
      )}
    </>
  );
}

/** The fields that show their own errors. */
const knownFields: ReadonlySet<string> = new Set(["amount", "unit", "per", "window", "models", "tag"]);

interface OtherSpanProps {
  quota: QuotaDraft;
  error: string | undefined;
  set(part: Partial<QuotaDraft>): void;
}

function OtherSpan({ quota: { span, spanSeconds }, error, set }: OtherSpanProps) {
  return (
    <>
      <NumberInput
        label="Length"
        value={span}
        onChange={(value) => set({ span: value })}
        min={1}
        allowDecimal={false}
        allowNegative={false}
        hideControls
        error={error}
      />
      <NativeSelect
        label="Time unit"
        data={spanUnits.map(([seconds, name]) => ({ value: String(seconds), label: name }))}
        value={String(spanSeconds)}
        onChange={(event) => set({ spanSeconds: Number(event.currentTarget.value) })}
      />
    </>
  );
}
