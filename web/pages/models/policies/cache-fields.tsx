// The response cache of a model: which answers are reused, for how long, and at what price.
import { NativeSelect, NumberInput, Select } from "@mantine/core";
import type { ApiFailure } from "../../../api/client.ts";
import { problemAt } from "../../../parts/editing/field-problem.ts";
import { WholeNumber } from "../../../parts/editing/whole-number.tsx";
import type { CachedRequests, CacheForm } from "./policy-form.ts";
import { cachedWords } from "./policy-words.ts";

interface CacheFieldsProps {
  cache: CacheForm;
  /** The ids of the other models. */
  ids: readonly string[];
  error: ApiFailure | null;
  change(cache: CacheForm): void;
}

const at = "policies.cache";
const choices = Object.entries(cachedWords).map(([value, label]) => ({ value, label }));

export function CacheFields({ cache, ids, error, change }: CacheFieldsProps) {
  const set = (changed: Partial<CacheForm>) => change({ ...cache, ...changed });
  return (
    <>
      <NativeSelect
        label="Cache responses to"
        data={choices}
        value={cache.requests}
        onChange={(event) => set({ requests: event.currentTarget.value as CachedRequests })}
        error={problemAt(error, `${at}.requests`)}
      />
      <div className="model-policy-pair">
        <WholeNumber
          label="Lifetime"
          description="Counted from the first answer. Defaults to one hour."
          value={cache.ttlSeconds}
          onChange={(ttlSeconds) => set({ ttlSeconds })}
          suffix=" s"
          thousandSeparator=","
          max={2_592_000}
          error={problemAt(error, `${at}.ttl_seconds`)}
        />
        <NumberInput
          label="Price of a cached response"
          description="Share of the original cost. 0 means free."
          value={cache.price}
          onChange={(price) => set({ price })}
          suffix=" %"
          min={0}
          max={100}
          allowNegative={false}
          hideControls
          error={problemAt(error, `${at}.price_factor`)}
        />
      </div>
      <div className="model-policy-pair">
        <Select
          label="Semantic matching with"
          description="An embedding model. Leave empty to match only identical requests."
          data={[...new Set([...ids, ...(cache.embedder === "" ? [] : [cache.embedder])])]}
          value={cache.embedder === "" ? null : cache.embedder}
          onChange={(embedder) => set({ embedder: embedder ?? "" })}
          searchable
          clearable
          comboboxProps={{ keepMounted: false }}
          error={problemAt(error, `${at}.semantic.model`)}
        />
        {cache.embedder !== "" && (
          <NumberInput
            label="Minimum similarity"
            description="Cosine similarity, up to 1."
            value={cache.threshold}
            onChange={(threshold) => set({ threshold })}
            min={0}
            max={1}
            step={0.01}
            allowNegative={false}
            hideControls
            error={problemAt(error, `${at}.semantic.threshold`)}
          />
        )}
      </div>
    </>
  );
}
