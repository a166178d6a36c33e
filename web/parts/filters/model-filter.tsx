// The choice of one model among those that may be used; one that is in the address may be gone by now.
import { useRead } from "../../api/queries.ts";
import type { ModelList } from "../../api/types.ts";
import { ChoiceFilter } from "./choice-filter.tsx";

interface ModelFilterProps {
  /** Empty: all. */
  value: string;
  choose(id: string): void;
}

export function ModelFilter({ value, choose }: ModelFilterProps) {
  const models = useRead<ModelList>("/v1/models");
  // What was asked for by an alias counts as the model's own.
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
