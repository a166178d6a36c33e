// The filters of the statement: the month, the grouping, and for operators the account.
import { Button, Group, Paper } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { listAll } from "../../api/names.ts";
import { nowSeconds } from "../../api/server-time.ts";
import { useSession } from "../../api/session.tsx";
import type { Account } from "../../api/types.ts";
import { Choice } from "../../parts/editing/choice.tsx";
import { Note } from "../../parts/words/note.tsx";
import { allAccounts, groupings, monthName, recentMonths, type Said } from "./statement-ask.ts";

interface StatementFiltersProps {
  said: Said;
  month: string;
  change(changes: Partial<Said>): void;
}

export function StatementFilters({ said, month, change }: StatementFiltersProps) {
  const { isOperator } = useSession();
  const listed = recentMonths(nowSeconds());
  const months = listed.includes(month) ? listed : [month, ...listed];
  const part = [said.key, said.person, said.app, said.tag].filter((value) => value !== "");
  return (
    <Paper withBorder p="md" component="section" aria-label="Filters" className="screen-only">
      <Group gap="sm" align="end">
        <Choice
          label="Month"
          size="xs"
          w="11rem"
          searchable
          allowDeselect={false}
          value={month}
          data={months.map((value) => ({ value, label: monthName(value) }))}
          onChange={(chosen) => chosen && change({ month: chosen === listed[0] ? "" : chosen })}
        />
        {said.account !== allAccounts && (
          <Choice
            label="Group by"
            size="xs"
            w="11rem"
            allowDeselect={false}
            value={groupings.some(({ value }) => value === said.by) ? said.by : "none"}
            data={[...groupings]}
            onChange={(chosen) => chosen && change({ by: chosen })}
          />
        )}
        {isOperator && <AccountChoice account={said.account} change={change} />}
        {part.length > 0 && (
          <Group gap="xs">
            <Note>Of {part.join(", ")} alone.</Note>
            <Button size="xs" variant="default" onClick={() => change({ key: "", person: "", app: "", tag: "" })}>
              Show all
            </Button>
          </Group>
        )}
      </Group>
    </Paper>
  );
}

function AccountChoice({ account, change }: { account: string; change(changes: Partial<Said>): void }) {
  const { session } = useSession();
  const { data } = useQuery({
    queryKey: ["/v1/admin/accounts", "all"],
    queryFn: ({ signal }) => listAll<Account>("/v1/admin/accounts", signal),
    staleTime: 60_000,
  });
  const others = data?.filter(({ id }) => id !== session.account.id) ?? [];
  const named = account === "" || account === allAccounts || others.some(({ id }) => id === account);
  return (
    <Choice
      label="Account"
      size="xs"
      w="15rem"
      searchable
      limit={100}
      allowDeselect={false}
      value={account === session.account.id ? "own" : account === "" ? "own" : account}
      data={[
        { value: "own", label: `${session.account.name} (own)` },
        { value: allAccounts, label: "All accounts" },
        ...others.map(({ id, name }) => ({ value: id, label: name })),
        ...(named || account === session.account.id ? [] : [{ value: account, label: account }]),
      ]}
      onChange={(chosen) => chosen && change({ account: chosen === "own" ? "" : chosen, key: "", person: "" })}
    />
  );
}
