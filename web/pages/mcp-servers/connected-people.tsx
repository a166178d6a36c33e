// The people who connected their own account at an MCP server, without tokens or upstream identities.
import { Group, Stack } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { listAll, shortened } from "../../api/names.ts";
import { useList } from "../../api/queries.ts";
import type { Account, ConnectedPerson, Person } from "../../api/types.ts";
import { ShowMore } from "../../parts/page/buttons.tsx";
import { Failure } from "../../parts/page/failure.tsx";
import { PlainLink } from "../../parts/page/links.tsx";
import { DrawerPart } from "../../parts/page/section.tsx";
import { Waiting } from "../../parts/page/waiting.tsx";
import { Ago } from "../../parts/words/ago.tsx";
import { Note, SmallNote } from "../../parts/words/note.tsx";
import { State } from "../../parts/words/state.tsx";

export function ConnectedPeople({ server }: { server: string }) {
  const listing = useList<ConnectedPerson>("/v1/admin/tools/connections", { server, limit: 20 });
  const { data: names } = useQuery({
    queryKey: ["/v1/admin/people", "connected"],
    queryFn: ({ signal }) => loadNames(signal),
    enabled: listing.items.length > 0,
    staleTime: 60_000,
  });
  const { items, error, isPending, refetch } = listing;
  return (
    <DrawerPart title="Connected accounts">
      {error && <Failure error={error} retry={refetch} />}
      {isPending && !error && <Waiting heights={[36]} />}
      {!isPending && items.length === 0 && (
        <Note>No connected accounts yet. People connect their accounts on the page Tools.</Note>
      )}
      <Stack component="ul" gap="xs" m={0} p={0} className="definitions" aria-label="Connected accounts">
        {items.map(({ id, person_id: person, account_id: account, state, connected_at: since, last_used_at: used }) => (
          <li key={id}>
            <Group justify="space-between" gap="xs" wrap="nowrap">
              <div>
                <PlainLink href={`/admin/people?person=${encodeURIComponent(person)}`}>
                  {names?.people.get(person) ?? shortened(person)}
                </PlainLink>
                <SmallNote>
                  {names?.accounts.get(account) ?? shortened(account)}; connected <Ago seconds={since} />, last used{" "}
                  <Ago seconds={used} />
                </SmallNote>
              </div>
              {state === "connected" ? <State kind="good">Connected</State> : <State kind="bad">Not working</State>}
            </Group>
          </li>
        ))}
      </Stack>
      <ShowMore listing={listing} />
    </DrawerPart>
  );
}

async function loadNames(signal: AbortSignal) {
  const [people, accounts] = await Promise.all([
    listAll<Person>("/v1/admin/people", signal),
    listAll<Account>("/v1/admin/accounts", signal),
  ]);
  return {
    people: new Map(people.map(({ id, name, email }) => [id, name || email])),
    accounts: new Map(accounts.map(({ id, name }) => [id, name])),
  };
}
