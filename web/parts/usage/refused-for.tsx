// The requests that were refused for one reason: their number, the reason, and advice.
import { Group, Text } from "@mantine/core";
import type { ReactNode } from "react";
import { type RefusalReason, refusalWords } from "../../api/refusals.ts";
import { TextLink } from "../page/links.tsx";
import { count } from "../words/figures.ts";
import { Note } from "../words/note.tsx";
import { State } from "../words/state.tsx";

interface RefusedForProps {
  reason: RefusalReason;
  /** The number of refused requests. */
  requests: number;
  /** The address of the current page, which gets no link. */
  here?: string;
  /** The time, and possibly the key, after the reason. */
  children: ReactNode;
}

export function RefusedFor({ reason, requests, here, children }: RefusedForProps) {
  const { title, why, todo, place } = refusalWords[reason];
  return (
    <>
      <Group gap="xs">
        <Text size="sm" fw={600}>
          {title}
        </Text>
        <State kind="warning">{`${count(requests)} refused`}</State>
      </Group>
      <Note>
        {why} {children}
      </Note>
      <Text size="sm">
        {todo} {place.path !== here && <TextLink href={place.path}>{place.title}</TextLink>}
      </Text>
    </>
  );
}
