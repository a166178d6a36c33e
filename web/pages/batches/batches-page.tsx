// The page Batches: the account's batches with their progress, and one batch beside the list.
import { Stack } from "@mantine/core";
import { useLocation, useRoute, useSearch } from "wouter";
import { useList } from "../../api/queries.ts";
import { useSession } from "../../api/session.tsx";
import type { Batch } from "../../api/types.ts";
import { Empty } from "../../parts/page/empty.tsx";
import { PlainLink } from "../../parts/page/links.tsx";
import { Page } from "../../parts/page/page.tsx";
import { RecordDrawer, recordAddress } from "../../parts/page/record-drawer.tsx";
import type { Column } from "../../parts/table/column.ts";
import { LongTable } from "../../parts/table/long-table.tsx";
import { environmentNames } from "../../parts/words/environments.ts";
import { Moment } from "../../parts/words/moment.tsx";
import { SmallNote } from "../../parts/words/note.tsx";
import { BatchProgress, BatchState } from "./batch-state.tsx";
import { BatchView } from "./batch-view.tsx";

/** The polling interval, short enough that users see the progress. */
const everyMs = 3_000;

export function BatchesPage() {
  const { environment } = useSession();
  const [isOne, parameters] = useRoute("/batches/:id");
  const [, navigate] = useLocation();
  const search = useSearch();
  const listing = useList<Batch>("/v1/batches", {}, { everyMs });
  const hrefOf = ({ id }: Batch) => recordAddress("/batches", id, search);
  return (
    <Page
      title="Batches"
      about={`Jobs of many requests in ${environmentNames[environment]}. They use spare capacity and are completed within 24 hours.`}
    >
      <LongTable
        label="Batches"
        listing={listing}
        columns={columnsOf(hrefOf)}
        keyOf={({ id }) => id}
        rowHeight={60}
        choose={(batch) => navigate(hrefOf(batch))}
        empty={
          <Empty title="No batches yet">
            Programs create batches through the API: from a file of requests with POST /v1/batches, or from Messages
            with POST /v1/messages/batches.
          </Empty>
        }
      />
      <RecordDrawer<Batch>
        id={isOne ? parameters.id : null}
        title="Batch"
        width="40rem"
        list="/batches"
        path="/v1/batches"
        what="the batch"
        missing={() => (
          <Empty title="Batch not found">
            The batch may have expired, or belong to another environment than {environmentNames[environment]}, or to
            another person.
          </Empty>
        )}
      >
        {(batch) => <BatchView batch={batch} />}
      </RecordDrawer>
    </Page>
  );
}

function columnsOf(hrefOf: (batch: Batch) => string): Column<Batch>[] {
  return [
    {
      name: "batch",
      head: "Batch",
      cell: (batch) => (
        <Stack gap={0}>
          <PlainLink href={hrefOf(batch)} truncate>
            {batch.id}
          </PlainLink>
          <SmallNote truncate>{batch.endpoint}</SmallNote>
        </Stack>
      ),
    },
    { name: "state", head: "Status", width: "9rem", cell: (batch) => <BatchState batch={batch} /> },
    {
      name: "done",
      head: "Answered",
      width: "12rem",
      wideOnly: true,
      cell: (batch) => <BatchProgress batch={batch} />,
    },
    { name: "model", head: "Model", wideOnly: true, cell: ({ model }) => model ?? "Several" },
    {
      name: "created",
      head: "Created",
      width: "9rem",
      wideOnly: true,
      cell: (one) => <Moment seconds={one.created_at} />,
    },
  ];
}
