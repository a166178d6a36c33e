// Overflow: which deployments are used only if the others have a queue, the further conditions, and the spending limit.
import { NativeSelect, NumberInput, TagsInput, Text } from "@mantine/core";
import { PlusIcon, TrashIcon } from "@primer/octicons-react";
import type { ApiFailure } from "../../../api/client.ts";
import { useList } from "../../../api/queries.ts";
import type { Upstream } from "../../../api/types.ts";
import { problemAt } from "../../../parts/editing/field-problem.ts";
import { WholeNumber } from "../../../parts/editing/whole-number.tsx";
import { PlainButton, SmallButton } from "../../../parts/page/buttons.tsx";
import { SmallNote } from "../../../parts/words/note.tsx";
import type { FormTarget, OverflowForm, Span } from "./policy-form.ts";

interface OverflowFieldsProps {
  overflow: OverflowForm;
  /** The upstreams of the model's deployments; empty if the model runs on any upstream that has it. */
  ownUpstreams: readonly string[];
  error: ApiFailure | null;
  change(overflow: OverflowForm): void;
}

const at = "policies.overflow";

export function OverflowFields({ overflow, ownUpstreams, error, change }: OverflowFieldsProps) {
  const set = (changed: Partial<OverflowForm>) => change({ ...overflow, ...changed });
  return (
    <>
      <Targets {...{ overflow, ownUpstreams, error, change }} />
      <div className="model-policy-pair">
        <NumberInput
          label="If the wait exceeds"
          description="Expected wait at the other servers. Leave empty to ignore waiting."
          value={overflow.afterSeconds}
          onChange={(afterSeconds) => set({ afterSeconds })}
          suffix=" s"
          min={0}
          max={86_400}
          allowNegative={false}
          hideControls
          error={problemAt(error, `${at}.after_seconds`)}
        />
        <WholeNumber
          label="If the prompt exceeds"
          description="Leave empty to ignore the prompt length."
          value={overflow.promptTokens}
          onChange={(promptTokens) => set({ promptTokens })}
          suffix=" tokens"
          thousandSeparator=","
          max={1_000_000_000}
          error={problemAt(error, `${at}.prompt_tokens_above`)}
        />
      </div>
      <TagsInput
        label="During these hours (UTC)"
        description="During these hours they are used like any other server. Enter 18:00-06:00, for example, and press Enter after each. Leave empty for no hours."
        value={overflow.hours}
        onChange={(hours) => set({ hours })}
        maxTags={8}
        maxLength={11}
        error={problemAt(error, `${at}.hours`)}
      />
      <Bounds {...{ overflow, error, set }} />
    </>
  );
}

function Targets({ overflow: { to, ...rest }, ownUpstreams, error, change }: OverflowFieldsProps) {
  const known = useList<Upstream>("/v1/admin/upstreams").items.map(({ name }) => name);
  const upstreams = ownUpstreams.length > 0 ? [...new Set(ownUpstreams)] : known;
  const free = upstreams.find((name) => !to.some(({ upstream }) => upstream === name));
  const key = Math.max(-1, ...to.map((one) => one.key)) + 1;
  const add = (upstream: string) =>
    change({ ...rest, to: [...to, { key, upstream, input: "", output: "", otherRates: {}, costOf: null }] });
  const set = (changed: FormTarget) =>
    change({ ...rest, to: to.map((one) => (one.key === changed.key ? changed : one)) });
  const problem = problemAt(error, `${at}.to`);
  return (
    <>
      <SmallNote>
        These servers are used after all others, the cheapest first. Enter what they cost you, in USD per million
        tokens. Defaults to the price of the model.
      </SmallNote>
      {to.map((target, index) => (
        <Target
          key={target.key}
          target={target}
          number={index + 1}
          // An upstream that is gone stays selectable until another is chosen.
          upstreams={[...new Set([...upstreams, target.upstream])]}
          error={error}
          change={set}
          remove={() => change({ ...rest, to: to.filter((one) => one !== target) })}
        />
      ))}
      {to.length === 0 && problem && (
        <Text size="sm" c="var(--mantine-color-error)" role="alert">
          {problem}
        </Text>
      )}
      {free !== undefined && (
        <SmallButton leftSection={<PlusIcon />} onClick={() => add(free)} style={{ alignSelf: "start" }}>
          Add overflow server
        </SmallButton>
      )}
    </>
  );
}

interface TargetProps {
  target: FormTarget;
  number: number;
  upstreams: string[];
  error: ApiFailure | null;
  change(target: FormTarget): void;
  remove(): void;
}

function Target({ target, number, upstreams, error, change, remove }: TargetProps) {
  const path = `${at}.to[${number - 1}]`;
  const cost = (label: string, name: "input" | "output") => (
    <NumberInput
      label={label}
      placeholder={target.costOf === null ? "model price" : "list price"}
      value={target[name]}
      onChange={(usd) => change({ ...target, [name]: usd })}
      prefix="$"
      min={0}
      allowNegative={false}
      hideControls
      error={problemAt(error, `${path}.cost.${name}`)}
    />
  );
  return (
    <div className="model-target-fields">
      <NativeSelect
        label="Overflow to"
        data={upstreams}
        value={target.upstream}
        onChange={(event) => change({ ...target, upstream: event.currentTarget.value })}
        error={problemAt(error, `${path}.upstream`) ?? problemAt(error, `${path}.cost_of`)}
      />
      {cost("Cost of input", "input")}
      {cost("Cost of output", "output")}
      <PlainButton onClick={remove} aria-label={`Remove overflow ${number}`} px="xs">
        <TrashIcon />
      </PlainButton>
    </div>
  );
}

const spans: readonly { value: Span; label: string }[] = [
  { value: "hour", label: "an hour" },
  { value: "day", label: "a day" },
  { value: "week", label: "a week" },
  { value: "month", label: "a month" },
];

interface BoundsProps {
  overflow: OverflowForm;
  error: ApiFailure | null;
  set(changed: Partial<OverflowForm>): void;
}

function Bounds({ overflow, error, set }: BoundsProps) {
  const usd = { prefix: "$", min: 0, max: 1_000_000, allowNegative: false, thousandSeparator: ",", hideControls: true };
  return (
    <div className="model-policy-pair">
      <NumberInput
        {...usd}
        label="Maximum cost per request"
        description="Expected cost of the request. Leave empty for no limit."
        value={overflow.maxUsd}
        onChange={(maxUsd) => set({ maxUsd })}
        error={problemAt(error, `${at}.most_usd_per_request`)}
      />
      <div className="model-policy-spend">
        <NumberInput
          {...usd}
          label="Maximum total cost"
          description="All requests together, per calendar period in UTC. Leave empty for no limit."
          value={overflow.spendUsd}
          onChange={(spendUsd) => set({ spendUsd })}
          error={problemAt(error, `${at}.spend`)}
        />
        <NativeSelect
          aria-label="Maximum total cost, per"
          data={[...spans]}
          value={overflow.spendPer}
          onChange={(event) => set({ spendPer: event.currentTarget.value as Span })}
        />
      </div>
    </div>
  );
}
