// An empty list with a hint at the next step.
import { Paper, Stack, Text, Title } from "@mantine/core";
import type { ReactNode } from "react";

interface EmptyProps {
  title: string;
  children: ReactNode;
  /** The next step, as a button or link. */
  action?: ReactNode;
}

export function Empty({ title, children, action }: EmptyProps) {
  return (
    <Paper withBorder p="xl" ta="center">
      <Stack align="center" gap="xs">
        <Title order={2}>{title}</Title>
        <Text c="dimmed" size="sm" maw="36rem" component="div">
          {children}
        </Text>
        {action}
      </Stack>
    </Paper>
  );
}
