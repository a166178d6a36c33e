// A titled part of a page or drawer; its heading is its accessible name.
import { Box, Group, Paper, Stack, Text, Title } from "@mantine/core";
import { type ReactNode, useId } from "react";

interface SectionProps {
  title: string;
  /** One sentence about the section's purpose. */
  about?: ReactNode;
  /** Buttons beside the heading. */
  actions?: ReactNode;
  children: ReactNode;
}

export function Section({ title, about, actions, children }: SectionProps) {
  const heading = useId();
  return (
    <Paper withBorder p="lg" component="section" aria-labelledby={heading}>
      <Stack>
        <Group justify="space-between" align="start" gap="sm">
          <Box flex="1 1 16rem">
            <Title order={2} id={heading}>
              {title}
            </Title>
            {about && (
              <Text c="dimmed" size="sm" mt={4} maw="44rem" component="div">
                {about}
              </Text>
            )}
          </Box>
          {actions && <Group gap="xs">{actions}</Group>}
        </Group>
        {children}
      </Stack>
    </Paper>
  );
}

/** A titled part of a drawer. It has no frame, because the drawer itself has one. */
export function DrawerPart({ title, children }: Pick<SectionProps, "title" | "children">) {
  return (
    <section>
      <Title order={2} size="h5" mb="xs">
        {title}
      </Title>
      {children}
    </section>
  );
}

/** The title of a drawer: a name that a user chose and that may be long. */
export function RecordTitle({ children }: { children: string }) {
  return (
    <Title order={2} style={{ overflowWrap: "anywhere" }}>
      {children}
    </Title>
  );
}

interface CardProps {
  title: string;
  /** Content beside the heading, such as a link to a page with more. */
  more?: ReactNode;
  children: ReactNode;
}

/** A small section for grids of several. */
export function Card({ title, more, children }: CardProps) {
  return (
    <Paper withBorder p="md" component="section" aria-label={title}>
      <Group justify="space-between" mb="xs">
        <Title order={2} fz="md">
          {title}
        </Title>
        {more}
      </Group>
      {children}
    </Paper>
  );
}
