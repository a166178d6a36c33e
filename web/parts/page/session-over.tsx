// Hides a page whose session has ended until its person is signed in again, and then leaves it as it was.
import { Anchor, Button, Group, Stack, Text, Title } from "@mantine/core";
import { useEffect, useRef } from "react";
import { signInPath } from "../../api/client.ts";
import type { Over } from "../../api/session-end.ts";
import { PlainButton } from "./buttons.tsx";

let isShown = false;

// Loaded before every dialog: each of them would hear the key and close, and what was written in it would be lost.
window.addEventListener(
  "keydown",
  (event) => {
    if (!isShown || event.key !== "Escape") return;
    event.preventDefault();
    event.stopImmediatePropagation();
  },
  { capture: true },
);

/** Where the tab ends that somebody signs in with. */
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
    // A dialog of the browser itself: nothing behind it can be seen or reached, the dialogs of the page included.
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
