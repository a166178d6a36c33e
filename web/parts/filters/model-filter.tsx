// A filter that selects one of the available models; the address may name a model that is gone.
import { useRead } from "../../api/queries.ts";
import type { ModelList } from "../../api/types.ts";
import { ChoiceFilter } from "./choice-filter.tsx";

interface ModelFilterProps {
  /** The id of the chosen model; empty means all. */
  value: string;
  choose(id: string): void;
}

export function ModelFilter({ value, choose }: ModelFilterProps) {
  const models = useRead<ModelList>("/v1/models");
  // Requests for an alias count as requests for its model.
  const listed = models.data?.data.filter(({ alias_of: model }) => model === undefined) ?? [];
  const ids = new Set([...(value ? [value] : []), ...listed.map(({ id }) => id)]);
  return (
    <ChoiceFilter
      {...{ label: "Model", value, choose, data: [...ids] }}
      all={{ short: "All", long: "All models" }}
      nothing="No matching model"
    />
  );
}
