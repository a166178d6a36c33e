// Resolves the ids in audit events to names; for operators also those of accounts and people.
import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { listAll, shortened, useNames } from "../../api/names.ts";
import { useSliced } from "../../api/queries.ts";
import { useSession } from "../../api/session.tsx";
import type { Account, Node, Person } from "../../api/types.ts";

export interface AuditNames {
  key(id: string): string;
  app(id: string): string;
  person(id: string): string;
  account(id: string): string;
  node(id: string): string;
  /** True while the names are loading; ids are shown shortened until then. */
  isPending: boolean;
  /** The accounts in the order of their names, for a select field. */
  accounts: readonly { value: string; label: string }[];
}

type OfAll = Awaited<ReturnType<typeof loadNames>>;

const nothing: OfAll = { people: new Map(), accounts: new Map(), nodes: new Map() };

export function useAuditNames(isOfAll: boolean): AuditNames {
  const names = useNames(true);
  const own = useSession().session.accounts;
  const ofAll = useSliced(
    useQuery({
      queryKey: ["/v1/admin/accounts", "names"],
      queryFn: ({ signal }) => loadNames(signal),
      enabled: isOfAll,
      staleTime: 60_000,
    }),
  );
  const data = ofAll.data ?? nothing;
  const isPending = names.isPending || (isOfAll && ofAll.isPending);
  return useMemo(() => {
    const { people, accounts, nodes } = data;
    return {
      isPending,
      key: names.key,
      app: names.app,
      person: (id) => people.get(id) ?? names.person(id),
      account: (id) => accounts.get(id) ?? own.find((account) => account.id === id)?.name ?? shortened(id),
      node: (id) => nodes.get(id) ?? shortened(id),
      accounts: [...accounts].map(([value, label]) => ({ value, label })),
    };
  }, [names, data, own, isPending]);
}

async function loadNames(signal: AbortSignal) {
  const [people, accounts, nodes] = await Promise.all([
    listAll<Person>("/v1/admin/people", signal),
    listAll<Account>("/v1/admin/accounts", signal),
    listAll<Node>("/v1/admin/nodes", signal),
  ]);
  return {
    people: new Map(people.map(({ id, name, email }) => [id, name || email])),
    accounts: new Map(accounts.map(({ id, name }) => [id, name])),
    nodes: new Map(nodes.map(({ id, name }) => [id, name])),
  };
}
