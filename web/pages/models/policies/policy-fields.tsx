// The policies of a model as they are set: each off until it is switched on.
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
  /** Names of the upstreams of its places; none where it runs wherever it is found. */
  places: readonly string[];
  /** The other models. */
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
        description="A stream that its server cuts goes on at another place, where the text can be continued exactly."
        checked={continuation}
        onChange={(event) => set({ continuation: event.currentTarget.checked })}
      />
      <Policy
        label="Overflow"
        description="Some places, such as a cloud, are asked only where the others keep requests waiting, or as you say."
        isOn={overflow !== null}
        change={(isOn) => set({ overflow: isOn ? newOverflow : null })}
      >
        {overflow && <OverflowFields {...{ overflow, places, error }} change={(one) => set({ overflow: one })} />}
      </Policy>
      <Policy
        label="Give answers again"
        description="An answer is kept, and given again to the same account for the same request."
        isOn={cache !== null}
        change={(isOn) => set({ cache: isOn ? newCache : null })}
      >
        {cache && <CacheFields {...common} cache={cache} change={(one) => set({ cache: one })} />}
      </Policy>
      <Guardrails guardrails={guardrails} error={error} change={(names) => set({ guardrails: names })} />
      <Policy
        label="Shadow"
        description="Another model gets a share of the requests as well. Nobody sees its answers; operators compare them."
        isOn={shadow !== null}
        change={(isOn) => set({ shadow: isOn ? { key: 0, model: "", percent: 5 } : null })}
      >
        {shadow && <ShadowFields {...common} shadow={shadow} change={(one) => set({ shadow: one })} />}
      </Policy>
      <Policy
        label="Split"
        description="Other models answer a share of the requests in its place. The rest stays with it."
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
          ? "They look at requests and answers. There are none: add some under guardrails in headrace.yaml."
          : "They look at its requests and answers, in this order. None chosen: nothing does."
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
