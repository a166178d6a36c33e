// Which answers of a model are given again, for how long, and at what price.
import { NativeSelect, NumberInput, Select } from "@mantine/core";
import type { ApiFailure } from "../../../api/client.ts";
import { problemAt } from "../../../parts/editing/field-problem.ts";
import { WholeNumber } from "../../../parts/editing/whole-number.tsx";
import type { CachedRequests, CacheForm } from "./policy-form.ts";
import { cachedWords } from "./policy-words.ts";

interface CacheFieldsProps {
  cache: CacheForm;
  /** The other models. */
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
        label="Which requests"
        data={choices}
        value={cache.requests}
        onChange={(event) => set({ requests: event.currentTarget.value as CachedRequests })}
        error={problemAt(error, `${at}.requests`)}
      />
      <div className="model-policy-pair">
        <WholeNumber
          label="Kept for"
          description="From when it was answered. Empty: an hour."
          value={cache.ttlSeconds}
          onChange={(ttlSeconds) => set({ ttlSeconds })}
          suffix=" s"
          thousandSeparator=","
          max={2_592_000}
          error={problemAt(error, `${at}.ttl_seconds`)}
        />
        <NumberInput
          label="Price of an answer given again"
          description="Of what it cost the first time. 0: nothing."
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
          label="Compare by meaning with"
          description="An embedding model. Empty: only the very same request."
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
            label="The same from"
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
