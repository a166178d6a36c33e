// The filters of the audit log.
import { Paper, SimpleGrid } from "@mantine/core";
import { ChoiceFilter } from "../../parts/filters/choice-filter.tsx";
import { SearchField } from "../../parts/filters/search-field.tsx";
import { anyTime, TimeRange } from "../../parts/filters/time-range.tsx";
import { actionGroups } from "./action-names.ts";
import type { AuditNames } from "./audit-names.ts";

/** The filter parameters in the page's address. */
export const noFilter = { action: "", target: "", account: "", ...anyTime };
type AuditFilter = Readonly<Record<keyof typeof noFilter, string>>;

const maxIdLength = 200;

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
        <ChoiceFilter
          {...{ label: "Event", value: action, data: actionGroups(isOfAll) }}
          all={{ short: "All", long: "All events" }}
          nothing="No matching event"
          choose={(chosen) => change({ action: chosen })}
        />
        <SearchField
          label="Object"
          size="xs"
          placeholder="Full id of a key, member, app …"
          value={target}
          maxLength={maxIdLength}
          change={(text) => change({ target: text })}
        />
        {isOfAll && (
          <ChoiceFilter
            {...{ label: "Account", value: account, data: [...accounts] }}
            all={{ short: "All", long: "All accounts" }}
            nothing="No matching account"
            choose={(chosen) => change({ account: chosen })}
          />
        )}
      </SimpleGrid>
    </Paper>
  );
}
