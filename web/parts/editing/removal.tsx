// A button that deletes the shown record after a confirmation.
import { TrashIcon } from "@primer/octicons-react";
import type { ReactNode } from "react";
import { call } from "../../api/client.ts";
import { PlainButton } from "../page/buttons.tsx";
import { Confirm } from "./confirm.tsx";
import { useQuestion } from "./question.ts";

interface RemovalProps {
  name: string;
  /** The API path of the record. */
  path: string;
  /** Paths whose answers the deletion makes stale. */
  stale: readonly string[];
  /** The text of the button that opens the confirmation. */
  label?: string;
  /** The text of the confirming button: "Remove the node". */
  action: string;
  /** The consequences of the deletion. */
  children: ReactNode;
  /** The notification after the deletion. */
  done: string;
  /** Closes the record's view. */
  close(): void;
}

export function Removal({ name, path, stale, label = "Remove", action, children, done, close }: RemovalProps) {
  const removal = useQuestion(() => call("DELETE", path), {
    ...{ stale, gone: path, leave: close },
    said: () => done,
  });
  return (
    <>
      <PlainButton c="var(--mantine-color-error)" leftSection={<TrashIcon />} onClick={() => removal.ask()}>
        {label}
      </PlainButton>
      <Confirm {...removal.dialog} title={`Remove ${name}?`} action={action}>
        {children}
      </Confirm>
    </>
  );
}
