// What is seldom set, behind a button: shown where something of it is set already, or is wrong.
import { Button, Collapse, Stack } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { ChevronDownIcon, ChevronUpIcon } from "@primer/octicons-react";
import type { ReactNode } from "react";

interface MoreSettingsProps {
  /** From the start. */
  shown: boolean;
  hasProblem: boolean;
  children: ReactNode;
}

export function MoreSettings({ shown, hasProblem, children }: MoreSettingsProps) {
  const [opened, { toggle }] = useDisclosure(shown);
  const isOpen = opened || hasProblem;
  return (
    <div>
      <Button
        variant="subtle"
        size="compact-sm"
        onClick={toggle}
        aria-expanded={isOpen}
        rightSection={isOpen ? <ChevronUpIcon /> : <ChevronDownIcon />}
      >
        More settings
      </Button>
      <Collapse expanded={isOpen}>
        <Stack pt="sm">{children}</Stack>
      </Collapse>
    </div>
  );
}
