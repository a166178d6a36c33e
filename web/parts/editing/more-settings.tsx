// What is seldom set, behind a button: shown where something of it is set already, or is wrong.
import { Button, Collapse, Stack } from "@mantine/core";
import { ChevronDownIcon, ChevronUpIcon } from "@primer/octicons-react";
import { type ReactNode, useState } from "react";

interface MoreSettingsProps {
  /** What they are. */
  label?: string;
  /** Whether they are shown from the start. */
  shown: boolean;
  hasProblem: boolean;
  children: ReactNode;
}

export function MoreSettings({ label = "More settings", shown, hasProblem, children }: MoreSettingsProps) {
  const [isOpen, setOpen] = useState(shown);
  // It stays open after the problem, which ends with the next attempt.
  if (hasProblem && !isOpen) setOpen(true);
  return (
    <div>
      <Button
        variant="subtle"
        size="compact-sm"
        onClick={() => setOpen(!isOpen)}
        aria-expanded={isOpen}
        rightSection={isOpen ? <ChevronUpIcon /> : <ChevronDownIcon />}
      >
        {label}
      </Button>
      <Collapse expanded={isOpen}>
        <Stack pt="sm">{children}</Stack>
      </Collapse>
    </div>
  );
}
