// The frame of a page: its title for the tab and the heading, what it is for, and what one can do.
import { Group, Stack, Text, Title } from "@mantine/core";
import { useDocumentTitle } from "@mantine/hooks";
import type { ReactNode } from "react";

interface PageProps {
  title: string;
  /** One sentence for who is here for the first time. */
  about?: ReactNode;
  /** Buttons beside the heading. */
  actions?: ReactNode;
  children: ReactNode;
}

export function Page({ title, about, actions, children }: PageProps) {
  useDocumentTitle(`${title} · Headrace`);
  return (
    <Stack gap="lg" className="page">
      <Group justify="space-between" align="start" gap="sm">
        <div className="page-head">
          <Title order={1}>{title}</Title>
          {about && (
            <Text c="dimmed" size="sm" mt={4} maw="44rem">
              {about}
            </Text>
          )}
        </div>
        {actions && <Group gap="xs">{actions}</Group>}
      </Group>
      {children}
    </Stack>
  );
}
