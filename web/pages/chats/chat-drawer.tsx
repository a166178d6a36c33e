// One stored chat in full: beside the list on a wide screen, in its place on a narrow one.
import { Drawer, Group, Skeleton, Stack, Text } from "@mantine/core";
import { useLocation, useSearch } from "wouter";
import { useRead } from "../../api/queries.ts";
import { useSession } from "../../api/session.tsx";
import type { StoredChatCompletion } from "../../api/types.ts";
import { useLast } from "../../parts/editing/use-last.ts";
import { Empty } from "../../parts/page/empty.tsx";
import { Failure } from "../../parts/page/failure.tsx";
import { CopyAction } from "../../parts/secrets/copy.tsx";
import { useRoom } from "../../parts/table/room.ts";
import { environmentNames } from "../../parts/words/environments.ts";
import { ChatView } from "./chat-view.tsx";

/** `id`: null: closed. */
export function ChatDrawer({ id }: { id: string | null }) {
  const shown = useLast(id);
  const [, navigate] = useLocation();
  const search = useSearch();
  const isNarrow = useRoom() === "narrow";
  const close = () => navigate(`/chats${search === "" ? "" : `?${search}`}`);
  return (
    <Drawer
      opened={id !== null}
      onClose={close}
      position="right"
      size={isNarrow ? "100%" : "48rem"}
      title="Stored chat"
    >
      {shown !== undefined && <Details key={shown} id={shown} close={close} />}
    </Drawer>
  );
}

function Details({ id, close }: { id: string; close(): void }) {
  const { environment } = useSession();
  const { data, error, refetch } = useRead<StoredChatCompletion>(`/v1/chat/completions/${encodeURIComponent(id)}`);
  return (
    <Stack gap="lg">
      <Group gap={4} wrap="nowrap">
        <Text size="sm" ff="monospace" style={{ overflowWrap: "anywhere" }}>
          {id}
        </Text>
        <CopyAction value={id} label="Copy the id of the chat" />
      </Group>
      {data ? (
        <ChatView chat={data} close={close} />
      ) : error?.status === 404 ? (
        <Empty title="There is no such chat here">
          It may have expired or been deleted, be of another environment than {environmentNames[environment]}, or be
          somebody else's.
        </Empty>
      ) : error ? (
        <Failure error={error} retry={refetch} />
      ) : (
        <Skeleton height={320} aria-label="Loading the chat" />
      )}
    </Stack>
  );
}
