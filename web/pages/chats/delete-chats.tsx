// Deletes stored chats one after the other, shows the progress, and can be stopped.
import { Progress, Stack, Text } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useQueryClient } from "@tanstack/react-query";
import { useRef, useState } from "react";
import { ApiFailure, call } from "../../api/client.ts";
import { Confirm } from "../../parts/editing/confirm.tsx";
import { useLast } from "../../parts/editing/use-last.ts";
import { count } from "../../parts/words/figures.ts";
import { SmallNote } from "../../parts/words/note.tsx";

interface DeleteChatsProps {
  ids: readonly string[];
  opened: boolean;
  close(): void;
  /** Called after all deletions, before the list is loaded again. */
  done?: () => void;
}

export function DeleteChats({ ids, opened, close, done }: DeleteChatsProps) {
  const client = useQueryClient();
  const [deleted, setDeleted] = useState<number>();
  const [error, setError] = useState<ApiFailure | null>(null);
  const isStopped = useRef(false);
  const wanted = useLast(opened ? ids : undefined) ?? ids;
  const what = wanted.length === 1 ? "the chat" : `${count(wanted.length)} chats`;
  const isRunning = deleted !== undefined;

  async function run() {
    isStopped.current = false;
    setError(null);
    setDeleted(0);
    let gone = 0;
    try {
      for (const id of wanted) {
        if (isStopped.current) break;
        await deleteChat(id);
        setDeleted(++gone);
      }
      if (!isStopped.current) done?.();
      notifications.show({
        message: wanted.length === 1 ? "The chat is deleted." : `${count(gone)} of ${what} are deleted.`,
      });
      close();
    } catch (failure) {
      setError(failure as ApiFailure);
    }
    setDeleted(undefined);
    await client.invalidateQueries({
      predicate: ({ queryKey: [path] }) => typeof path === "string" && path === "/v1/chat/completions",
    });
  }

  return (
    <Confirm
      opened={opened}
      title={`Delete ${what}?`}
      action={isRunning ? "Deleting" : `Delete ${what}`}
      {...(isRunning ? { stay: "Stop" } : {})}
      canStop
      busy={isRunning}
      error={error}
      confirm={() => void run()}
      close={() => {
        isStopped.current = true;
        if (!isRunning) close();
      }}
    >
      <Stack gap="sm">
        <Text size="sm">
          {wanted.length === 1 ? "Its messages, answer and labels are" : "Their messages, answers and labels are"}{" "}
          deleted immediately and permanently. The requests stay in Usage and Logs.
        </Text>
        {isRunning && wanted.length > 1 && (
          <div>
            <Progress value={(100 * deleted) / wanted.length} aria-label="Deleted so far" />
            <SmallNote mt={4} role="status">
              {count(deleted)} of {count(wanted.length)} deleted
            </SmallNote>
          </div>
        )}
      </Stack>
    </Confirm>
  );
}

/**
 * Deletes a chat; a chat that is already gone counts as deleted. If a rate limit asks to wait for at most 60 seconds,
 * the request is repeated once after that time.
 */
async function deleteChat(id: string): Promise<void> {
  const ask = () => call("DELETE", `/v1/chat/completions/${encodeURIComponent(id)}`);
  try {
    await ask();
  } catch (failure) {
    if (!(failure instanceof ApiFailure)) throw failure;
    if (failure.status === 404) return;
    const wait = failure.retryAfterSeconds;
    if (failure.status !== 429 || wait === null || wait > 60) throw failure;
    await new Promise((resolve) => setTimeout(resolve, wait * 1000));
    await ask();
  }
}
