// A collapsible section of a form, which opens by itself if one of its fields has an error.
import { Button, Collapse, Group, Stack, Text } from "@mantine/core";
import { ChevronDownIcon, ChevronUpIcon } from "@primer/octicons-react";
import { type ReactNode, useId, useState } from "react";

interface MoreSettingsProps {
  /** The section's name. */
  label?: string;
  /** A line that names the values set in the section. */
  summary?: string;
  /** True if the section is open from the start. */
  shown?: boolean;
  hasProblem: boolean;
  children: ReactNode;
}

export function MoreSettings({
  label = "More settings",
  summary,
  shown = false,
  hasProblem,
  children,
}: MoreSettingsProps) {
  const [isOpen, setOpen] = useState(shown);
  const summaryId = useId();
  // The section stays open after the error is gone.
  if (hasProblem && !isOpen) setOpen(true);
  return (
    // The section opens for an invalid field, because the browser can show its message only beside a visible field.
    <div onInvalidCapture={() => setOpen(true)}>
      <Group gap="0 var(--mantine-spacing-xs)">
        <Button
          variant="subtle"
          size="compact-sm"
          onClick={() => setOpen(!isOpen)}
          aria-expanded={isOpen}
          {...(summary === undefined ? {} : { "aria-describedby": summaryId })}
          rightSection={isOpen ? <ChevronUpIcon /> : <ChevronDownIcon />}
        >
          {label}
        </Button>
        {summary !== undefined && (
          <Text id={summaryId} className="settings-summary" size="sm" c="dimmed" truncate>
            {summary}
          </Text>
        )}
      </Group>
      {/* The section opens without a transition, so that an invalid field can get the focus immediately. */}
      <Collapse expanded={isOpen} transitionDuration={0}>
        <Stack pt="sm">{children}</Stack>
      </Collapse>
    </div>
  );
}
