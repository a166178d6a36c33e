// One record of a list in full: beside the list on a wide screen, instead of it on a narrow one.
import { Drawer, Group, Skeleton, Stack, Text } from "@mantine/core";
import type { ReactNode } from "react";
import { useLocation, useSearch } from "wouter";
import type { ApiFailure } from "../../api/client.ts";
import { useRead } from "../../api/queries.ts";
import { useLast } from "../editing/use-last.ts";
import { CopyAction } from "../secrets/copy.tsx";
import { useRoom } from "../table/room.ts";
import { Failure } from "./failure.tsx";

/** Returns the address of one record, with the list's current filters. */
export function recordAddress(list: string, id: string, search: string): string {
  return withSearch(`${list}/${encodeURIComponent(id)}`, search);
}

/** Returns the path with the list's filters, which stay in the address while a record is open. */
function withSearch(path: string, search: string): string {
  return search === "" ? path : `${path}?${search}`;
}

interface DetailsProps<Shown> {
  /** The API path of the records. */
  path: string;
  /** The noun with its article, such as "the chat". */
  what: string;
  /** Rendered if there is no such record. `again` repeats the query, which runs while `isBusy`. */
  missing(again: () => unknown, isBusy: boolean): ReactNode;
  children(record: Shown, close: () => void): ReactNode;
}

interface RecordDrawerProps<Shown> extends DetailsProps<Shown> {
  /** The id of the open record; null if none is open. */
  id: string | null;
  title: string;
  /** The CSS width on a wide screen. */
  width: string;
  /** The path of the list's page. */
  list: string;
}

export function RecordDrawer<Shown>({ id, title, width, list, ...details }: RecordDrawerProps<Shown>) {
  const shown = useLast(id);
  const [, navigate] = useLocation();
  const search = useSearch();
  const isNarrow = useRoom() === "narrow";
  const close = () => navigate(withSearch(list, search));
  return (
    <Drawer opened={id !== null} onClose={close} position="right" size={isNarrow ? "100%" : width} title={title}>
      {shown !== undefined && <Details<Shown> key={shown} id={shown} close={close} {...details} />}
    </Drawer>
  );
}

interface OneProps<Shown> extends DetailsProps<Shown> {
  id: string;
  close(): void;
}

function Details<Shown>({ id, path, what, missing, close, children }: OneProps<Shown>) {
  const { data, error, refetch, isFetching } = useRead<Shown>(`${path}/${encodeURIComponent(id)}`);
  const failed = (failure: ApiFailure) =>
    failure.status === 404 ? missing(refetch, isFetching) : <Failure error={failure} retry={refetch} />;
  return (
    <Stack gap="lg">
      <Group gap={4} wrap="nowrap">
        <Text size="sm" ff="monospace" style={{ overflowWrap: "anywhere" }}>
          {id}
        </Text>
        <CopyAction value={id} label={`Copy the id of ${what}`} />
      </Group>
      {data ? (
        children(data, close)
      ) : error ? (
        failed(error)
      ) : (
        <Skeleton height={320} role="status" aria-label={`Loading ${what}`} />
      )}
    </Stack>
  );
}
