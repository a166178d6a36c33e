// Hides a page whose session has ended until the same person signs in again, and then shows it unchanged.
import { Anchor, Button, Group, Stack, Text, Title } from "@mantine/core";
import { useEffect, useRef } from "react";
import { signInPath } from "../../api/client.ts";
import type { Over } from "../../api/session-end.ts";
import { PlainButton } from "./buttons.tsx";

let isShown = false;

// The listener is registered before those of all dialogs: each would handle Escape and close, and unsaved input would
// be lost.
window.addEventListener(
  "keydown",
  (event) => {
    if (!isShown || event.key !== "Escape") return;
    event.preventDefault();
    event.stopImmediatePropagation();
  },
  { capture: true },
);

/** The page that the sign-in tab shows after the sign-in. */
const signedIn = "/signed-in";

export function SessionOver({ session, problem, check }: Over) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const shown = dialog.current;
    shown?.showModal();
    isShown = true;
    return () => {
      isShown = false;
      shown?.close();
    };
  }, []);
  return (
    // A modal dialog of the browser makes everything behind it inert, including the page's own dialogs.
    <dialog
      ref={dialog}
      className="session-over"
      aria-labelledby="session-over"
      onClose={({ currentTarget }) => isShown && currentTarget.showModal()}
    >
      <Stack maw="28rem" gap="md">
        <Title order={2} id="session-over">
          Your session has ended
        </Title>
        <Text size="sm">
          Sign in as {session.person.email} in another tab, then return to this tab. This page and your unsaved input
          are kept, and stay hidden until then.
        </Text>
        {problem && (
          <Text size="sm" c="var(--mantine-color-error)" role="alert">
            {problem}
          </Text>
        )}
        <Group gap="xs">
          <Button component="a" href={signInPath(signedIn)} target="_blank">
            Sign in
          </Button>
          <PlainButton onClick={check}>I am signed in</PlainButton>
        </Group>
        <Text size="sm">
          <Anchor href={signInPath(window.location.pathname + window.location.search)} inherit underline="always">
            Leave this page{" "}
          </Anchor>{" "}
          and lose your unsaved input.
        </Text>
      </Stack>
    </dialog>
  );
}
