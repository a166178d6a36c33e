// Which requests are listed.
import { NativeSelect, Paper, Select, SimpleGrid } from "@mantine/core";
import type { Query } from "../../api/client.ts";
import type { Names } from "../../api/names.ts";
import { useRead } from "../../api/queries.ts";
import type { ModelList } from "../../api/types.ts";
import { oneOf } from "../../parts/address.ts";
import { anyTime, type Span, TimeRange } from "../../parts/time-range.tsx";
import { KeyFilter } from "../usage/key-filter.tsx";
import { outcomeNames, outcomes } from "./outcome.tsx";

/** In the address. */
export const noFilter = { model: "", key: "", app: "", outcome: "", stream: "", ...anyTime };
export type RequestFilter = Readonly<Record<keyof typeof noFilter, string>>;

/** As the server takes it: what it would refuse is left out. */
export function queryOf({ model, key, app, outcome, stream }: RequestFilter, span: Span): Query {
  return {
    ...{ model, key, app, ...span },
    outcome: oneOf(["", ...outcomes], outcome),
    stream: oneOf(["", "true", "false"], stream),
  };
}

interface RequestFiltersProps {
  filter: RequestFilter;
  change(changes: Partial<RequestFilter>): void;
  names: Names;
}

export function RequestFilters({ filter, change, names }: RequestFiltersProps) {
  const models = useRead<ModelList>("/v1/models");
  const { model, key, app, outcome, stream, range, start, end } = filter;
  const modelIds = new Set([...(model ? [model] : []), ...(models.data?.data.map(({ id }) => id) ?? [])]);
  const apps =
    names.apps.some(({ value }) => value === app) || app === "" ? names.apps : [known(app, names), ...names.apps];
  return (
    <Paper withBorder p="sm" component="section" aria-label="Filters">
      <SimpleGrid cols={{ base: 2, sm: 3, lg: 6 }} spacing="sm" verticalSpacing="xs">
        <TimeRange value={{ range, start, end }} change={change} />
        <Select
          label="Model"
          {...{ size: "xs", placeholder: "All", clearable: true, searchable: true, limit: 100 }}
          value={model || null}
          data={[...modelIds]}
          onChange={(chosen) => change({ model: chosen ?? "" })}
          clearButtonProps={{ "aria-label": "All models" }}
          nothingFoundMessage="No such model"
        />
        <KeyFilter value={key || undefined} nameOf={names.key} choose={(chosen) => change({ key: chosen })} />
        <Select
          label="App"
          {...{ size: "xs", placeholder: "All", clearable: true, searchable: true, limit: 100 }}
          value={app || null}
          data={[...apps]}
          onChange={(chosen) => change({ app: chosen ?? "" })}
          clearButtonProps={{ "aria-label": "All apps" }}
          nothingFoundMessage="No such app"
        />
        <NativeSelect
          label="Outcome"
          size="xs"
          value={outcome}
          onChange={(event) => change({ outcome: event.currentTarget.value })}
          data={[{ value: "", label: "All" }, ...outcomes.map((value) => ({ value, label: outcomeNames[value] }))]}
        />
        <NativeSelect
          label="Streamed"
          size="xs"
          value={stream}
          onChange={(event) => change({ stream: event.currentTarget.value })}
          data={[
            { value: "", label: "Either way" },
            { value: "true", label: "Streamed" },
            { value: "false", label: "At once" },
          ]}
        />
      </SimpleGrid>
    </Paper>
  );
}

function known(app: string, names: Names) {
  return { value: app, label: names.app(app) };
}
