// The apps that the account registered in an environment.
import { Code, Stack, Text } from "@mantine/core";
import { useLocation } from "wouter";
import { useList } from "../../api/queries.ts";
import type { App } from "../../api/types.ts";
import { AddButton } from "../../parts/page/buttons.tsx";
import { Empty } from "../../parts/page/empty.tsx";
import { PlainLink } from "../../parts/page/links.tsx";
import type { Column } from "../../parts/table/column.ts";
import { LongTable } from "../../parts/table/long-table.tsx";
import { timeColumn } from "../../parts/table/time-column.tsx";
import { SmallNote } from "../../parts/words/note.tsx";
import { appScopes } from "./app-scopes.ts";
import { kinds } from "./app-settings.tsx";

const columns: Column<App>[] = [
  {
    name: "name",
    head: "App",
    cell: (app) => (
      <Stack gap={0}>
        <PlainLink href={`/apps/${app.id}`} fw={600} lineClamp={1}>
          {app.name}
        </PlainLink>
        <SmallNote hiddenFrom="sm">{kinds[app.type]}</SmallNote>
        <SmallNote ff="monospace" truncate visibleFrom="sm">
          {app.client_id}
        </SmallNote>
      </Stack>
    ),
  },
  { name: "type", head: "Kind", cell: ({ type }) => kinds[type], wideOnly: true, width: "8rem" },
  {
    name: "scopes",
    head: "May request",
    cell: ({ scopes }) => (
      <Text size="xs" lineClamp={2}>
        {appScopes.flatMap(({ scope, title }) => (scopes.includes(scope) ? [title] : [])).join(", ")}
      </Text>
    ),
    wideOnly: true,
    width: "11rem",
  },
  timeColumn({ name: "created", head: "Registered", width: "10rem", at: ({ created_at }) => created_at }),
];

export function MyApps({ create }: { create(): void }) {
  const [, navigate] = useLocation();
  const listing = useList<App>("/v1/apps", { limit: 100 });
  return (
    <LongTable
      label="My apps"
      listing={listing}
      columns={columns}
      keyOf={({ id }) => id}
      rowHeight={60}
      choose={({ id }) => navigate(`/apps/${id}`)}
      empty={
        <Empty title="Register the first app" action={<AddButton onClick={create}>Register an app</AddButton>}>
          An app signs people in with their account on this server and uses models on their behalf. An app is an OAuth
          2.0 client, so any OAuth library works. From a terminal: <Code>npx headrace apps create my-app</Code>
        </Empty>
      }
    />
  );
}
