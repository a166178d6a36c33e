// The filters of the request log.
import { NativeSelect, Paper, SimpleGrid, TextInput } from "@mantine/core";
import type { Query } from "../../api/client.ts";
import type { Names } from "../../api/names.ts";
import { useRead } from "../../api/queries.ts";
import type { UpstreamList } from "../../api/types.ts";
import { AccountFilter, withChosen } from "../../parts/filters/account-filter.tsx";
import { ChoiceFilter } from "../../parts/filters/choice-filter.tsx";
import { KeyFilter } from "../../parts/filters/key-filter.tsx";
import { ModelFilter } from "../../parts/filters/model-filter.tsx";
import { TagFilter } from "../../parts/filters/tag-filter.tsx";
import { anyTime, type Span, TimeRange } from "../../parts/filters/time-range.tsx";
import { oneOf } from "../../parts/page/address.ts";
import { outcomeLooks, outcomes } from "./outcome.tsx";

/** The filter parameters in the page's address. */
export const noFilter = {
  ...{ model: "", key: "", app: "", tag: "", outcome: "", stream: "", ...anyTime },
  // The filters of operators. `of` chooses one account or all accounts, and the other filters narrow this choice.
  ...{ of: "", account: "", upstream: "" },
};
const tagPattern = /^[A-Za-z0-9][\w.:@/=+-]{0,127}$/;
type RequestFilter = Readonly<Record<keyof typeof noFilter, string>>;

/** Returns the API query without values that the server would refuse. */
export function queryOf(filter: RequestFilter, span: Span, isAll: boolean): Query {
  const { model, key, app, tag, outcome, stream, account, upstream } = filter;
  return {
    ...(isAll ? { account, upstream, key, app } : { key, app, tag: tagPattern.test(tag) ? tag : "" }),
    ...{ model, ...span },
    outcome: oneOf(["", ...outcomes], outcome),
    stream: oneOf(["", "true", "false"], stream),
  };
}

interface RequestFiltersProps {
  filter: RequestFilter;
  change(changes: Partial<RequestFilter>): void;
  names: Names;
  /** True if the page shows all accounts. */
  isAll: boolean;
}

export function RequestFilters({ filter, change, names, isAll }: RequestFiltersProps) {
  const { model, key, app, tag, outcome, stream, range, start, end } = filter;
  const apps =
    names.apps.some(({ value }) => value === app) || app === "" ? names.apps : [known(app, names), ...names.apps];
  return (
    <Paper withBorder p="sm" component="section" aria-label="Filters">
      <SimpleGrid cols={{ base: 2, sm: 4, lg: 7 }} spacing="sm" verticalSpacing="xs">
        <TimeRange value={{ range, start, end }} change={change} />
        <ModelFilter value={model} choose={(chosen) => change({ model: chosen })} />
        {isAll ? (
          <OperatorFilters filter={filter} change={change} />
        ) : (
          <>
            <KeyFilter value={key || undefined} nameOf={names.key} choose={(chosen) => change({ key: chosen })} />
            <ChoiceFilter
              {...{ label: "App", value: app, data: [...apps] }}
              all={{ short: "All", long: "All apps" }}
              nothing="No matching app"
              choose={(chosen) => change({ app: chosen })}
            />
            <TagFilter value={tag} choose={(chosen) => change({ tag: chosen })} />
          </>
        )}
        <NativeSelect
          label="Outcome"
          size="xs"
          value={outcome}
          onChange={(event) => change({ outcome: event.currentTarget.value })}
          data={[{ value: "", label: "All" }, ...outcomes.map((value) => ({ value, label: outcomeLooks[value].name }))]}
        />
        <NativeSelect
          label="Streamed"
          size="xs"
          value={stream}
          onChange={(event) => change({ stream: event.currentTarget.value })}
          data={[
            { value: "", label: "Any" },
            { value: "true", label: "Streamed" },
            { value: "false", label: "Not streamed" },
          ]}
        />
      </SimpleGrid>
    </Paper>
  );
}

function OperatorFilters({
  filter: { account, upstream, key },
  change,
}: Pick<RequestFiltersProps, "filter" | "change">) {
  const upstreams = useRead<UpstreamList>("/v1/admin/upstreams");
  return (
    <>
      <AccountFilter value={account} choose={(chosen) => change({ account: chosen })} />
      <ChoiceFilter
        {...{ label: "Upstream", value: upstream }}
        data={withChosen(
          upstream,
          upstreams.data?.data.map(({ name }) => ({ value: name, label: name })),
        )}
        all={{ short: "All", long: "All upstreams" }}
        nothing="No matching upstream"
        choose={(chosen) => change({ upstream: chosen })}
      />
      <TextInput
        label="Key id"
        size="xs"
        placeholder="All"
        value={key}
        onChange={(event) => change({ key: event.currentTarget.value.trim() })}
      />
    </>
  );
}

function known(app: string, names: Names) {
  return { value: app, label: names.app(app) };
}
