// The form of a model's policies; each is off until it is switched on.
import { Stack, Switch } from "@mantine/core";
import type { ReactNode } from "react";
import type { ApiFailure } from "../../../api/client.ts";
import { useRead } from "../../../api/queries.ts";
import type { GuardrailList } from "../../../api/types.ts";
import { problemAt, problemOf } from "../../../parts/editing/field-problem.ts";
import { MoreSettings } from "../../../parts/editing/more-settings.tsx";
import { MultiChoice } from "../../../parts/editing/multi-choice.tsx";
import { CacheFields } from "./cache-fields.tsx";
import { OverflowFields } from "./overflow-fields.tsx";
import { newCache, newOverflow, type PoliciesForm } from "./policy-form.ts";
import { ShadowFields, SplitFields } from "./share-fields.tsx";

export interface PolicyFieldsProps {
  policies: PoliciesForm;
  /** The upstreams of the model's deployments; empty if the model runs on any upstream that has it. */
  places: readonly string[];
  /** The ids of the other models. */
  ids: readonly string[];
  error: ApiFailure | null;
  change(policies: PoliciesForm): void;
}

export function PolicyFields({ policies, places, ids, error, change }: PolicyFieldsProps) {
  const { continuation, overflow, cache, guardrails, shadow, split } = policies;
  const set = (changed: Partial<PoliciesForm>) => change({ ...policies, ...changed });
  const hasSome =
    continuation || overflow !== null || cache !== null || shadow !== null || guardrails.length + split.length > 0;
  const common = { ids, error };
  return (
    <MoreSettings label="Policies" shown={hasSome} hasProblem={problemOf(error, "policies") !== undefined}>
      <Switch
        label="Continue cut streams"
        description="If a server cuts a stream, another server continues the text, where an exact continuation is possible."
        checked={continuation}
        onChange={(event) => set({ continuation: event.currentTarget.checked })}
      />
      <Policy
        label="Overflow"
        description="Some servers, such as a cloud provider, are used only if the other servers are busy, or under conditions that you set."
        isOn={overflow !== null}
        change={(isOn) => set({ overflow: isOn ? newOverflow : null })}
      >
        {overflow && (
          <OverflowFields {...{ overflow, ownUpstreams: places, error }} change={(one) => set({ overflow: one })} />
        )}
      </Policy>
      <Policy
        label="Response cache"
        description="Stores responses and returns them when the same account repeats a request."
        isOn={cache !== null}
        change={(isOn) => set({ cache: isOn ? newCache : null })}
      >
        {cache && <CacheFields {...common} cache={cache} change={(one) => set({ cache: one })} />}
      </Policy>
      <Guardrails guardrails={guardrails} error={error} change={(names) => set({ guardrails: names })} />
      <Policy
        label="Shadow"
        description="A second model also receives a share of the requests. Its answers are only for comparison and reach no client."
        isOn={shadow !== null}
        change={(isOn) => set({ shadow: isOn ? { key: 0, model: "", percent: 5 } : null })}
      >
        {shadow && <ShadowFields {...common} shadow={shadow} change={(one) => set({ shadow: one })} />}
      </Policy>
      <Policy
        label="Split"
        description="Other models answer a share of the requests. This model answers the rest."
        isOn={split.length > 0}
        change={(isOn) => set({ split: isOn ? [{ key: 0, model: "", percent: 10 }] : [] })}
      >
        {split.length > 0 && <SplitFields {...common} split={split} change={(shares) => set({ split: shares })} />}
      </Policy>
    </MoreSettings>
  );
}

interface PolicyProps {
  label: string;
  description: string;
  isOn: boolean;
  change(isOn: boolean): void;
  children: ReactNode;
}

function Policy({ label, description, isOn, change, children }: PolicyProps) {
  return (
    <Stack gap="sm">
      <Switch
        label={label}
        description={description}
        checked={isOn}
        onChange={(event) => change(event.currentTarget.checked)}
      />
      {isOn && (
        <Stack gap="sm" className="model-policy" role="group" aria-label={label}>
          {children}
        </Stack>
      )}
    </Stack>
  );
}

interface GuardrailsProps {
  guardrails: string[];
  error: ApiFailure | null;
  change(guardrails: string[]): void;
}

function Guardrails({ guardrails, error, change }: GuardrailsProps) {
  const known = useRead<GuardrailList>("/v1/admin/guardrails").data?.data.map(({ name }) => name);
  const data = [...new Set([...(known ?? []), ...guardrails])].map((name) => ({ value: name, label: name }));
  return (
    <MultiChoice
      label="Guardrails"
      description={
        known !== undefined && data.length === 0
          ? "Guardrails check requests and answers. None are configured. Add some under guardrails in headrace.yaml."
          : "The chosen guardrails check requests and answers in this order. Leave empty for no checks."
      }
      data={data}
      value={guardrails}
      onChange={change}
      maxValues={16}
      comboboxProps={{ keepMounted: false }}
      disabled={data.length === 0}
      error={problemAt(error, "policies.guardrails")}
    />
  );
}
