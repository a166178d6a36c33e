// A button that removes what is shown, after a question that says what ends with it.
import { TrashIcon } from "@primer/octicons-react";
import type { ReactNode } from "react";
import { call } from "../../api/client.ts";
import { PlainButton } from "../page/buttons.tsx";
import { Confirm } from "./confirm.tsx";
import { useQuestion } from "./question.ts";

interface RemovalProps {
  name: string;
  /** Where the API has it. */
  path: string;
  /** Paths whose answers it makes stale. */
  stale: readonly string[];
  /** The text of the button that asks. */
  label?: string;
  /** The text of the button that removes: "Remove the node". */
  action: string;
  /** What will happen. */
  children: ReactNode;
  /** Said once it is removed. */
  done: string;
  /** Ends the showing of it. */
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
