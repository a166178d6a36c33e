// One request in full: beside the list on a wide screen, in its place on a narrow one.
import { Button, Drawer, Group, Skeleton, Stack, Text } from "@mantine/core";
import { useLocation, useSearch } from "wouter";
import type { ApiFailure } from "../../api/client.ts";
import { useRead } from "../../api/queries.ts";
import { useSession } from "../../api/session.tsx";
import type { RequestDetail } from "../../api/types.ts";
import { useLast } from "../../parts/editing/use-last.ts";
import { Empty } from "../../parts/page/empty.tsx";
import { Failure } from "../../parts/page/failure.tsx";
import { CopyAction } from "../../parts/secrets/copy.tsx";
import { useRoom } from "../../parts/table/room.ts";
import { environmentNames } from "../../parts/words/environments.ts";
import { RequestView } from "./request-view.tsx";

/** `id`: null: closed. */
export function RequestDrawer({ id }: { id: string | null }) {
  const shown = useLast(id);
  const [, navigate] = useLocation();
  const search = useSearch();
  const isNarrow = useRoom() === "narrow";
  return (
    <Drawer
      opened={id !== null}
      onClose={() => navigate(`/requests${search === "" ? "" : `?${search}`}`)}
      position="right"
      size={isNarrow ? "100%" : "38rem"}
      title="Request"
    >
      {shown !== undefined && <Details key={shown} id={shown} />}
    </Drawer>
  );
}

function Details({ id }: { id: string }) {
  const { data, error, refetch, isFetching } = useRead<RequestDetail>(`/v1/requests/${encodeURIComponent(id)}`);
  return (
    <Stack gap="lg">
      <Group gap={4} wrap="nowrap">
        <Text size="sm" ff="monospace" style={{ overflowWrap: "anywhere" }}>
          {id}
        </Text>
        <CopyAction value={id} label="Copy the id of the request" />
      </Group>
      {data ? (
        <RequestView request={data} />
      ) : error ? (
        <NotShown error={error} retry={refetch} busy={isFetching} />
      ) : (
        <Skeleton height={320} aria-label="Loading the request" />
      )}
    </Stack>
  );
}

function NotShown({ error, retry, busy }: { error: ApiFailure; retry(): unknown; busy: boolean }) {
  const { environment, environments, session } = useSession();
  if (error.status !== 404) return <Failure error={error} retry={retry} />;
  const others = environments.filter((one) => one !== environment).map((one) => environmentNames[one]);
  return (
    <Empty
      title="There is no such request here"
      action={
        <Button variant="default" onClick={() => retry()} loading={busy} mt="xs">
          Look again
        </Button>
      }
    >
      <Text size="sm" ta="left" component="ul" pl="md" my="xs">
        <li>It may be running still: requests are listed as soon as they have ended.</li>
        <li>
          It may be of another environment. Shown is {environmentNames[environment]}; above can be chosen{" "}
          {others.join(" or ")}.
        </li>
        <li>It may be of another account. Shown is {session.account.name}.</li>
        <li>
          It may have been refused with 401: an unknown key has no account. Operators find it in the audit log of all.
        </li>
        <li>It may be one of very many that were refused: of those not all are kept.</li>
      </Text>
    </Empty>
  );
}
