// A button that removes what is shown, after a question that says what ends with it.
import { Button } from "@mantine/core";
import { TrashIcon } from "@primer/octicons-react";
import type { ReactNode } from "react";
import { call } from "../../api/client.ts";
import { Confirm } from "./confirm.tsx";
import { useQuestion } from "./question.ts";

interface RemovalProps {
  name: string;
  /** Of the API. */
  path: string;
  /** Paths whose answers it makes stale. */
  stale: readonly string[];
  /** Of the button that asks. */
  label?: string;
  /** Of the one that removes: "Remove the node". */
  action: string;
  /** What will happen. */
  children: ReactNode;
  /** Said once it is removed. */
  done: string;
  /** Ends the showing of it. */
  close(): void;
}

export function Removal({ name, path, stale, label = "Remove", action, children, done, close }: RemovalProps) {
  const removal = useQuestion(() => call("DELETE", path), { stale, leave: close, said: () => done });
  return (
    <>
      <Button
        variant="default"
        c="var(--mantine-color-error)"
        leftSection={<TrashIcon />}
        onClick={() => removal.ask()}
      >
        {label}
      </Button>
      <Confirm {...removal.dialog} title={`Remove ${name}?`} action={action}>
        {children}
      </Confirm>
    </>
  );
}
