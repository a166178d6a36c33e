// An error message: what happened, what to do, and the request id for the server's log.
import { Alert, Group, Stack, Text } from "@mantine/core";
import type { ApiFailure } from "../../api/client.ts";
import { SmallNote } from "../words/note.tsx";
import { SmallButton } from "./buttons.tsx";

interface FailureProps {
  error: ApiFailure;
  /** Repeats the failed request; if set, the message has a button for it. */
  retry?: (() => unknown) | undefined;
  title?: string;
}

export function Failure({ error, retry, title = titleOf(error) }: FailureProps) {
  return (
    <Alert color="red" title={title} role="alert" ta="left">
      <Stack gap="xs" align="start">
        <Text size="sm" style={{ overflowWrap: "anywhere" }}>
          {error.message}
        </Text>
        {error.requestId !== null && <SmallNote>Request {error.requestId}</SmallNote>}
        {retry && (
          <Group>
            <SmallButton onClick={() => retry()}>Try again</SmallButton>
          </Group>
        )}
      </Stack>
    </Alert>
  );
}

function titleOf({ status, code }: ApiFailure): string {
  if (code === "network") return "No connection";
  if (status === 403) return "Not allowed";
  if (status === 404) return "Not found";
  if (status === 429) return "Too many requests";
  return status >= 500 || status === 0 ? "The server reported an error" : "The request failed";
}
