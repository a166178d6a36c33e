// The frame of a page: its title for the tab and the heading, what it is for, and what one can do.
import { Group, Stack, Title } from "@mantine/core";
import { useDocumentTitle } from "@mantine/hooks";
import { type ReactNode, useEffect } from "react";
import { Note } from "../words/note.tsx";
import { announce } from "./announce.tsx";

/** The first page is told by the browser itself. */
let announcedTitle: string | undefined;
/** Titles of what is still being read are passed over. */
const settledMs = 150;

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
  useEffect(() => {
    // Also where somebody goes on at once.
    announcedTitle ??= title;
    const timer = setTimeout(() => {
      if (announcedTitle !== title) announce(title);
      announcedTitle = title;
    }, settledMs);
    return () => clearTimeout(timer);
  }, [title]);
  return (
    <Stack gap="lg" className="page">
      <Group justify="space-between" align="start" gap="sm">
        <div className="page-head">
          <Title order={1}>{title}</Title>
          {about && (
            <Note mt={4} maw="44rem">
              {about}
            </Note>
          )}
        </div>
        {actions && <Group gap="xs">{actions}</Group>}
      </Group>
      {children}
    </Stack>
  );
}
