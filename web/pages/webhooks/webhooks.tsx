// A list of webhooks, and one of them in a drawer, named by the address of the page.
import { Anchor } from "@mantine/core";
import { useSearchParams } from "wouter";
import { useList } from "../../api/queries.ts";
import type { Webhook } from "../../api/types.ts";
import { FormDrawer } from "../../parts/editing/form-drawer.tsx";
import { AddButton } from "../../parts/page/buttons.tsx";
import { Empty } from "../../parts/page/empty.tsx";
import { Page } from "../../parts/page/page.tsx";
import type { Column } from "../../parts/table/column.ts";
import { LongTable } from "../../parts/table/long-table.tsx";
import { Ago } from "../../parts/words/ago.tsx";
import { SmallNote } from "../../parts/words/note.tsx";
import { State } from "../../parts/words/state.tsx";
import { CreateWebhook } from "./create-webhook.tsx";
import type { WebhookKind } from "./webhook-kind.ts";
import { WebhookView } from "./webhook-view.tsx";

interface WebhooksProps {
  kind: WebhookKind;
  title: string;
  about: string;
}

export function Webhooks({ kind, title, about }: WebhooksProps) {
  const [search, setSearch] = useSearchParams();
  const listing = useList<Webhook>(kind.path);
  const chosen = listing.items.find(({ id }) => id === search.get("webhook"));
  const choose = ({ id }: Pick<Webhook, "id">) => setSearch({ webhook: id });
  const close = () => setSearch({});
  const add = <AddButton onClick={() => setSearch({ new: "" })}>Add a webhook</AddButton>;
  return (
    <Page title={title} about={about} actions={listing.items.length > 0 && add}>
      <LongTable
        label={title}
        listing={listing}
        columns={columnsOf(choose)}
        keyOf={({ id }) => id}
        rowHeight={60}
        choose={choose}
        empty={
          <Empty title="No webhooks yet" action={add}>
            Each event is sent as JSON and signed with the webhook's secret. If the receiver is unavailable, deliveries
            are retried for three days.
          </Empty>
        }
      />
      <FormDrawer of={chosen} title={() => "Webhook"} size="lg" close={close}>
        {(webhook) => <WebhookView key={webhook.id} {...{ kind, webhook, close }} />}
      </FormDrawer>
      <CreateWebhook kind={kind} opened={search.has("new")} close={close} show={choose} />
    </Page>
  );
}

function columnsOf(choose: (webhook: Webhook) => void): Column<Webhook>[] {
  return [
    {
      name: "url",
      head: "Address",
      cell: (webhook) => (
        <>
          <Anchor
            component="button"
            type="button"
            size="sm"
            fw={500}
            ta="left"
            style={{ overflowWrap: "anywhere" }}
            onClick={() => choose(webhook)}
          >
            {webhook.url}
          </Anchor>
          {webhook.description !== "" && <SmallNote>{webhook.description}</SmallNote>}
        </>
      ),
    },
    {
      name: "events",
      head: "Events",
      wideOnly: true,
      cell: ({ events }) => (events.length === 0 ? "All" : events.join(", ")),
    },
    { name: "state", head: "Status", width: "9rem", cell: (webhook) => <WebhookState webhook={webhook} /> },
    { name: "created", head: "Added", wideOnly: true, width: "9rem", cell: (one) => <Ago seconds={one.created_at} /> },
  ];
}

function WebhookState({ webhook: { enabled, disabled_reason: reason } }: { webhook: Webhook }) {
  if (enabled) return <State kind="good">Enabled</State>;
  return <State kind={reason === "gone" ? "bad" : "warning"}>{reason === "gone" ? "Gone" : "Disabled"}</State>;
}
