// Buttons that drain an upstream or a node after a confirmation, or resume it. A drained one gets no new requests.
import { Button, Text } from "@mantine/core";
import { DownloadIcon, PlayIcon } from "@primer/octicons-react";
import type { ReactNode } from "react";
import { PlainButton } from "../page/buttons.tsx";
import { Failure } from "../page/failure.tsx";
import { counted } from "../words/figures.ts";
import { Confirm } from "./confirm.tsx";
import { useQuestion } from "./question.ts";

interface DrainingProps {
  name: string;
  isDraining: boolean;
  /** The number of running requests. */
  running: number;
  /** Paths whose answers the change makes stale. */
  stale: readonly string[];
  change(isDraining: boolean): Promise<unknown>;
  /** The purpose of the draining: "so that you can update or stop it". */
  purpose: string;
  /** The explanation: where requests go meanwhile, and how long the draining lasts. */
  children: ReactNode;
}

export function Draining({ name, isDraining, running, stale, change, purpose, children }: DrainingProps) {
  const question = useQuestion(change, {
    stale,
    said: (_answer, isNow) => `${name} now receives ${isNow ? "no new requests" : "requests again"}.`,
  });
  const { dialog } = question;
  if (isDraining) {
    return (
      <>
        <Button leftSection={<PlayIcon />} loading={dialog.busy} onClick={() => question.change(false)}>
          Resume
        </Button>
        {dialog.error && <Failure error={dialog.error} />}
      </>
    );
  }
  return (
    <>
      <PlainButton leftSection={<DownloadIcon />} onClick={() => question.ask(true)}>
        Drain
      </PlainButton>
      <Confirm {...dialog} title={`Drain ${name}?`} action="Drain" final={false}>
        {name} finishes{" "}
        {running === 0 ? "the requests that it has started by then" : `its ${counted(running, "running request")}`} and
        receives no new ones, {purpose}.
        <Text size="sm" mt="xs">
          {children}
        </Text>
      </Confirm>
    </>
  );
}
