// Which events are listed.
import { Paper, Select, SimpleGrid, TextInput } from "@mantine/core";
import { useDebouncedCallback } from "@mantine/hooks";
import { useState } from "react";
import { anyTime, TimeRange } from "../../parts/time-range.tsx";
import { actionGroups } from "./action-names.ts";
import type { AuditNames } from "./audit-names.ts";

/** In the address. */
export const noFilter = { action: "", target: "", account: "", ...anyTime };
export type AuditFilter = Readonly<Record<keyof typeof noFilter, string>>;

const mostIdLength = 200;

interface AuditFiltersProps {
  filter: AuditFilter;
  change(changes: Partial<AuditFilter>): void;
  names: AuditNames;
  isOfAll: boolean;
}

export function AuditFilters({ filter, change, names, isOfAll }: AuditFiltersProps) {
  const { action, target, account, range, start, end } = filter;
  const isListed = account === "" || names.accounts.some(({ value }) => value === account);
  const accounts = isListed ? names.accounts : [{ value: account, label: names.account(account) }, ...names.accounts];
  return (
    <Paper withBorder p="sm" component="section" aria-label="Filters">
      <SimpleGrid cols={{ base: 1, xs: 2, lg: isOfAll ? 4 : 3 }} spacing="sm" verticalSpacing="xs">
        <TimeRange value={{ range, start, end }} change={change} />
        <Select
          label="What happened"
          {...{ size: "xs", placeholder: "Anything", clearable: true, searchable: true }}
          value={action || null}
          data={actionGroups(isOfAll)}
          onChange={(chosen) => change({ action: chosen ?? "" })}
          clearButtonProps={{ "aria-label": "Whatever happened" }}
          nothingFoundMessage="No such action"
        />
        <Target key={target} value={target} change={(text) => change({ target: text })} />
        {isOfAll && (
          <Select
            label="Account"
            {...{ size: "xs", placeholder: "All", clearable: true, searchable: true, limit: 100 }}
            value={account || null}
            data={[...accounts]}
            onChange={(chosen) => change({ account: chosen ?? "" })}
            clearButtonProps={{ "aria-label": "All accounts" }}
            nothingFoundMessage="No such account"
          />
        )}
      </SimpleGrid>
    </Paper>
  );
}

function Target({ value, change }: { value: string; change(text: string): void }) {
  const [text, setText] = useState(value);
  const tell = useDebouncedCallback((wanted: string) => change(wanted), { delay: 400, flushOnUnmount: false });
  return (
    <TextInput
      label="Of what"
      type="search"
      size="xs"
      placeholder="Id of a key, member, app …"
      value={text}
      maxLength={mostIdLength}
      onChange={({ currentTarget: { value: typed } }) => {
        setText(typed);
        tell(typed.trim());
      }}
    />
  );
}
