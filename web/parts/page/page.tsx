// The frame of a page: the title in tab and heading, an introduction, and actions.
import { Group, Stack, Title } from "@mantine/core";
import { useDocumentTitle } from "@mantine/hooks";
import { type ReactNode, useEffect } from "react";
import { Note } from "../words/note.tsx";
import { announce } from "./announce.tsx";

/** The title that was announced last. The browser itself announces the first page. */
let announcedTitle: string | undefined;
/** The delay in milliseconds before a title is announced, because the title may change while the page loads. */
const settledMs = 150;

interface PageProps {
  title: string;
  /** One sentence for new users. */
  about?: ReactNode;
  /** Buttons beside the heading. */
  actions?: ReactNode;
  children: ReactNode;
}

export function Page({ title, about, actions, children }: PageProps) {
  useDocumentTitle(`${title} · Headrace`);
  useEffect(() => {
    // The first title counts as announced even if the user leaves the page immediately.
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
